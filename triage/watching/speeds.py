"""Seconds that a step takes: now, and as usual. Pure but for what it remembers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

_RECENT = 3  # measures that tell the speed of now
_STEPS = 8  # that make one value of the usual speed
_MOST = 256  # values; then every second one is let go
_FAST = 0.1  # quantile: a job that slowed long ago has more slow values than fast ones


@dataclass(slots=True)
class Speeds:
    """A measure is the mean over the steps between two moments."""

    _recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _open: list[tuple[float, int]] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)

    def take(self, seconds: float, steps: int) -> None:
        """seconds: of each of these steps."""
        if len(self._recent) == _RECENT:
            self._before(*self._recent[0])
        self._recent.append((seconds, steps))

    def take_earlier(self, seconds: float, steps: int) -> None:
        """Of a part of the log that lies before all that was taken."""
        self._before(seconds, steps)

    def _before(self, seconds: float, steps: int) -> None:
        self._open.append((seconds, steps))
        if sum(many for _, many in self._open) >= _STEPS:
            self._values.append(median(each for each, _ in self._open))
            self._open.clear()
            if len(self._values) > _MOST:
                del self._values[1::2]

    @property
    def now(self) -> float | None:
        return median(each for each, _ in self._recent) if len(self._recent) == _RECENT else None

    @property
    def usual(self) -> float | None:
        """Of its faster times."""
        return sorted(self._values)[int(_FAST * len(self._values))] if self._values else None
