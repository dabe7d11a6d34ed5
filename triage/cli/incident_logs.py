"""Whether given logs are those of an incident: by their digests, else by the lines that its diagnosis cites."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from triage.errors import InputError
from triage.ingest import identity
from triage.ingest.streams import Input
from triage.ingest.text import readable
from triage.store.values import StoredAttempt, StoredIncident

RAW = ("flight-recorder", "binary")  # no text to take secrets out of, or to compare
_HIDDEN = re.compile(r"\[redacted:[\w-]+\]")


def check(
    found: StoredIncident, attempt: StoredAttempt | None, places: Mapping[str, Input], staged: Mapping[str, Path]
) -> tuple[str, ...]:
    """What is not known of them, in words. places: the name of each file in the diagnosis -> where it is given; staged: its
    text without secrets. Errors: InputError for a log that is not the incident's."""
    digests = {f.name: f.digest for f in attempt.files} if attempt else {}
    unknown, known = [], 0
    for name, item in places.items():
        cited = {int(e["line"]): str(e["text"]) for e in found.result["evidence"] if e["file"] == name}
        if _same(item, digests.get(name, "")):
            known += 1
        elif not cited or item.kind in RAW:
            unknown.append(str(item.path or item.name))
        elif wrong := _other(staged[name], cited):
            what = f"{item.path or item.name} is not the log of incident {found.id}"
            raise InputError(
                f"{what}: its line {wrong} is not the one that was cited", f"triage incidents show {found.id}"
            )
        else:
            known += 1
    if not known:
        raise InputError(
            f"nothing shows that {', '.join(unknown)} is of incident {found.id}",
            "give the log that its evidence names, or no --logs for the cited lines alone",
        )
    return tuple(f"{name} is not the file that was read, and none of its lines is cited" for name in unknown)


def _same(item: Input, digest: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(digest) and item.path is not None and identity.digest(item.path)[1] == digest
    return False


def _other(file: Path, cited: Mapping[int, str]) -> int:
    """The first cited line that says something else there; 0 for none."""
    left = dict(cited)
    with file.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            if (text := left.pop(number, None)) is not None and not _says(readable(raw.rstrip(b"\n")), text):
                return number
    return min(left, default=0)


def _says(line: str, cited: str) -> bool:
    """Spaces, signs that nobody sees and what was hidden may differ."""
    whole = _essence(_HIDDEN.sub("", line))
    return all(_essence(part) in whole for part in _HIDDEN.split(cited))


def _essence(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
