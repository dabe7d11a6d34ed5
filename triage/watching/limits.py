"""How long a job may be silent, by its own history: median and spread, so that a few odd values change little. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

FEWEST = 3
_SPREADS = 10.0
_LONGEST = 2.0
_TO_SIGMA = 1.4826  # of a median absolute deviation


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Median, and the robust counterpart of a standard deviation."""
    middle = median(values)
    return middle, _TO_SIGMA * median(abs(value - middle) for value in values)


def learned(values: Sequence[float]) -> float:
    """Seconds that are out of the ordinary for what took these; 0 where too few were seen. A setting is the floor, not this."""
    if len(values) < FEWEST:
        return 0.0
    middle, deviation = spread(values)
    return max(middle + _SPREADS * deviation, _LONGEST * max(values))
