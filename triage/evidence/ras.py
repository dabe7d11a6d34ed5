"""What NCCL's own watch (`ncclras`) says: communicators whose ranks differ or are missing. Pure.

Formats: src/ras/client_support.cc of NCCL 2.24 and later. Counts that differ by one are usual in a job that runs, as its
ranks go on while they are asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from triage.domain import LogFile, LogLine

_COMM = re.compile(r"^#(\d+-\d+) \(([0-9a-f]{8,16})\) ([A-Z]+)")
_GROUP = re.compile(r"^ {1,2}(\d{1,7}) ranks have (?:launched up to operation (\d{1,12})|not launched any operations)")
_ONE = re.compile(
    r"^ {1,2}Rank (\d{1,7}) has (?:launched up to operation (\d{1,12})|not launched any operations) -- GPU (\S{1,20}) managed by process (\d{1,9}) on node (\S{1,80})"
)
_LISTED = re.compile(r"^ {1,2}Rank (\d{1,7}) -- GPU (\S{1,20}) managed by process (\d{1,9}) on node (\S{1,80})")
_LOST = re.compile(r"^ {1,2}Process (\d{1,9}) on node (\S{1,80}) managing GPUs? (\S{1,40})")
_HEADS = ("DEAD", "INCOMPLETE")
_SPREAD = 1  # operations


@dataclass(frozen=True, slots=True)
class Named:
    """A rank of a communicator that differs, or a process (then rank is None) that does not answer."""

    line: LogLine
    rank: int | None
    gpu: str
    pid: int
    node: str
    operation: int | None = None  # the last that it launched


@dataclass(frozen=True, slots=True)
class Ras:
    """behind: ranks that launched fewer operations than most; lost: processes that do not answer; reports: how many were read;
    still: of a communicator that was asked more than once, no count has moved."""

    behind: tuple[Named, ...] = ()
    lost: tuple[Named, ...] = ()
    reports: int = 0
    still: bool = False
    spread: int = 0  # operations between the first and the last


def read(files: Iterable[LogFile]) -> Ras:
    reports: list[tuple[tuple[Named, ...], int]] = []
    lost: dict[tuple[str, int], Named] = {}
    for file in files:
        if file.kind not in ("job", "processes") or not any(
            "NCCL version" in x.text
            or _COMM.match(x.text)
            or "Missing communicator" in x.text
            or "considered dead" in x.text
            for x in file.lines
        ):
            continue
        reader = _Reader()
        for line in file.lines:
            reader.take(line)
        reports += reader.reports()
        lost |= {(named.node, named.pid): named for named in reader.lost}
    behind, spread = reports[-1] if reports else ((), 0)
    counts = [{(n.rank, n.operation) for n in found} for found, _ in reports]
    still = len(counts) > 1 and bool(counts[-1]) and all(count == counts[-1] for count in counts)
    return Ras(behind, tuple(lost.values()), len(reports) or bool(lost), still, spread)


class _Reader:
    def __init__(self) -> None:
        self.lost: list[Named] = []
        self._reports: list[
            list[tuple[int, int, list[Named]]]
        ] = []  # per communicator: (operation, ranks, those named)
        self._lost = False

    def take(self, line: LogLine) -> None:
        text = line.text
        if found := _COMM.match(text):
            self._lost = found[3] in _HEADS
            self._reports.append([])
        elif text.strip() in _HEADS:
            self._lost = True
        elif group := _GROUP.match(text):
            self._counts().append((int(group[2] or 0), int(group[1]), []))
        elif one := _ONE.match(text):
            operation = int(one[2] or 0)
            self._counts().append((operation, 1, [Named(line, int(one[1]), one[3], int(one[4]), one[5], operation)]))
        elif (listed := _LISTED.match(text)) and self._counts():
            operation, _, named = self._counts()[-1]
            named.append(Named(line, int(listed[1]), listed[2], int(listed[3]), listed[4], operation))
        elif (gone := _LOST.match(text)) and self._lost:
            self.lost.append(Named(line, None, gone[3], int(gone[1]), gone[2]))

    def _counts(self) -> list[tuple[int, int, list[Named]]]:
        if not self._reports:
            self._reports.append([])
        return self._reports[-1]

    def reports(self) -> list[tuple[tuple[Named, ...], int]]:
        """Of each communicator whose ranks differ: those behind most of them, and by how many operations."""
        found = []
        for counts in self._reports:
            if len(counts) < 2:
                continue
            most = max(counts, key=lambda count: count[1])[0]
            behind = tuple(named for operation, _, of in counts if operation < most for named in of)
            found.append((behind, most - min(operation for operation, _, _ in counts)))
        return found
