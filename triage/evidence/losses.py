"""Did the loss of a run diverge, measured by its own level? Pure.

Single spikes pass, and so does a loss that comes back: only a run whose loss rose many times over where it began, for
several steps on end, and did not come down again to what it had reached before has diverged.
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


def diverged(steps: Sequence[Step]) -> LogLine | None:
    """The line from which on the loss stands at TIMES its first level, or None."""
    seen = list(losses(steps))
    values = [value for _, value in seen]
    if len(values) < FEWEST or min(values) <= 0:
        return None  # a loss below zero has no level that it can be a multiple of
    level = [median(values[i : i + WINDOW]) for i in range(len(values) - WINDOW + 1)]
    first = max(level[:WINDOW])
    risen = next((i for i, now in enumerate(level) if now >= TIMES * first), None)
    if risen is None or level[-1] <= STAYS * min(level[: risen + 1]):
        return None
    return seen[risen + WINDOW // 2][0]
