"""Messages of `triage watch`, sent while it looks on: a channel that does not answer holds nothing up."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from triage.cli import output
from triage.cli.watch_news import message

if TYPE_CHECKING:
    from triage.notify import Notifier, Sent

_TICK = 0.1


class Messages:
    """Sent one after the other, in the order in which they came."""

    def __init__(self, notifier: Notifier, quiet: bool) -> None:
        self._notifier, self._quiet = notifier, quiet
        self._due: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Sent, ...]] = queue.SimpleQueue()
        self._left = 0  # that were not said to be sent or not
        threading.Thread(target=self._send, name="messages", daemon=True).start()

    def _send(self) -> None:
        while True:
            self._done.put(self._notifier.send(message(self._due.get())))

    def post(self, document: dict[str, Any]) -> None:
        self._left += 1
        self._due.put(document)

    def say(self) -> None:
        """What came of those that are through."""
        from triage.cli import notifying

        while not self._done.empty():
            notifying.say(self._done.get(), self._quiet)
            self._left -= 1
            if self._notifier.problem:
                output.note(self._notifier.problem, self._quiet)

    def wait(self, seconds: float) -> None:
        """Until all are through, but no longer."""
        ends = time.monotonic() + seconds
        while self._left and time.monotonic() < ends:
            self.say()
            time.sleep(_TICK)
        self.say()
        if self._left:
            output.note(f"{self._left} message{'s were' if self._left > 1 else ' was'} not sent to the end")
