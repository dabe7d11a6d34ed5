"""The job's logs, read as they grow, and what they say of its progress."""

from __future__ import annotations

import os
import re
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
_EARLIER = 64 << 10  # bytes of each piece from before that, which tells how long a step took then
_PIECES = 3
_BAR = 2048  # bytes of a line that is not finished
_SAMPLED = 4  # logs that are asked for it: ranks go at one pace
_MOST = 400  # lines of one look at one file; of more the last ones tell enough
# What `triage watch` prints, which may go to the very log of the job: from a batch script that watches itself.
_OURS = re.compile(
    rb'\d\d:\d\d:\d\d .{1,400}?: [A-Za-z]+(?: since [\d:]+)?(?: \(step \d+\))?[:,]| {9}\S|triage: |\{"schema": "triage\.watch/'
)
_OLD = 30.0  # seconds without growth after which a log is silent since before we came


class Logs:
    """Files that may not be there yet, may be rotated, cut or written anew."""

    def __init__(self, names_: Sequence[str] = ()) -> None:
        self._progress = LogProgress()
        self._files: dict[str, tuple[Tail, LineParser]] = {}
        self._ends: dict[str, bytes] = {}  # of lines that are not finished
        self._steps_only: set[str] = set()
        self._shared: set[str] = set()  # files that we print to as well
        self._first = True
        self._read = 0
        self.add(names_)

    def add(self, names_: Sequence[str], steps_only: bool = False) -> None:
        """steps_only: other lines of it are no progress, as a monitor may write them."""
        for name in names_:
            if name not in self._files and (
                not Path(name).exists() or Path(name).is_file()
            ):  # a pipe is not ours to read
                place = names.place(name)
                tail = Tail(Path(name), near_end(Path(name), _HISTORY))
                if len(self._files) < _SAMPLED:
                    self._sample(Path(name), LineParser(name, rank=place.rank, node=place.node))
                if steps_only:
                    self._steps_only.add(name)
                if _is_our_output(name):
                    self._shared.add(name)
                self._files[name] = (tail, LineParser(name, rank=place.rank, node=place.node))

    def _sample(self, path: Path, parser: LineParser) -> None:
        try:
            size = path.stat().st_size - _HISTORY
            if size < _PIECES * _EARLIER:
                return
            with path.open("rb") as file:
                for number in range(_PIECES):
                    file.seek(size * number // _PIECES)
                    whole = file.read(_EARLIER).splitlines()[1:-1]
                    self._progress.earlier([parser.parse(RawLine(n, line)) for n, line in enumerate(whole, 1)])
        except OSError:
            return  # what follows the log says why it is not readable

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
                    raw = _shown(b"".join(item.chunks))
                    if name in self._shared:
                        raw = [line for line in raw if not _OURS.match(line)]
                    size += item.size
                    lines += self._parsed(parser, raw[-_MOST if known else -4 * _MOST :])
                else:
                    self._progress.take(lines, size, now, not known)
                    lines, size = [], 0
                    self._progress.started_again(now)
            lines += self._parsed(parser, self._unfinished(name, tail))
            self._progress.problem(name, tail.why)
            history = not known and self._first
            self._progress.take(lines[-4 * _MOST :], size, now, history, name in self._steps_only)
        if self._first:
            self._begin(now)
        return self._progress.look(now)

    def _parsed(self, parser: LineParser, raw: list[bytes]) -> list[LogLine]:
        """Numbered in order, by which the parser knows the lines of a key that go together."""
        begin = self._read + 1
        self._read += len(raw)
        return [parser.parse(RawLine(number, line)) for number, line in enumerate(raw, begin)]

    def _unfinished(self, name: str, tail: Tail) -> list[bytes]:
        """What a progress bar shows now: it writes over itself, and ends its line when all is done."""
        end = tail.end(_BAR)
        before, self._ends[name] = self._ends.get(name), end
        return _shown(end)[-1:] if b"\r" in end and end != before else []

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


def _shown(text: bytes) -> list[bytes]:
    """Its lines, and of one that was written over again and again what was last to be seen."""
    return [part for line in text.split(b"\n") for part in [part for part in line.split(b"\r") if part.strip()][-2:]]


def _is_our_output(name: str) -> bool:
    try:
        told = Path(name).stat()
        return any(os.path.samestat(told, os.fstat(number)) for number in (1, 2))
    except OSError:
        return False
