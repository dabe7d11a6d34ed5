"""The processes of a hung job: which do its work, and which only started others and wait for their end. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from triage.domain import LogLine
from triage.evidence.dumps import Dump
from triage.evidence.gpus import Gpu
from triage.evidence.procstate import State
from triage.evidence.stacks import look
from triage.evidence.standing_in import Standing

# Programs that start others and do nothing else; how a kernel calls a process that waits for the end of a child.
_STARTERS = re.compile(
    r"-?(?:ba|da|z|k|tc|c)?sh|mpirun|mpiexec(?:\.\w+)?|orterun|prterun|orted|prted|hydra_\w+|pmi_proxy|srun|slurmstepd|torchrun"
    r"|accelerate|deepspeed|horovodrun|timeout|nohup|sudo|tini|dumb-init|numactl|singularity|apptainer|starter(?:-suid)?"
)
_FOR_CHILD = frozenset({"do_wait", "do_wait4", "kernel_wait4", "kernel_waitid", "wait4"})
_DEFUNCT = re.compile(r"^\[(.{1,40})\](?: <defunct>)?$|^(.{1,200}?) <defunct>$")
_PRINTS = frozenset({"tee", "cat", "tail", "grep", "sed", "awk", "ts"})
# Python programs that serve others, by their command. What a forkserver forks has its command too, and may be a rank.
_SERVES = re.compile(r"\bmultiprocessing\.(?:resource|semaphore)_tracker\b")
_OUR_OWN = re.compile(
    r"\btriage(?:-look\b|\s+(?:hang|watch|diagnose|chat|serve)\b)"
)  # started by the same shell as the job
_SHOWN = 60  # characters of a command


@dataclass
class Process:
    """parent: its number; member: what collected the rest says that it is of the job; code: with what it ended, as `wait` has it;
    states: in all looks, state: what they come to."""

    pid: int | None
    node: str | None
    rank: int | None = None
    local_rank: int | None = None
    gpu: int | None = None
    on_gpu: LogLine | None = None
    parent: int | None = None
    member: bool = False
    name: str = ""  # as the kernel has it
    code: int | None = None
    states: list[State] = field(default_factory=list)
    state: State | None = None
    dumps: list[Dump] = field(default_factory=list)
    refused: LogLine | None = None  # the line that says that no tool could attach
    denied: bool = False
    idle: Gpu | None = None  # its GPU, where that does nothing while the others are busy

    @cached_property
    def looks(self) -> tuple[tuple[Dump, Standing], ...]:
        """Where it stood, in order; asked for once all its dumps are there."""
        return tuple((dump, at) for dump in self.dumps if (at := look(dump)) is not None)

    @property
    def helps(self) -> bool:
        """Is it a launcher or a worker, by its command or its stack?"""
        if any(_SERVES.search(state.command) for state in self.states):
            return True
        return bool(self.looks) and all(at.helper for _, at in self.looks)

    @property
    def for_child(self) -> bool:
        """Does it wait for the end of a process that it started?"""
        if self.looks:
            return self.looks[-1][1].for_child
        return self.state is not None and self.state.letter == "S" and self.state.wchan in _FOR_CHILD

    @property
    def ended(self) -> bool:
        """Has it ended, and whoever started it not asked how?"""
        return self.state is not None and self.state.letter == "Z"

    @property
    def command(self) -> str:
        """As ps has it, without what ps says of its end."""
        told = next((s.command for s in self.states if " " in s.command and "<defunct>" not in s.command), "")
        told = told or next((s.command for s in self.states if s.command), self.name)
        ended = _DEFUNCT.match(told)
        return ((ended[1] or ended[2]) if ended else told)[:_SHOWN]

    @property
    def program(self) -> str:
        """What it runs, to compare by: siblings of one program do the same work."""
        return self.name or PurePosixPath(self.command.split(" ", 1)[0]).name

    @property
    def place(self) -> str:
        """rank 3 (process 4711, node n2), in words; one without a rank by its command."""
        name = f"rank {self.rank}" if self.rank is not None else f"process {self.pid}"
        where = [f"process {self.pid}"] if self.rank is not None and self.pid is not None else []
        where += [f"`{self.command}`"] if self.rank is None and self.command else []
        where += [f"GPU {self.gpu}"] if self.gpu is not None else []
        where += [self.node] if self.node else [self.dumps[0].head.file] if self.rank is None and self.dumps else []
        return f"{name} ({', '.join(where)})" if where else name


@dataclass(frozen=True, slots=True)
class Family:
    """Who started whom. starters: those that only wait for what they started, by the identity of a process."""

    children: Mapping[int, tuple[Process, ...]]
    starters: frozenset[int]

    def of(self, process: Process) -> tuple[Process, ...]:
        return self.children.get(id(process), ())

    def starts(self, process: Process) -> bool:
        return id(process) in self.starters


def family(processes: Sequence[Process]) -> Family:
    by_number: dict[tuple[str | None, int], list[Process]] = defaultdict(list)
    for p in processes:
        if p.pid is not None:
            by_number[p.node, p.pid].append(p)
    children: dict[int, list[Process]] = defaultdict(list)
    for p in processes:
        above = by_number.get((p.node, p.parent), []) if p.parent is not None and p.parent != p.pid else []
        if len(above) == 1:  # of containers whose node is not known each has a process 1
            children[id(above[0])].append(p)
    starters = frozenset(id(p) for p in processes if _starts(p, children.get(id(p), ())))
    return Family({key: tuple(of) for key, of in children.items()}, starters)


def _starts(p: Process, children: Sequence[Process]) -> bool:
    if p.rank is not None:  # it works too, but for a shell or `timeout` in which srun starts the rank
        return bool(_STARTERS.fullmatch(p.program)) and any(child.rank == p.rank for child in children)
    if any(child.rank is not None for child in children):
        return True
    waits_for_stack = bool(p.looks) and p.for_child
    return waits_for_stack or (bool(children) and (p.for_child or bool(_STARTERS.fullmatch(p.program))))


def crew(processes: Sequence[Process], of: Family) -> tuple[Process, ...]:
    """The processes that do the job's work, and none of the others of its nodes; what a rank started is none, though it has
    its variables. Where no rank is known: what shows a stack of its own, and all that what collected it says are of the job.
    """
    ranked = [p for p in processes if p.rank is not None and not of.starts(p)]
    # Where no rank is known, what shows a stack of its own may be one; a shell that started the ranks shows none.
    works = ranked or [p for p in processes if (p.member or _shows(p)) and not (of.starts(p) or p.helps)]
    found = [p for p in processes if _known(p, bool(ranked)) and not (of.starts(p) or p.helps)]
    found += _siblings(processes, found, of)
    below = {id(child) for p in works for child in of.of(p)}
    rest = [p for p in found if id(p) not in below]
    if len(rest) == 1 and not ranked:  # one that started others and works with them
        rest += [p for p in found if id(p) in {id(child) for child in of.of(rest[0])}]
    return tuple(p for p in rest if not _ended_aside(p, rest))


def _shows(p: Process) -> bool:
    return any(dump.threads for dump in p.dumps)


def _known(p: Process, ranks: bool) -> bool:
    named = p.rank is not None or p.gpu is not None or p.local_rank is not None
    return named or (p.member and not ranks) or p.refused is not None or _shows(p)


def _siblings(processes: Sequence[Process], found: Sequence[Process], of: Family) -> list[Process]:
    """Of the same program as one of those and started by the same: it worked with them, though nothing was got of it."""
    there = {id(p) for p in found}
    alike = {(p.node, p.parent, p.program) for p in found if p.parent not in (None, 0, 1) and p.program}
    return [
        p
        for p in processes
        if id(p) not in there
        and (p.node, p.parent, p.program) in alike
        and not (of.starts(p) or p.helps or _OUR_OWN.search(p.command))
    ]


def _ended_aside(p: Process, others: Collection[Process]) -> bool:
    """Has a process ended that did other work than those that live?"""
    if not p.ended or p.rank is not None:
        return False
    return not any(o.program == p.program and not o.ended for o in others)


def lone(working: Sequence[Process]) -> Process | None:
    """The one process that works, where all others started it or take what it prints."""
    own = [p for p in working if p.member and p.program not in _PRINTS]
    return own[0] if len(own) == 1 and not own[0].ended else None
