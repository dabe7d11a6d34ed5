"""How often to save: the interval at which saves and lost work cost least, and what they cost now. Pure. Times in seconds.

Young 1974: sqrt(2 C M), for a save of C seconds and a failure every M. Daly 2006 adds terms for a C that is not small beside M.
The share of time lost at an interval t: C/t for the saves, t/(2M) for the work since the last one, (R + D)/M to start again and to notice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

OF_ONE_GPU = (
    7.9 * 1024 * 3600
)  # seconds between failures: 7.9 h at 1,024 GPUs, as Meta published of its research cluster


@dataclass(frozen=True, slots=True)
class Advice:
    """young, daly: intervals; now, then: shares of time lost at the present interval and at Daly's; None where none is known."""

    save: float
    between: float
    young: float
    daly: float
    then: float
    now: float | None
    every: float | None
    detect: float
    restart: float

    @property
    def helps(self) -> bool:
        """Not where a save takes as long as the job lives: the formulas are for saves that mostly end."""
        return self.save < self.between


def young(save: float, between: float) -> float:
    return math.sqrt(2 * save * between)


def daly(save: float, between: float) -> float:
    """Where a save takes twice as long as the job lives there is no better than one save in that time."""
    if save >= 2 * between:
        return between
    ratio = save / (2 * between)
    return math.sqrt(2 * save * between) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save


def lost(every: float, save: float, between: float, restart: float = 0.0, detect: float = 0.0) -> float:
    """The share of time, at most 1."""
    return min(1.0, save / (every + save) + every / (2 * between) + (restart + detect) / between)


def advise(save: float, between: float, every: float | None, detect: float, restart: float) -> Advice:
    best = daly(save, between)
    now = lost(every, save, between, restart, detect) if every else None
    return Advice(
        save,
        between,
        young(save, between),
        best,
        lost(best, save, between, restart, detect),
        now,
        every,
        detect,
        restart,
    )
