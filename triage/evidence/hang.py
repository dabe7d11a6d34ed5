"""What else watchdogs and launchers tell of a hang or a kill: who asked for dumps, who had nothing to wait for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from triage.domain import LogLine
from triage.evidence.collectives import rank_of

_ASKED = re.compile(
    r"First PG on this rank to signal dumping|dump signal due to a collective timeout from +this local rank"
)
_FOLLOWED = re.compile(
    r"[Oo]bserved flight recorder dump signal from another rank|dump signal (?:due to a collective timeout )?from +(?:another )?rank"
)
_STATE = re.compile(r"last enqueued (?:NCCL )?work: (-?\d{1,20}), last completed (?:NCCL )?work: (-?\d{1,20})")


@dataclass(frozen=True, slots=True)
class Dumps:
    """initiators: ranks whose own watchdog fired; followers: those that dumped because another rank did."""

    initiators: tuple[int, ...] = ()
    followers: tuple[int, ...] = ()
    idle: tuple[int, ...] = ()  # had completed all they enqueued while others waited: they never joined the collective


def dumps(lines: Iterable[LogLine]) -> Dumps:
    """Of the lines of all ranks. A rank that asked itself is no follower."""
    asked: dict[int, None] = {}
    followed: dict[int, None] = {}
    state: dict[int, tuple[int, int]] = {}
    for line in lines:
        rank = rank_of(line)
        if rank is None:
            continue
        if _ASKED.search(line.text):
            asked.setdefault(rank)
        elif _FOLLOWED.search(line.text):
            followed.setdefault(rank)
        elif found := _STATE.search(line.text):
            state.setdefault(rank, (int(found[1]), int(found[2])))
    return Dumps(tuple(asked), tuple(r for r in followed if r not in asked), _idle(state))


def _idle(state: dict[int, tuple[int, int]]) -> tuple[int, ...]:
    waiting = [r for r, (enqueued, completed) in state.items() if enqueued > completed]
    idle = [r for r, (enqueued, completed) in state.items() if enqueued == completed]
    return tuple(sorted(idle)) if waiting and len(idle) <= len(waiting) else ()
