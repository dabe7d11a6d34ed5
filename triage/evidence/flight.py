"""Which rank held the others up, by the flight-recorder dumps of many ranks. Pure.

A collective ends when every rank of its group has enqueued it and its GPU has got there. So, of a collective that some
rank waits in: a member that never enqueued it is missing; where all have, the member whose GPU did not finish what
others finished stands still itself. Members that wait themselves, for others, are only held up. Where all have reached
the same place with another operation, size or type, they run different code.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from triage.domain import LogFile, LogLine

_ENTRY = re.compile(
    r"flight recorder: unfinished group=(?P<group>\S+) seq=(?P<seq>\d+) op=(?P<op>\S+) in=(?P<ins>\S+) out=(?P<outs>\S+) dtype=(?P<dtype>\S+) "
)
_GROUP = re.compile(r"flight recorder: group=(\S+) desc=(\S+) ranks=(\S+) last_enqueued=(-?\d+)")
_NUMBER = re.compile(r"\d{1,7}")
_UNEVEN = ("send", "recv", "coalesced", "all_to_all", "alltoall", "gather", "scatter")  # sizes differ by design
_EVEN = ("all_gather", "allgather", "reduce_scatter")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A collective that this rank has enqueued and that has not ended. shape: sizes and types, "" where they may differ."""

    line: LogLine
    rank: int
    group: str
    seq: int
    op: str
    shape: str


@dataclass(frozen=True, slots=True)
class Flight:
    """missing: ranks that others wait for and that wait for nobody; stalled: whose GPU did not finish what others did.

    shown: of each of these, the first collective that it held up, or its own; apart: of the same place in one group, the
    waits of the minority in another operation or shape; absent: members of which there is no dump; unread: ranks whose dump is
    cut off or damaged, which says nothing of what they did.
    """

    missing: tuple[int, ...] = ()
    stalled: tuple[int, ...] = ()
    shown: tuple[tuple[int, Waiting], ...] = ()
    apart: tuple[Waiting, ...] = ()
    absent: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()
    groups: Mapping[str, str] | None = None  # what each is called

    @property
    def culprits(self) -> tuple[int, ...]:
        return tuple(sorted({w.rank for w in self.apart} or {*self.missing, *self.stalled}))


def analyse(files: Iterable[LogFile]) -> Flight:
    """Of the dumps among the files; an empty Flight where there are fewer than two."""
    here = {f.rank: f for f in files if f.kind == "flight-recorder" and f.rank is not None}
    dumps = {rank: f for rank, f in here.items() if f.lines or not f.problems}
    unread = tuple(sorted(here.keys() - dumps.keys()))
    if len(dumps) < 2:
        return Flight(unread=unread)
    table = _Table(dumps, unread)
    waits = {rank: _waits(rank, file) for rank, file in dumps.items()}
    apart = _apart(waits)
    held_by, stalled = _held(waits, table)
    roots = _roots(held_by) - stalled
    culprits = roots | stalled
    shown = _shown(waits, culprits, stalled, table)
    return Flight(
        missing=tuple(sorted(roots)) if not apart else (),
        stalled=tuple(sorted(stalled)) if not apart else (),
        shown=shown,
        apart=apart,
        absent=tuple(sorted({m for ranks in table.members.values() for m in ranks} - here.keys())),
        unread=unread,
        groups=table.names,
    )


class _Table:
    """What the dumps say of the groups."""

    def __init__(self, dumps: Mapping[int, LogFile], unread: Iterable[int]) -> None:
        self._unread = frozenset(unread)
        self.members: dict[str, tuple[int, ...]] = {}
        self.names: dict[str, str] = {}
        self.enqueued: dict[tuple[str, int], int] = {}  # by group and rank
        self._ranks = dumps.keys()
        met: dict[str, set[int]] = defaultdict(set)
        for rank, file in dumps.items():
            for line in file.lines:
                if found := _GROUP.search(line.text):
                    group, name, ranks, last = found.groups()
                    self.enqueued[(group, rank)] = int(last)
                    self.names.setdefault(group, name if name not in ("-", "undefined") else f"group {group}")
                    members = tuple(int(n) for n in _NUMBER.findall(ranks))
                    met[group] |= {rank, *members}
        self.members = {group: tuple(sorted(ranks)) for group, ranks in met.items()}

    def behind(self, wait: Waiting) -> set[int]:
        """Members that never enqueued it. One without a dump counts, where most members have one."""
        members = self.members.get(wait.group, ())
        told = [m for m in members if m in self._ranks]
        known = set(members if len(told) * 2 > len(members) else told) - self._unread
        return {m for m in known if self.enqueued.get((wait.group, m), -1) < wait.seq and m != wait.rank}


def _waits(rank: int, file: LogFile) -> list[Waiting]:
    """In the order of the dump; point to point is left out: its numbers count another thing on each side."""
    found = []
    for line in file.lines:
        said = _ENTRY.search(line.text) if "unfinished" in line.text else None
        if said and not any(word in said["op"] for word in ("send", "recv")):
            op = said["op"].rpartition(":")[2]
            even = any(word in op for word in _EVEN) or not any(word in op for word in _UNEVEN)
            shape = f"{said['ins']} {said['dtype']}" if even and not op.startswith(("broadcast", "barrier")) else ""
            found.append(Waiting(line, rank, said["group"], int(said["seq"]), op, shape))
    return found


def _apart(waits: Mapping[int, list[Waiting]]) -> tuple[Waiting, ...]:
    """The first place of each group where members wait in different things, and the minority there."""
    at: dict[tuple[str, int], list[Waiting]] = defaultdict(list)
    for wait in (w for of_rank in waits.values() for w in of_rank):
        at[(wait.group, wait.seq)].append(wait)
    for here in at.values():
        counted = Counter((w.op, w.shape) for w in here)
        if len(counted) > 1:
            usual, most = counted.most_common(1)[0]
            clear = most * 2 > len(here)
            return tuple(w for w in here if not clear or (w.op, w.shape) != usual)
    return ()


def _held(waits: Mapping[int, list[Waiting]], table: _Table) -> tuple[dict[int, set[int]], set[int]]:
    """Whom each rank waits for, and the ranks whose GPU stands still: all are there, and others are through."""
    held: dict[int, set[int]] = {}
    stalled: set[int] = set()
    pending = {(w.group, w.seq, w.rank) for of_rank in waits.values() for w in of_rank}
    for rank, of_rank in waits.items():
        for wait in of_rank:
            behind = table.behind(wait)
            if behind:
                held.setdefault(rank, set()).update(behind)
            elif any(
                m != rank and (wait.group, wait.seq, m) not in pending and (wait.group, m) in table.enqueued
                for m in table.members.get(wait.group, ())
            ):
                stalled.add(rank)
    return held, stalled


def _roots(held: Mapping[int, set[int]]) -> set[int]:
    """Ranks that others wait for, and that wait for nobody that is not among them."""
    waited = {m for behind in held.values() for m in behind}
    return {rank for rank in waited if not held.get(rank, set()) - {rank}}


def _shown(
    waits: Mapping[int, list[Waiting]], culprits: set[int], stalled: set[int], table: _Table
) -> tuple[tuple[int, Waiting], ...]:
    """One wait for each culprit: the first collective that it held up; its own, where it stands still."""
    found: dict[int, Waiting] = {}
    for rank in sorted(culprits):
        own = waits.get(rank, []) if rank in stalled else []
        blocked = [w for of_rank in waits.values() for w in of_rank if rank in table.behind(w)]
        choice = own[:1] or sorted(blocked, key=_since)
        fresh = [wait for wait in choice if wait not in found.values()]  # each its own line, where there are enough
        if choice:
            found[rank] = (fresh or choice)[0]
    return tuple(found.items())


def _since(wait: Waiting) -> float:
    return wait.line.time.timestamp() if wait.line.time else 0.0
