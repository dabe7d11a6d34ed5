"""Who of a job's processes does its work: its ranks by their numbers, or processes without. Pure but for what it remembers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.ingest import names
from triage.probing.values import PIPES, WRAPPERS, Key, Process, ranks_of
from triage.text import rank_ranges

Who = int | Key  # a rank by its number; where that is not certain, its process

_TRACKERS = ("(resource tracker)", "(semaphore tracker)", "(forkserver)")
_WAIT_PLACES = ("do_wait",)
_WAIT_CALLS = ("61", "247")  # wait4, waitid of x86-64
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Members:
    """by: those that compute; above: those that started them, where nothing but the tree tells."""

    by: Mapping[Who, Process] = field(default_factory=dict)
    above: tuple[Process, ...] = ()

    @property
    def numbered(self) -> bool:
        return any(isinstance(who, int) for who in self.by)


@dataclass(slots=True)
class Roster:
    """Remembers the numbers that logs told."""

    _numbers: dict[Key, int] = field(default_factory=dict)

    def members(self, processes: Sequence[Process]) -> Members:
        ranks = ranks_of(processes)
        lone = next(iter(ranks.values())) if len(ranks) == 1 else None
        if ranks and not (lone and merely_waits(lone)):  # one number for all below it numbers nobody
            return Members(_in_order(ranks))
        team, above = _team(processes)
        if numbers := self._by_logs(team):
            return Members(_in_order(numbers), above)
        if ranks and len(team) < 2:
            return Members(_in_order(ranks))
        return Members({process.key: process for process in team}, above)

    def _by_logs(self, team: Sequence[Process]) -> dict[int, Process]:
        """Where each of them writes a log of its own whose name tells a rank; {}: not certain."""
        present = {process.key for process in team}
        self._numbers = {key: rank for key, rank in self._numbers.items() if key in present}
        writers = Counter(path for process in team for path in (*process.outputs, *process.logs))
        for process in team:
            told = {names.place(path).rank for path in (*process.outputs, *process.logs) if writers[path] == 1} - {None}
            if len(told) == 1 and process.key not in self._numbers:
                self._numbers[process.key] = told.pop() or 0
        found = {self._numbers[process.key]: process for process in team if process.key in self._numbers}
        return found if len(found) == len(team) > 1 else {}


def _in_order(ranks: Mapping[int, Process]) -> dict[Who, Process]:
    return {rank: ranks[rank] for rank in sorted(ranks)}


def merely_waits(process: Process) -> bool:
    """For processes that it started."""
    return process.wchan.startswith(_WAIT_PLACES) or (not process.wchan and process.call in _WAIT_CALLS)


def is_helper(process: Process) -> bool:
    """It carries output or looks after others."""
    return process.comm in PIPES or process.name.endswith(_TRACKERS)


def is_wrapper(process: Process) -> bool:
    """It starts the program and waits for it, in whatever way."""
    return process.comm in WRAPPERS or process.name.endswith(_TRACKERS)


def label(who: Who, process: Process) -> str:
    """The beginning of a sentence about it."""
    return f"rank {who}, pid {process.pid}," if isinstance(who, int) else process.told


def several(members: Iterable[Who]) -> str:
    """ "ranks 0,2-3", "3 processes"."""
    found = list(members)
    ranks = sorted(who for who in found if isinstance(who, int))
    if ranks:
        return f"rank{'s' if len(ranks) > 1 else ''} {rank_ranges(ranks)}"
    return f"{len(found)} process{'es' if len(found) != 1 else ''}"


# ------------------------------------------------------------------------------------------ by the tree
def _team(processes: Sequence[Process]) -> tuple[list[Process], tuple[Process, ...]]:
    """The first generation that computes, from the top: several of one program side by side, or what is below wrappers and those
    that merely wait; and who is above it."""
    listed = [process for process in processes if process.state != "X"]
    children: dict[tuple[str, int], list[Process]] = {}
    pids = {(process.node, process.pid) for process in listed}
    for process in listed:
        children.setdefault((process.node, process.ppid), []).append(process)
    level = [process for process in listed if (process.node, process.ppid) not in pids]
    above: list[Process] = []
    for _ in range(20):
        if team := _alike([process for process in level if not is_helper(process) and not is_wrapper(process)]):
            return team, tuple(above)
        below: list[Process] = []
        for process in level:
            kids = children.get((process.node, process.pid), [])
            if kids and _is_above(process, kids):
                below += kids
                above += [] if is_wrapper(process) else [process]
            else:
                below.append(process)
        if below == level:
            break
        level = below
    return [p for p in level if not is_helper(p) and not is_wrapper(p) and p.state != "Z"], tuple(above)


def _is_above(process: Process, kids: Sequence[Process]) -> bool:
    return is_wrapper(process) or merely_waits(process) or bool(_alike([kid for kid in kids if not is_helper(kid)]))


def _alike(level: Sequence[Process]) -> list[Process]:
    """The most of one program, where they are two or more, and one of them lives."""
    by_program: dict[str, list[Process]] = {}
    for process in level:
        by_program.setdefault(_DIGITS.sub("0", process.comm), []).append(process)
    found = max(by_program.values(), key=len, default=[])
    return found if len(found) > 1 and any(process.state != "Z" for process in found) else []
