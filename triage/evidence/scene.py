"""A hung job as it was found: each of its processes with its rank, node, GPU, state and stacks, from all files together. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from triage.domain import JobLog, LogLine, Stacks
from triage.evidence import gpus, procstate, ras
from triage.evidence.cost import world_size
from triage.evidence.dumps import Dump, all_dumps
from triage.evidence.gpus import Gpu, OnGpu
from triage.evidence.placement import task_nodes
from triage.evidence.processes import short
from triage.evidence.procstate import State
from triage.evidence.ranks_of_pids import ranks_of_pids
from triage.evidence.ras import Ras
from triage.evidence.stacks import Seen, classes, look, odd_ones
from triage.evidence.standing_in import WAITING

Key = tuple[str, int]  # node without its domain, "" where unknown; process number
_LOOK = re.compile(r"\d\.(\d{1,3})\.txt$")


@dataclass(slots=True)
class Process:
    pid: int | None
    node: str | None
    rank: int | None = None
    local_rank: int | None = None
    gpu: int | None = None
    on_gpu: LogLine | None = None
    state: State | None = None
    dumps: list[Dump] = field(default_factory=list)
    refused: LogLine | None = None  # the line that says that no tool could attach
    denied: bool = False
    idle: Gpu | None = None  # its GPU, where that does nothing while the others are busy

    @property
    def helps(self) -> bool:
        """Is it a launcher or a worker, by its stack?"""
        looks = [at for dump in self.dumps if (at := look(dump)) is not None]
        return bool(looks) and all(at.helper for at in looks)

    @property
    def place(self) -> str:
        """rank 3 (process 4711 on node n2), in words."""
        name = f"rank {self.rank}" if self.rank is not None else f"process {self.pid}"
        where = [f"process {self.pid}"] if self.rank is not None and self.pid is not None else []
        where += [f"GPU {self.gpu}"] if self.gpu is not None else []
        where += [self.node] if self.node else []
        return f"{name} ({', '.join(where)})" if where else name


@dataclass(frozen=True, slots=True)
class Scene:
    """seen: the last stack of each rank; odd: those of them for whom the others wait."""

    processes: tuple[Process, ...] = ()
    seen: tuple[Seen, ...] = ()
    odd: tuple[Seen, ...] = ()
    stacks: Stacks | None = None
    idle: tuple[Gpu, ...] = ()
    ras: Ras = field(default_factory=Ras)
    owners: Mapping[int, Process] = field(default_factory=dict)  # by the identity of a dump
    stands: Mapping[int, Seen] = field(default_factory=dict)  # by the identity of a process

    def of(self, seen: Seen) -> Process | None:
        return self.owners.get(id(seen.dump))

    def seen_of(self, process: Process) -> Seen | None:
        return self.stands.get(id(process))


def scene(log: JobLog, pids: Mapping[Key, int] | None = None) -> Scene:
    """pids: ranks of processes that were there, by what collected the rest."""
    dumps, states = list(all_dumps(log.files)), list(procstate.states(log.files))
    busy, on_gpus = gpus.read(log.files)
    told = ras.read(log.files)
    if not (dumps or states or busy or told.reports):
        return Scene(ras=told)
    table = _Table()
    for dump in sorted(dumps, key=_look):
        table.add_dump(dump)
    for state in states:
        table.add_state(state)
    for held in on_gpus:
        table.add_gpu(held)
    for (node, pid), rank in (pids or {}).items():
        table.get(pid, node or None, rank)
    known = {**ranks_of_pids(log), **(pids or {})}
    _give_ranks(table.processes, known, task_nodes(log))
    idle = gpus.idle_among_busy(busy, on_gpus)
    for gpu in idle:
        for p in table.processes:
            if p.gpu is not None and p.gpu == gpu.index and (gpu.node is None or p.node in (None, gpu.node)):
                p.idle = gpu
    seen = _seen(table.processes)
    odd = odd_ones(seen)
    owners = {id(dump): p for p in table.processes for dump in p.dumps}
    stands = {id(owners[id(s.dump)]): s for s in seen}
    return Scene(tuple(table.processes), seen, odd, _merged(log, seen, odd), tuple(idle), told, owners, stands)


def _look(dump: Dump) -> int:
    """Which look at the process it was: `pyspy-4711.2.txt` is the second."""
    found = _LOOK.search(dump.head.file)
    return int(found[1]) if found else 1


# ---------------------------------------------------------------------------------------------- who is who
class _Table:
    """Processes by node and number. A line that names no node is of the one node that has a process of this number."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self._by_pid: dict[int, list[Process]] = defaultdict(list)

    def find(self, pid: int | None, node: str | None, rank: int | None) -> Process | None:
        if pid is None:
            return None
        # Two nodes may have a process of the same number; ranks tell them apart too.
        here = [p for p in self._by_pid[pid] if None in (p.rank, rank) or p.rank == rank]
        if node is None:
            return here[0] if len(here) == 1 else None
        same = [p for p in here if p.node and short(p.node) == short(node)]
        unplaced = [p for p in here if p.node is None]
        if not same and len(unplaced) == 1:
            unplaced[0].node = node
            return unplaced[0]
        return same[0] if same else None

    def get(self, pid: int | None, node: str | None, rank: int | None = None) -> Process:
        found = self.find(pid, node, rank)
        if found is None:
            found = Process(pid, node)
            self.processes.append(found)
            if pid is not None:
                self._by_pid[pid].append(found)
        if found.rank is None:
            found.rank = rank
        return found

    def add_dump(self, dump: Dump) -> None:
        process = self.get(dump.pid, dump.node, dump.rank)
        if dump.pid is None:  # one file a process: the dumps of a file belong together
            same = [p for p in self.processes if p.dumps and p.dumps[0].head.file == dump.head.file and p.pid is None]
            if same and same[0] is not process and same[0].rank == dump.rank:
                self.processes.remove(process)
                process = same[0]
        if dump.threads or dump.kernel:
            process.dumps.append(dump)
        if dump.threads:
            process.refused = None
        elif dump.refused and not any(d.threads for d in process.dumps):
            process.refused, process.denied = process.refused or dump.refused, process.denied or dump.denied

    def add_state(self, state: State) -> None:
        process = self.get(state.pid, state.node, state.rank)
        before = process.state
        worse = (
            before is None
            or (not before.wchan and state.wchan)
            or (state.letter in "DTZ" and before.letter not in "DTZ")
        )
        if worse:
            wchan = state.wchan or (before.wchan if before else "")
            process.state = state if wchan == state.wchan else _with(state, wchan)
        process.local_rank = state.local_rank if process.local_rank is None else process.local_rank

    def add_gpu(self, held: OnGpu) -> None:
        process = self.get(held.pid, held.node)
        process.gpu, process.on_gpu = held.index, held.line


def _with(state: State, wchan: str) -> State:
    return State(
        state.pid,
        state.letter,
        wchan,
        state.command,
        state.line,
        state.node,
        state.rank,
        state.local_rank,
        state.parent,
    )


def _give_ranks(processes: Sequence[Process], known: Mapping[Key, int], nodes: Sequence[str]) -> None:
    """By what names the process; else by its place on its node, where the nodes come in a known order."""
    by_pid: dict[int, dict[str, int]] = defaultdict(dict)
    for (node, pid), rank in known.items():
        by_pid[pid][node] = rank
    for p in processes:
        here = by_pid.get(p.pid, {}) if p.pid is not None and p.rank is None else {}
        if here:
            exact = here.get(short(p.node)) if p.node else None
            p.rank = exact if exact is not None else next(iter(here.values())) if len(here) == 1 else None
    order = [short(node) for node in nodes]
    named = {short(p.node) for p in processes if p.node}
    on_gpu = [p.gpu for p in processes if p.gpu is not None]
    width = max(on_gpu, default=-1) + 1
    locals_ = [p.local_rank for p in processes if p.local_rank is not None]
    width = max(width, max(locals_, default=-1) + 1)
    for p in processes:
        place = p.local_rank if p.local_rank is not None else p.gpu
        if p.rank is not None or place is None:
            continue
        if not order and len(named) <= 1:
            p.rank = place
        elif p.node and short(p.node) in order:
            p.rank = order.index(short(p.node)) * width + place


# ---------------------------------------------------------------------------------------------- stacks
def _seen(processes: Sequence[Process]) -> tuple[Seen, ...]:
    found = []
    ranks = {(p.node, p.pid) for p in processes if p.rank is not None}
    launchers = {(p.node, p.state.parent) for p in processes if p.rank is not None and p.state}
    for p in processes:
        parent = p.state.parent if p.state else None
        if (p.rank is None and (p.node, p.pid) in launchers) or ((p.node, parent) in ranks and p.pid != parent):
            continue  # it started ranks, or a rank started it
        looks = [(dump, at) for dump in p.dumps if (at := look(dump)) is not None]
        ranked = [(dump, at) for dump, at in looks if not at.helper]
        if not ranked:
            continue
        (dump, last), before = ranked[-1], ranked[:-1]
        again = all(at.key == last.key for _, at in before) if before else None
        places = [at for _, at in ranked]
        freed = any(a.doing in WAITING and a.key != b.key for a, b in pairwise(places))
        found.append(Seen(dump, last, p.rank, p.node, p.pid, again, freed))
    return tuple(sorted(found, key=lambda s: (s.rank is None, s.rank or 0)))


def _merged(log: JobLog, seen: Sequence[Seen], odd: Sequence[Seen]) -> Stacks | None:
    if not seen:
        return None
    ranks = {s.rank for s in seen if s.rank is not None}
    missing: tuple[int, ...] = ()
    if len(ranks) == len(seen) and len(seen) > 1:
        world = max(world_size(log.files) or 0, max(ranks) + 1)
        missing = tuple(sorted(set(range(world)) - ranks))
    twice = [s for s in seen if s.again is not None]
    return Stacks(
        classes=classes(seen, odd),
        missing=missing if len(missing) <= max(len(ranks), 1) else (),
        fewer=_fewer(seen),
        moving=sum(s.again is False for s in twice),
        again=sum(s.again is True for s in twice),
    )


def _fewer(seen: Sequence[Seen]) -> tuple[tuple[str, int], ...]:
    """Nodes that gave fewer stacks than most nodes did."""
    counted = Counter(short(s.node) for s in seen if s.node)
    if len(counted) < 2:
        return ()
    usual, nodes = Counter(counted.values()).most_common(1)[0]
    if nodes * 2 <= len(counted) and len(counted) > 2:
        return ()
    usual = max(counted.values()) if len(counted) == 2 else usual
    return tuple((node, usual - n) for node, n in counted.items() if n < usual)
