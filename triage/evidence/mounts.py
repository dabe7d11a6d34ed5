"""Which file systems of a node did not answer when they were asked, by the list that `triage hang collect` writes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from triage.domain import LogFile, LogLine

_ROW = re.compile(r"^(hangs|fails:\S+) [\d.]+ (\S+) (/\S*) (\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Mount:
    """how: hangs, or fails: and why."""

    how: str
    type: str
    point: str
    line: LogLine
    node: str | None


def sick(files: Iterable[LogFile]) -> list[Mount]:
    """Those that hang or fail, in order."""
    return [
        Mount(found[1], found[2], found[3], line, file.node)
        for file in files
        if file.kind == "processes" and PurePosixPath(file.name).name == "mounts.txt"
        for line in file.lines
        if (found := _ROW.match(line.text))
    ]
