"""The conversations that are open: one of each person about each incident, and one about all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from triage.chat.conversation import Conversation
from triage.chat.values import Event
from triage.errors import TriageError
from triage.web.access import Caller
from triage.web.parts import Parts
from triage.web.places import Places

MOST_OPEN = 200
MOST_ANSWERS = 12  # at once: a model may take minutes for each
_KINDS = {"Text": "text", "Cited": "cited", "ToolUsed": "tool", "Asks": "asks", "Note": "note", "Done": "done"}


class BusyError(TriageError):
    """A question is being answered in this conversation."""


@dataclass(slots=True)
class Open:
    conversation: Conversation
    lock: threading.Lock = field(default_factory=threading.Lock)


class Chats:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._open: OrderedDict[tuple[str, str, int | None], Open] = OrderedDict()
        self._lock = threading.Lock()
        self._places = Places(MOST_ANSWERS, f"{MOST_ANSWERS} questions are being answered already")

    def get(self, caller: Caller, incident: int | None) -> Open:
        """Errors: NotFoundError, StoreError."""
        key = (caller.name, caller.role, incident)
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        made = Open(self._parts.converse(incident, caller.name, caller.writes))
        with self._lock:
            found = self._open.setdefault(key, made)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        return found

    def ask(self, found: Open, said: str) -> Iterator[Event]:
        """Errors: BusyError, FullError. Closed before its end, the answer is kept as stopped."""
        if not found.lock.acquire(blocking=False):
            raise BusyError("the last question is being answered still", "wait for its answer")
        try:
            with self._places.one(), closing(found.conversation.ask(said)) as events:
                yield from events
        finally:
            found.lock.release()


def as_json(event: Event) -> dict[str, Any]:
    """kind: text, cited, tool, note, asks or done, and the fields of triage/chat/values.py."""
    return {"kind": _KINDS[type(event).__name__], **asdict(event)}
