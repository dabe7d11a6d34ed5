"""Ending by a signal."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

import typer

_ONE = 1.0  # seconds within which several are one: `timeout` and schedulers signal the process, then its group


class Stop:
    """Set by the first signal to end; a later one ends the process at once."""

    def __init__(self) -> None:
        self.signal = 0
        self._at = 0.0
        self._numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
        for number in self._numbers:
            signal.signal(number, self._caught)

    def _caught(self, caught: int, _frame: FrameType | None) -> None:
        if not self.signal:
            self.signal, self._at = caught, time.monotonic()
        elif time.monotonic() - self._at > _ONE:
            signal.signal(caught, signal.SIG_DFL)
            os.kill(os.getpid(), caught)

    def __call__(self) -> bool:
        return self.signal != 0


@contextlib.contextmanager
def cleaned_up() -> Iterator[None]:
    """What is done inside is ended by the first signal in a way that lets it clean up, and later ones change nothing of that."""
    caught = 0

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal caught
        caught = number
        for other in before:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(128 + (caught or signal.SIGINT)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
