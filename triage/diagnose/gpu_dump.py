"""What `nvidia-smi -q` prints of a GPU: counts of its whole life tell of errors that were repaired since. Pure."""

from __future__ import annotations

import re

from triage.domain import JobLog, LogFile
from triage.evidence.match import Best

_SECTION = re.compile(
    r"^\s*(Volatile|Aggregate|Remapped Rows|Retired Pages|GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f:.]+)\s*:?\s*$"
)
_OF_LIFE = frozenset({"Aggregate", "Retired Pages"})


def drop_repaired(best: Best, log: JobLog) -> None:
    """Uncorrectable errors count where they came since the driver was loaded; of older ones what still waits for a repair."""
    counted = [key for key, f in best.items() if f.signature.id == "smi.uncorrectable"]
    files = {f.name: f for f in log.files}
    for key in counted:
        if _section(files[key[0]], key[1]) in _OF_LIFE:
            del best[key]


def _section(file: LogFile, number: int) -> str:
    """The heading above the line."""
    name = ""
    for line in file.lines:
        if line.number >= number:
            break
        if found := _SECTION.match(line.text):
            name = found[1]
    return name
