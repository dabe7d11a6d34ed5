"""A hung job as it was found: each of its processes with its rank, node, GPU, state and stacks, from all files together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from triage.domain import JobLog, Stacks
from triage.evidence import gpus, procstate, ras
from triage.evidence.cost import world_size
from triage.evidence.crew import Family, Process, crew, family
from triage.evidence.dumps import Dump, all_dumps
from triage.evidence.gpus import Gpu, OnGpu
from triage.evidence.manifest import Member
from triage.evidence.placement import task_nodes
from triage.evidence.processes import short
from triage.evidence.procstate import State
from triage.evidence.ranks_of_pids import ranks_of_pids
from triage.evidence.ras import Ras
from triage.evidence.stacks import Seen, classes, odd_ones
from triage.evidence.standing_in import WAITING
from triage.evidence.table import Table, give_ranks
from triage.evidence.whose import look_of


@dataclass(frozen=True, slots=True)
class Scene:
    """crew: the processes that do the job's work; seen: the last stack of each; odd: those of them for whom the others wait."""

    processes: tuple[Process, ...] = ()
    crew: tuple[Process, ...] = ()
    family: Family = field(default_factory=lambda: Family({}, frozenset()))
    seen: tuple[Seen, ...] = ()
    odd: tuple[Seen, ...] = ()
    stacks: Stacks | None = None
    idle: tuple[Gpu, ...] = ()
    ras: Ras = field(default_factory=Ras)
    owners: Mapping[int, Process] = field(default_factory=dict)  # by the identity of a dump
    stands: Mapping[int, Seen] = field(default_factory=dict)  # by the identity of a process

    @property
    def gone(self) -> tuple[int, ...]:
        """Ranks of which there is neither a stack nor a process."""
        there = {p.rank for p in self.processes}
        return tuple(rank for rank in self.stacks.missing if rank not in there) if self.stacks else ()

    def of(self, seen: Seen) -> Process | None:
        return self.owners.get(id(seen.dump))

    def seen_of(self, process: Process) -> Seen | None:
        return self.stands.get(id(process))


def scene(log: JobLog, members: Sequence[Member] = ()) -> Scene:
    """members: the processes of the job, by what collected the rest."""
    dumps, states = list(all_dumps(log.files)), list(procstate.states(log.files))
    busy, on_gpus = gpus.read(log.files)
    told = ras.read(log.files)
    if not (dumps or states or busy or told.reports or members):
        return Scene(ras=told)
    processes = _joined(members, sorted(dumps, key=lambda dump: look_of(dump.head.file)), states, on_gpus)
    give_ranks(processes, _known_ranks(log, members), task_nodes(log))
    idle = gpus.idle_among_busy(busy, on_gpus)
    for gpu in idle:
        for p in processes:
            if p.gpu is not None and p.gpu == gpu.index and (gpu.node is None or p.node in (None, gpu.node)):
                p.idle = gpu
    relations = family(processes)
    working = crew(processes, relations)
    _give_missing(working)
    seen = _seen(working)
    odd = odd_ones(seen)
    return Scene(
        tuple(processes),
        working,
        relations,
        seen,
        odd,
        _merged(log, seen, odd),
        tuple(idle),
        told,
        owners := {id(dump): p for p in processes for dump in p.dumps},
        {id(owners[id(s.dump)]): s for s in seen},
    )


def _known_ranks(log: JobLog, members: Sequence[Member]) -> dict[tuple[str, int], int]:
    """What collected the rest has seen the environments whole: what lives and has no rank beside those that have is a launcher,
    whatever variable of another's it carries."""
    told = {(m.node, m.pid): m.rank for m in members if m.rank is not None}
    numbered = {node for node, _ in told}
    none = {(m.node, m.pid) for m in members if m.rank is None and m.code is None and m.node in numbered}
    return {place: rank for place, rank in (ranks_of_pids(log) | told).items() if place not in none}


def _joined(
    members: Sequence[Member], dumps: Sequence[Dump], states: Sequence[State], on_gpus: Sequence[OnGpu]
) -> list[Process]:
    table = Table()
    for member in members:
        table.add_member(member)
    for dump in dumps:
        table.add_dump(dump)
    for state in states:
        table.add_state(state)
    for held in on_gpus:
        table.add_gpu(held)
    return table.processes


def _give_missing(working: Sequence[Process]) -> None:
    """The environment of a process that has ended can no longer be read: if one did, its rank is the one that is missing."""
    ranks = {p.rank for p in working if p.rank is not None}
    ended = [p for p in working if p.ended and p.rank is None]
    gaps = set(range(max(ranks, default=0))) - ranks if len(ended) == 1 else set[int]()
    if len(gaps) == 1:
        ended[0].rank = gaps.pop()


# ---------------------------------------------------------------------------------------------- stacks
def _seen(working: Sequence[Process]) -> tuple[Seen, ...]:
    found = []
    for p in working:
        ranked = [(dump, at) for dump, at in p.looks if not at.helper]
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
