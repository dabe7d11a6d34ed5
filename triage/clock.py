"""How long the stages of a piece of work took."""

from __future__ import annotations

import time


class Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.laps[stage] = now - self._last
        self._last = now
