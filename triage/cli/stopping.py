"""Ending by a signal."""

from __future__ import annotations

import signal
from types import FrameType


class Stop:
    """Set by the first signal to end; a second one ends the process at once."""

    def __init__(self) -> None:
        self.signal = 0
        self._numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
        for number in self._numbers:
            signal.signal(number, self._caught)

    def _caught(self, caught: int, _frame: FrameType | None) -> None:
        self.signal = caught
        for number in self._numbers:
            signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        return self.signal != 0
