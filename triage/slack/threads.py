"""What each thread is about, kept over restarts; and what was seen already."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from triage.chat.values import Subject
from triage.store.chat_values import StoredTurn

FILE = "threads.json"
MOST = 2000  # threads that are remembered
MOST_OPEN = 8  # whose logs stay open
MOST_SEEN = 5000


@dataclass(slots=True)
class Thread:
    """chat: its session in the database; subject: once it was opened here; turns: what was said since."""

    incident: int | None = None
    chat: int | None = None
    subject: Subject | None = None
    turns: Sequence[StoredTurn] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Threads:
    """A thread is known by its channel and the time of its first message."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Thread] = OrderedDict(self._kept())

    def begin(self, channel: str, thread: str, subject: Subject) -> None:
        with self._lock:
            self._known[f"{channel} {thread}"] = Thread(subject.incident, subject=subject)
            self._bound()
            self._write()

    def knows(self, channel: str, thread: str) -> bool:
        return f"{channel} {thread}" in self._known

    @contextmanager
    def using(self, channel: str, thread: str) -> Iterator[Thread]:
        """For one turn at a time; what is changed of it is kept."""
        known = self._known[f"{channel} {thread}"]
        with known.lock:
            before = known.incident, known.chat
            yield known
            with self._lock:
                self._known.move_to_end(f"{channel} {thread}")
                self._bound()
                if before != (known.incident, known.chat):
                    self._write()

    def _bound(self) -> None:
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        opened = [known for known in self._known.values() if known.subject is not None and known.incident is not None]
        for known in opened[:-MOST_OPEN]:
            known.subject = None

    def _kept(self) -> Iterator[tuple[str, Thread]]:
        """A file that is damaged is as none: the incidents can be asked for anew."""
        document: Any = {}
        with suppress(OSError, ValueError):
            document = json.loads(self._path.read_text("utf-8"))
        for name, kept in document.items() if isinstance(document, dict) else ():
            if isinstance(kept, list) and len(kept) == 2 and all(isinstance(n, int | None) for n in kept):
                yield name, Thread(*kept)

    def _write(self) -> None:
        document = {name: [t.incident, t.chat] for name, t in self._known.items() if t.incident is not None}
        written = self._path.with_suffix(".new")
        with suppress(OSError):  # a full disk ends no conversation
            written.write_text(json.dumps(document), "utf-8")
            written.replace(self._path)


class Seen:
    """What Slack sent already: it repeats what it takes for lost."""

    def __init__(self) -> None:
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def first(self, key: str) -> bool:
        with self._lock:
            if key in self._keys:
                return False
            self._keys[key] = None
            if len(self._keys) > MOST_SEEN:
                self._keys.popitem(last=False)
            return True

    def forget(self, key: str) -> None:
        with self._lock:
            self._keys.pop(key, None)


def fresh(known: Thread, open_incident: Callable[[int], Subject]) -> Subject | None:
    """As it stands in the database now, with its log open still. None: it was never recorded, and this process did not
    diagnose it. Errors: NotFoundError, StoreError."""
    if known.incident is None:
        return known.subject
    found, before = open_incident(known.incident), known.subject
    if (
        before
        and before.incident == found.incident
        and before.stored
        and found.stored
        and before.stored.version == found.stored.version
    ):
        return replace(found, open_log=before.open_log)
    return found
