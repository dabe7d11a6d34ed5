"""The processes of a hung job, joined over all files by node and number. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from triage.evidence.crew import Process
from triage.evidence.dumps import Dump
from triage.evidence.gpus import OnGpu
from triage.evidence.manifest import Member
from triage.evidence.processes import short
from triage.evidence.procstate import State
from triage.evidence.whose import look_of

Key = tuple[str, int]  # node without its domain, "" where unknown; process number
_IN_CONTAINERS = 1000  # below it a program's number is that within a container, which others have too
_LOOK = re.compile(r"\.\d{1,3}\.txt$")
_STILL = "DTZ"  # states that a process does not leave by itself
_NOT_ITS_OWN = ("", "t")  # unknown, or stopped by who looks at it


class Table:
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
        return self._add(pid, node, rank) if found is None else _ranked(found, rank)

    def _add(self, pid: int | None, node: str | None, rank: int | None) -> Process:
        added = Process(pid, node, rank)
        self.processes.append(added)
        if pid is not None:
            self._by_pid[pid].append(added)
        return added

    def add_member(self, member: Member) -> None:
        process = self.get(member.pid, member.node or None, member.rank)
        process.member, process.name, process.code = True, member.command, member.code
        process.parent = member.parent if process.parent is None else process.parent

    def add_dump(self, dump: Dump) -> None:
        process = self._of_look(dump) or self.find(dump.pid, dump.node, dump.rank)
        if process is None or self._is_another(process, dump):
            process = self._add(dump.pid, dump.node, dump.rank)
        _ranked(process, dump.rank)
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

    def _of_look(self, dump: Dump) -> Process | None:
        """The process of which a file says by its name that it is a later look."""
        first = _LOOK.sub(".txt", dump.head.file)
        here = self._by_pid[dump.pid] if dump.pid is not None and first != dump.head.file else []
        return next((p for p in here if any(d.head.file == first for d in p.dumps)), None)

    @staticmethod
    def _is_another(process: Process, dump: Dump) -> bool:
        """Is a dump in another file of another container's process of this number? A second look says that it is one."""
        if dump.node is not None or dump.rank is not None or dump.pid is None or dump.pid >= _IN_CONTAINERS:
            return False
        files = {d.head.file for d in process.dumps if d.threads}
        return bool(files) and dump.head.file not in files and look_of(dump.head.file) == 1

    def add_state(self, state: State) -> None:
        process = self.get(state.pid, state.node, state.rank)
        process.states.append(state)
        process.state = _settled(process.states)
        process.local_rank = state.local_rank if process.local_rank is None else process.local_rank
        process.parent = state.parent if process.parent is None else process.parent

    def add_gpu(self, held: OnGpu) -> None:
        process = self.get(held.pid, held.node)
        process.gpu, process.on_gpu = held.index, held.line


def _ranked(process: Process, rank: int | None) -> Process:
    if process.rank is None:
        process.rank = rank
    return process


def _settled(states: Sequence[State]) -> State:
    """What several lines on one process come to: of one look the worst; what a later look no longer finds has passed."""
    by_look: dict[int, State] = {}
    for state in states:
        before = by_look.get(state.look)
        by_look[state.look] = state if before is None else _worse(before, state)
    first, *later = (by_look[n] for n in sorted(by_look))
    for state in later:
        if state.letter not in _NOT_ITS_OWN and (state.letter in _STILL or first.letter in _STILL + "t"):
            first = first if first.letter == state.letter else state
    return first


def _worse(before: State, state: State) -> State:
    told, other = before, state
    if before.letter in _NOT_ITS_OWN or (state.letter in _STILL and before.letter not in _STILL):
        told, other = (state, before) if state.letter not in _NOT_ITS_OWN else (before, state)
    if not told.wchan and other.wchan and other.letter in ("", told.letter):
        return replace(told, wchan=other.wchan)
    return told


def give_ranks(processes: Sequence[Process], known: Mapping[Key, int], nodes: Sequence[str]) -> None:
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
