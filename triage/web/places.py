"""How many may wait for something slow at once: each of them holds one of the threads that answer everybody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from triage.errors import TriageError

PATIENCE = 1.0  # seconds: most answers are short


class FullError(TriageError):
    """More was asked for at once than the server takes."""


class Places:
    """So many. Safe for threads."""

    def __init__(self, count: int, full: str) -> None:
        self._left, self._full = threading.BoundedSemaphore(count), full

    @contextmanager
    def one(self) -> Iterator[None]:
        """Errors: FullError where none becomes free."""
        if not self._left.acquire(timeout=PATIENCE):
            raise FullError(self._full, "try again in a while")
        try:
            yield
        finally:
            self._left.release()
