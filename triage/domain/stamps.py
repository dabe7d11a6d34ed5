"""When the lines of a file were written, told beside it: by a container runtime, which stamps what programs do not. Pure."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Stamps:
    """lines: numbers, ascending, from which on the time of the same place in `times` holds, in seconds since 1970; nan for none."""

    lines: array[int] = field(default_factory=lambda: array("q"))
    times: array[float] = field(default_factory=lambda: array("d"))

    def at(self, number: int) -> datetime | None:
        """When line `number` was written, None where no line before it tells."""
        place = bisect_right(self.lines, number) - 1
        told = self.times[place] if place >= 0 else math.nan
        return None if math.isnan(told) else datetime.fromtimestamp(told, UTC)
