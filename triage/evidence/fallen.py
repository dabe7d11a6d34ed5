"""Which process fell first, by what launchers report: torchrun's summary, srun, mpirun and Hydra. Pure.

Launchers end the others when one process is gone, so those that were ended by a signal of the launcher came later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from triage.domain import LogLine
from triage.heads import split

_ROOT = "Root Cause (first observed failure)"
_FIELD = re.compile(r"\s{1,8}(host|rank|exitcode)\s{1,8}: (\S+)(?: \(local_rank: (\d{1,9})\)| \(pid: (\d{1,9})\))?")
_ELASTIC = re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: (\d{1,9}) \(pid: (\d{1,9})\) of binary")
_SRUN = re.compile(r"srun: error: ([\w.-]{1,80}): tasks? ([\d,-]{1,200}): (.{1,80})")
_MPIRUN = re.compile(r"process rank (\d{1,9}) with PID (\d{1,9}) on node ([\w.-]{1,80}) exited on signal (\d{1,9})")
_HYDRA = re.compile(r"^=\s{1,8}RANK (\d{1,6}) PID (\d{1,9}) RUNNING AT ([\w.-]{1,80})")
_HYDRA_END = re.compile(r"^=\s{1,8}(?:KILLED BY SIGNAL: (\d{1,9})|EXIT CODE: (\d{1,9}))")
_ENDED_BY_LAUNCHER = re.compile(r"Terminated|Killed")
_MAX_TASKS = 100_000


@dataclass(frozen=True, slots=True)
class Fallen:
    """One report. first: the launcher says itself that it was the first; ended: others' failure may have ended it."""

    line: LogLine
    ranks: tuple[int, ...]  # of srun: its tasks
    node: str | None = None
    pid: int | None = None
    status: str = ""
    first: bool = False
    ended: bool = False
    tasks: bool = False  # the numbers are those of srun's tasks, which may be launchers of many ranks each


def fallen(lines: Iterable[LogLine]) -> tuple[Fallen, ...]:
    """The reports of one file, in its order."""
    return tuple(_reports(lines))


def _reports(lines: Iterable[LogLine]) -> Iterator[Fallen]:
    block = _Block()
    for line in lines:
        text = line.text
        if "srun: error:" in text and (found := _SRUN.search(text)):
            ended = bool(_ENDED_BY_LAUNCHER.match(found[3]))
            yield Fallen(line, _numbers(found[2]), found[1], status=found[3], ended=ended, tasks=True)
        elif "exited on signal" in text and (found := _MPIRUN.search(text)):
            yield Fallen(line, (int(found[1]),), found[3], int(found[2]) or None, f"signal {found[4]}", first=True)
        elif "failed (exitcode" in text and (found := _ELASTIC.search(text)):
            yield Fallen(line, (), line.node, int(found[3]), found[1])
        elif text.startswith("=  ") and (found := _HYDRA.match(text) or _HYDRA_END.match(text)):
            report = block.hydra(line, found)
            if report is not None:
                yield report
        elif _ROOT in text:
            block = _Block(root=True)
        elif " : " in text and (found := _FIELD.match(split(text)[1])):
            report = block.take(line, found)
            if report is not None:
                yield report


class _Block:
    """The fields of one failure in a summary of torchrun or Hydra, as they come."""

    def __init__(self, root: bool = False) -> None:
        self._root = root
        self._host: str | None = None
        self._rank: int | None = None
        self._pid: int | None = None

    def take(self, line: LogLine, found: re.Match[str]) -> Fallen | None:
        name, value = found[1], found[2]
        if name == "host":
            self._host = value
        elif name == "rank" and value.isdecimal() and len(value) < 10:
            self._rank = int(value)
        elif name == "exitcode" and self._rank is not None:
            pid = int(found[4]) if found[4] else None
            rank, self._rank = self._rank, None
            return Fallen(line, (rank,), self._host, pid, value, self._root, value == "-15")
        return None

    def hydra(self, line: LogLine, found: re.Match[str]) -> Fallen | None:
        if found.re is _HYDRA:
            self._rank, self._pid, self._host = int(found[1]), int(found[2]), found[3]
            return None
        rank, self._rank = self._rank, None
        if rank is None:
            return None
        status = f"signal {found[1]}" if found[1] else found[2]
        return Fallen(line, (rank,), self._host, self._pid, status, ended=found[1] == "15")


def first_fallen(reports: Sequence[Fallen]) -> Fallen | None:
    """The process that fell first: the one the launcher says it is, else the first not ended by the launcher."""
    named = [r for r in reports if r.first]
    # The summary of each node names its own first; ranks that a signal ended only followed.
    return next((r for r in (*named, *reports) if r.ranks and not r.ended), None)


def _numbers(text: str) -> tuple[int, ...]:
    """0-3,7 -> 0, 1, 2, 3, 7."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and len(found) < _MAX_TASKS:
            end = int(high) if high.isdecimal() else int(low)
            found += range(int(low), min(end, int(low) + _MAX_TASKS) + 1)
    return tuple(found)
