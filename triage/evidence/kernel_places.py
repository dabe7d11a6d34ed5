"""Where the processes of a job wait in the kernel, and who of them does not wait as the others do. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from triage.evidence.crew import Process
from triage.evidence.procstate import SLEEPS, State

RUNS, SLEEPING = "runs", "sleeps"
_FEWEST = 3  # processes, for one that waits elsewhere to be the odd one by number alone
_FAMILIES = (
    ("a pipe", re.compile(r"pipe_(?:read|write)")),
    ("a socket", re.compile(r"unix_stream|unix_dgram|sk_wait|sk_stream|inet_|tcp_|wait_woken|skb|udp_")),
    ("a lock or another thread", re.compile(r"futex")),
    ("something that it polls for", re.compile(r"poll|select")),
)


@dataclass(frozen=True, slots=True)
class Places:
    """Of processes of one program: waiting: those that wait alike; what: for what, in words; where: the kernel's function; odd:
    those that do not; twice: each of the odd ones was found so more than once."""

    waiting: tuple[Process, ...] = ()
    what: str = ""
    where: str = ""
    odd: tuple[Process, ...] = ()
    twice: bool = False


def places(working: Sequence[Process]) -> Places:
    """Of the largest group of one program; of none that moves between the looks anything is said."""
    groups: dict[str, list[Process]] = defaultdict(list)
    for p in working:
        groups[p.program].append(p)
    group = max(groups.values(), key=len, default=[])
    settled = {id(p): kind for p in group if (kind := kind_of(p))}
    counted = Counter(kind for kind in settled.values() if kind not in (RUNS, SLEEPING))
    if not counted:
        return Places()
    usual, many = counted.most_common(1)[0]
    waiting = tuple(p for p in group if settled.get(id(p)) == usual)
    odd = tuple(
        p
        for p in group
        if (kind := settled.get(id(p), usual)) != usual and (kind in (RUNS, SLEEPING) or len(group) >= _FEWEST)
    )
    if many < len(odd) or len(waiting) + len(odd) < len(group):
        odd = ()
    where = next((s.wchan for s in waiting[0].states if s.wchan), "")
    twice = bool(odd) and all(len({s.look for s in p.states}) > 1 for p in odd)
    return Places(waiting, usual, where, odd, twice)


def kind_of(p: Process) -> str:
    """What it does in all looks, one of RUNS, SLEEPING or what it waits for; "" where that differs or is not known, or its state says more."""
    kinds = {_of(state) for state in p.states if state.letter not in ("", "t")}
    return kinds.pop() if len(kinds) == 1 else ""


def _of(state: State) -> str:
    if state.letter == "R":
        return RUNS
    if state.letter not in "SI" or not state.wchan:
        return ""
    if SLEEPS.search(state.wchan):
        return SLEEPING
    return next((words for words, pattern in _FAMILIES if pattern.search(state.wchan)), state.wchan)


def does(p: Process) -> str:
    """What a process does, in words; "" where that is not known."""
    kind = kind_of(p)
    if kind == RUNS:
        return "keeps a CPU busy"
    if kind == SLEEPING:
        return "sleeps until a time"
    wchan = next((s.wchan for s in reversed(p.states) if s.wchan), "")
    return f"waits for {kind} ({wchan})" if kind and kind != wchan else f"waits in {kind}" if kind else ""
