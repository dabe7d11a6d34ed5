"""The log of an incident: compressed, and piece by piece what was left out of it."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.chat.values import OpenedLog
from triage.domain import Folded, LogLine
from triage.errors import NotFoundError
from triage.ingest.text import readable
from triage.redact import redact
from triage.text import rank_ranges, seen
from triage.web.parts import Parts
from triage.web.places import Places

MOST_OPEN = 4
MOST_READERS = 8  # who wait for a log, or for lines of one
MOST_LINES = 2000  # of one piece
MOST_TEXT = 2000  # characters of a line


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str
    note: str = ""  # how often, on which ranks
    marks: tuple[str, ...] = ()  # ids of the evidence that it is


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines left out, the first and the last of them."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class File:
    name: str
    pieces: tuple[Line | Gap, ...]


@dataclass(frozen=True, slots=True)
class Compressed:
    files: tuple[File, ...]
    account: Mapping[str, Any]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Known:
    """A log, once it was asked for."""

    opened: OpenedLog | None = None
    compressed: Compressed | None = None


class Logs:
    """Those opened last. Safe for threads."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: OrderedDict[tuple[int, int], _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # one log is read at a time: the next one who asks may want the same
        self._places = Places(MOST_READERS, f"{MOST_READERS} requests are reading logs already")

    def compressed(self, incident: int) -> Compressed:
        """Errors: NotFoundError, FullError, InputError that says why it cannot be read again."""
        stored = self._parts.store.get(incident)
        known = self._entry(incident, stored.version)
        if known.compressed is None:
            opened = self._opened(known, incident)
            with self._places.one(), self._reading:
                known.compressed = known.compressed or _compressed(self._parts.fold(opened), stored.result)
        return known.compressed

    def lines(self, incident: int, file: str, first: int, count: int) -> list[Line]:
        """At most MOST_LINES. Errors: NotFoundError, FullError, InputError."""
        opened = self._opened(self._entry(incident, self._parts.store.get(incident).version), incident)
        if file not in {f.name for f in opened.log.files}:
            raise NotFoundError("the incident has no such file")
        with self._places.one():  # a line far into a packed file takes its time
            raw = itertools.islice(opened.read(file, first), min(count, MOST_LINES))
            return [Line(line.number, _shown(readable(line.raw))) for line in raw]

    def _entry(self, incident: int, version: int) -> _Known:
        key = (incident, version)
        with self._lock:
            found = self._known.setdefault(key, _Known())
            self._known.move_to_end(key)
            while len(self._known) > MOST_OPEN:
                self._known.popitem(last=False)
        return found

    def _opened(self, known: _Known, incident: int) -> OpenedLog:
        if known.opened is None:
            with self._places.one(), self._reading:
                known.opened = known.opened or self._parts.open_log(incident)
        return known.opened


def _compressed(folded: Folded, result: Mapping[str, Any]) -> Compressed:
    marks: dict[tuple[str, int], list[str]] = {}
    for e in result["evidence"]:
        marks.setdefault((e["file"], e["line"]), []).append(e["id"])
    ends, shown = dict(folded.files), itertools.groupby(folded.lines, key=lambda line: line.file)
    files = {name: File(name, tuple(_pieces(name, list(lines), ends.get(name, 0), marks))) for name, lines in shown}
    silent = [File(name, (Gap(1, end),)) for name, end in folded.files if name not in files and end]
    account = result.get("compression") or {}
    return Compressed((*files.values(), *silent), account, (*folded.cut, *folded.missing))


def _pieces(
    name: str, lines: Sequence[LogLine], end: int, marks: Mapping[tuple[str, int], Sequence[str]]
) -> Iterator[Line | Gap]:
    last = 0
    for line in lines:
        if line.number > last + 1:
            yield Gap(last + 1, line.number - 1)
        often = [f"×{line.repeats:,}"] if line.repeats > 1 else []
        often += [f"ranks {rank_ranges(line.ranks)}"] if often and len(line.ranks) > 1 else []
        yield Line(line.number, _shown(line.text), ", ".join(often), tuple(marks.get((name, line.number), ())))
        last = max(last, line.number)
    if end > last:
        yield Gap(last + 1, end)


def _shown(text: str) -> str:
    text = seen(redact(text))
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} … ({len(text) - MOST_TEXT:,} characters more)"
