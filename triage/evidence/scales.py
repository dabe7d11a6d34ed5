"""Did a dynamic loss scale run out: halved at step after step, until it was too small for any gradient? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage.domain import LogLine

_LOWERED = re.compile(
    r"\b(?:reducing loss scale to|setting loss scale to:|reducing to) (\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,4})?)\b(?!\.\d)",
    re.IGNORECASE,
)
LEAST = 1e-6  # scalers begin at powers of two far above 1; at this one gradients that half precision can hold do not overflow
_FEWEST = 3  # times on end
_HALVED = 2.1  # times the scale before, at most; a scaler also grows, which it does not print


def run_out(lines: Iterable[LogLine]) -> LogLine | None:
    """Where the fall began that ended below LEAST, or None."""
    first: LogLine | None = None
    before, times = float("inf"), 0
    for line in lines:
        found = _LOWERED.search(line.text) if "scale" in line.text.lower() else None
        if found is None:
            continue
        scale = float(found[1])
        if not before / _HALVED <= scale < before and scale:
            first, times = None, 0
        first, before, times = first or line, scale, times + 1
        if scale < LEAST and times >= _FEWEST:
            return first
    return None
