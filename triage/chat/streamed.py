"""Events of work that calls back, such as a model that streams, as an iterator. The work stops when nobody listens."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from triage.chat.values import Event

Emit = Callable[[Event], None]
T = TypeVar("T")


class _NobodyListens(BaseException):
    """Who asked has gone."""


@dataclass(frozen=True, slots=True)
class _End:
    value: Any = None
    error: BaseException | None = None


def streamed(work: Callable[[Emit], T]) -> Generator[Event, None, T]:
    """What the work emits, as it comes; returns what it returns, raises what it raises. In a thread of its own, which ends
    at its next event once the iterator is closed."""
    found: queue.SimpleQueue[Event | _End] = queue.SimpleQueue()
    stop = threading.Event()

    def emit(event: Event) -> None:
        if stop.is_set():
            raise _NobodyListens
        found.put(event)

    def run() -> None:
        try:
            found.put(_End(work(emit)))
        except _NobodyListens:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again by who listens
            found.put(_End(error=error))

    threading.Thread(target=run, name="triage-chat", daemon=True).start()
    try:
        while not isinstance(item := found.get(), _End):
            yield item
    finally:
        stop.set()
    if item.error is not None:
        raise item.error
    value: T = item.value
    return value
