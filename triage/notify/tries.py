"""Attempts within a bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_WAIT = 0.5  # seconds, doubled each time
_MOST_TRIES = 5


class Refused(Exception):  # noqa: N818 - an answer
    """It was not sent, and why, in words."""


class TryAgain(Exception):  # noqa: N818 - an answer
    """It was not sent, but may be later. after: seconds, as the other side asks."""

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class Tries:
    """seconds: for all attempts and the waits between them."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def until_done(self, attempt: Callable[[float], None]) -> None:
        """attempt gets the seconds that are left. Errors: Refused."""
        for number in range(1, _MOST_TRIES + 1):
            try:
                attempt(max(0.1, self._ends - time.monotonic()))
                return
            except TryAgain as problem:
                wait = max(problem.after, _FIRST_WAIT * 2 ** (number - 1))
                left = self._ends - time.monotonic()
                if problem.after > max(left, 0.0):
                    raise Refused(
                        f"{problem}; it asks to wait {problem.after:.0f} s, which is longer than we do"
                    ) from None
                if number == _MOST_TRIES or wait > left:
                    raise Refused(f"{problem} ({number} attempts)" if number > 1 else str(problem)) from None
                time.sleep(wait)
