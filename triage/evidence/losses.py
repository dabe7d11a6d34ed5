"""Did the loss of a run diverge, measured by its own level? Pure.

Single spikes pass, and so does a loss that comes back. A run has diverged whose loss rose many times over where it began, for several
steps on end, and did not come down again to what it had reached before; so has one that left a level it had held for long and stood
at over twice that to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from triage.domain import LogLine
from triage.evidence.metrics import losses
from triage.evidence.progress import Step

FEWEST = 24  # values, for a level to be known
WINDOW = 5  # steps on end; one batch may be bad
TIMES = 20  # the level that the run began with
STAYS = 1.25  # times the best level before, at the end
LONG = 64  # records that a level was held
TO_THE_END = 32  # last records
DOUBLED = 2.0  # times the highest of the level that was held: the least of the last records
TINY = 0.1  # a loss below it doubles by a penalty that grows as training goes on, as in reinforcement learning


def diverged(steps: Sequence[Step]) -> LogLine | None:
    """The line from which on the loss stands far above its level, or None."""
    seen = list(losses(steps))
    values = [value for _, value in seen]
    if len(values) < FEWEST or min(values) <= 0:
        return None  # a loss below zero has no level that it can be a multiple of
    at = _risen_many_times(values)
    if at is None:
        at = _left_its_level(values, _last_training(steps, seen))
    return None if at is None else seen[at][0]


def _risen_many_times(values: Sequence[float]) -> int | None:
    level = [median(values[i : i + WINDOW]) for i in range(len(values) - WINDOW + 1)]
    first = max(level[:WINDOW])
    risen = next((i for i, now in enumerate(level) if now >= TIMES * max(first, TINY)), None)
    if risen is None or level[-1] <= STAYS * min(level[: risen + 1]):
        return None
    return risen + WINDOW // 2


def _left_its_level(values: Sequence[float], begin: int) -> int | None:
    """Did it hold a level, every record of it under half of what no record at the end comes down to?"""
    own = values[begin:]
    held = own[:-TO_THE_END]
    end = min(own[-TO_THE_END:])
    if len(held) < LONG or end < DOUBLED * min(held):  # no level is lower than the lowest record
        return None
    bound = min(max(held[i : i + LONG]) for i in range(len(held) - LONG + 1))
    if bound < TINY or end < DOUBLED * bound:
        return None
    return begin + 1 + max(i for i, value in enumerate(own) if value <= bound)


def _last_training(steps: Sequence[Step], seen: Sequence[tuple[LogLine, float]]) -> int:
    """Where in `seen` the numbers of steps last went back: a restart, or another training with a level of its own."""
    numbers = {step.line.number: step.number for step in steps}
    begin, before = 0, None
    for at, (line, _) in enumerate(seen):
        number = numbers.get(line.number)
        if number is not None and before is not None and number < before:
            begin = at
        before = number if number is not None else before
    return begin
