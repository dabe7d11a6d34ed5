"""The job's logs, read as they grow, and what they say of its progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from triage.domain import LogLine, RawLine
from triage.ingest import names
from triage.ingest.lines import LineParser
from triage.ingest.tail import Lines, Tail, near_end
from triage.watching.logprogress import LogProgress
from triage.watching.values import LogView

_HISTORY = 1 << 20  # bytes of a log that was there before, which tell how long its phases take
_MOST = 400  # lines of one look at one file; of more the last ones tell enough
_OLD = 30.0  # seconds without growth after which a log is silent since before we came


class Logs:
    """Files that may not be there yet, may be rotated, cut or written anew."""

    def __init__(self, names_: Sequence[str] = ()) -> None:
        self._progress = LogProgress()
        self._files: dict[str, tuple[Tail, LineParser]] = {}
        self._first = True
        self._read = 0
        self.add(names_)

    def add(self, names_: Sequence[str]) -> None:
        for name in names_:
            if name not in self._files:
                place = names.place(name)
                tail = Tail(Path(name), near_end(Path(name), _HISTORY))
                self._files[name] = (tail, LineParser(name, rank=place.rank, node=place.node))

    @property
    def names(self) -> list[str]:
        return list(self._files)

    def __bool__(self) -> bool:
        return bool(self._files)

    def look(self, now: float) -> LogView:
        """now: seconds of the clock that only grows."""
        for name, (tail, parser) in self._files.items():
            known = tail.read > 0
            size = 0
            lines: list[LogLine] = []
            for item in tail.poll():
                if isinstance(item, Lines):
                    raw = b"".join(item.chunks).splitlines()
                    size += item.size
                    for line in raw[-_MOST if known else -4 * _MOST :]:
                        self._read += 1  # in order, by which the parser knows the lines of a key that go together
                        lines.append(parser.parse(RawLine(self._read, line)))
                else:
                    self._progress.take(lines, size, now, not known)
                    lines, size = [], 0
                    self._progress.started_again(now)
            self._progress.problem(name, tail.why)
            self._progress.take(lines[-4 * _MOST :], size, now, history=not known and self._first)
        if self._first:
            self._begin(now)
        return self._progress.look(now)

    def _begin(self, now: float) -> None:
        """What was silent before we came was silent since the newest of the files was written."""
        self._first = False
        ages = []
        for name in self._files:
            try:
                ages.append(time.time() - Path(name).stat().st_mtime)
            except OSError:
                continue
        if ages and min(ages) > _OLD:
            self._progress.begun(now - min(ages))

    def close(self) -> None:
        for tail, _ in self._files.values():
            tail.close()
