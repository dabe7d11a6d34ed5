"""A call that may never come back, as one that reads from a file system that hangs, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Held:
    """At most one call at a time: while the last one has not come back, none is begun."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether the last call has not come back."""
        return self._thread is not None and self._thread.is_alive()

    def within(self, seconds: float, call: Callable[[], T]) -> T | None:
        """What the call returns; None where it does not come back in time. Errors: those of the call."""
        if self.busy:
            return None
        found: list[Any] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(call())
            except BaseException as error:  # noqa: BLE001 - raised where it was asked for
                failed.append(error)

        self._thread = threading.Thread(target=run, name="held", daemon=True)
        self._thread.start()
        self._thread.join(seconds)
        if failed:
            raise failed[0]
        return found[0] if found else None
