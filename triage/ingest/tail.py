"""A growing file, read as it grows. Polls, so it works on any file system, NFS with its cached attributes too.

A place in a file is known by the bytes before it, not only by inode and size: a log that was renamed or copied away is
found again under its new name, and one that was cut and has grown again is not taken for its old self.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from triage.domain import Turn
from triage.ingest.streams import CHUNK, reason

_HEAD = 256  # bytes at the start of a file that tell it from others
_BEFORE = 64  # bytes before a place that tell whether this is still the same file; fewer prove little
_HELD = 1 << 20  # bytes of a line without its newline that are held; a longer one is read again once it is whole
_CHUNKS = 2  # of one poll, so that many files take turns
_PATIENCE = (
    2  # polls in a row that must find a file cut or replaced: a cache may be behind, a writer about to reopen it
)
_GONE = 20  # polls without growth after which a deleted file is let go
_SIBLINGS = 200  # files looked at for one that was renamed or copied


class Mark(NamedTuple):
    """A place in a file. head, before: hashes of the file's first bytes and of those before the place."""

    inode: int
    offset: int
    head: str
    before: str


class Lines(NamedTuple):
    """Whole lines, each ended by a newline; only the last of a file that is left may lack it. size: in bytes."""

    chunks: Iterable[bytes]
    size: int


class Turning(NamedTuple):
    """What follows is another file, or this one with other content: line numbers start again."""

    turn: Turn
    text: str


@dataclass(slots=True)
class _Place:
    """Where reading stands: lines up to `offset` were given, bytes up to `read` were looked at."""

    offset: int = 0
    read: int = 0
    head: bytes = b""
    before_offset: bytes = b""
    before_read: bytes = b""
    held: bytes = b""  # the bytes between the two, or the first of them

    def held_whole(self) -> bool:
        return len(self.held) == self.read - self.offset


class Tail:
    """Follows the file at a path. mark: where an earlier reader stopped; None: from the start.

    why: why there is nothing to read, in words; "" while a file is open. read: bytes looked at, for who asks whether
    anything came.
    """

    def __init__(self, path: Path, mark: Mark | None = None) -> None:
        self.path = path
        self.why = ""
        self.read = 0
        self._mark = mark if mark is not None and mark.offset else None  # to be found again
        self._file = -1
        self._id = (0, 0)
        self._at = _Place()
        self._doubts = 0  # polls in a row that found the file cut or replaced
        self._missing = 0  # and no file at the path

    def mark(self) -> Mark:
        """Behind the lines that were given."""
        at = self._at
        return self._mark or Mark(self._id[1], at.offset, _digest(at.head[: at.offset]), _digest(at.before_offset))

    def poll(self) -> Iterator[Lines | Turning]:
        """What came since; some MB a call at most. Each item must be used up before the next is asked for."""
        if self._file < 0:
            yield from self._open()
        for _ in range(_CHUNKS):
            if self._file < 0:
                return
            known = self._at.before_read
            try:
                data = os.pread(self._file, CHUNK + len(known), self._at.read - len(known))
            except OSError as error:  # ESTALE: deleted on another machine
                yield from self._lose("replaced", f"it cannot be read any more ({reason(error)})")
                return
            if not data.startswith(known):
                yield from self._cut()
                return
            if len(data) == len(known):
                yield from self._ended()
                return
            self._doubts = self._missing = 0
            yield from self._take(data[len(known) :])

    def rest(self) -> Lines | None:
        """The line whose newline is still to come; it is not passed by reading it."""
        at = self._at
        size = at.read - at.offset
        return Lines([at.held] if at.held_whole() else self._again(at.offset, size), size) if size else None

    def end(self, most: int) -> bytes:
        """The end of that line alone, at most so many bytes."""
        at = self._at
        size = min(most, at.read - at.offset)
        return os.pread(self._file, size, at.read - size) if self._file >= 0 and size else b""

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._at = -1, _Place()

    # ------------------------------------------------------------------------------------------ reading
    def _take(self, data: bytes) -> Iterator[Lines]:
        at = self._at
        start, pending = at.offset, at.read - at.offset
        earlier = [at.held] if at.held_whole() else self._again(start, pending)
        end = data.rfind(b"\n") + 1
        if end:
            at.offset = at.read + end
            at.before_offset = (at.before_read + data[:end])[-_BEFORE:]
            at.held = data[end:]
        elif at.held_whole():
            at.held += data[: max(0, _HELD - pending)]
        at.head += data[: max(0, _HEAD - len(at.head))]
        at.before_read = (at.before_read + data[-_BEFORE:])[-_BEFORE:]
        at.read += len(data)
        self.read += len(data)
        if end:
            yield Lines(itertools.chain(earlier, [data[:end]]), pending + end)

    def _again(self, start: int, size: int) -> Iterator[bytes]:
        """Bytes that were too many to hold."""
        while size > 0 and (data := os.pread(self._file, min(CHUNK, size), start)):
            yield data
            start += len(data)
            size -= len(data)

    def _open(self) -> Iterator[Turning]:
        mark, path = self._mark, self.path
        if mark is not None:
            found = self._find(mark)
            if found is None and not path.exists():
                self.why = "no such file or folder"
                return
            path = found or path
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self.why = reason(error)
            return
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.close(file)
            self.why = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
            return
        self._file, self._id, self.why = file, (status.st_dev, status.st_ino), ""
        self._at, self._doubts, self._missing, self._mark = _Place(), 0, 0, None
        if mark is None:
            return
        if _is_at(file, mark):
            before = os.pread(file, min(_BEFORE, mark.offset), max(0, mark.offset - _BEFORE))
            self._at = _Place(mark.offset, mark.offset, os.pread(file, min(_HEAD, mark.offset), 0), before, before)
            return
        yield Turning(
            "replaced", "it is not the file that was read before; what else was written to that one is not seen"
        )

    # ------------------------------------------------------------------------------------------ turns
    def _ended(self) -> Iterator[Lines | Turning]:
        """All was read; is this still the file at the path?"""
        try:
            # To open it makes NFS ask the server, where a stat may be answered from a cache for a minute.
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            self._missing += 1
            if self._missing >= _GONE and not os.fstat(self._file).st_nlink:
                yield from self._leave("deleted", "it may come back")
            return
        except OSError:
            return
        status = os.fstat(file)
        os.close(file)
        self._missing = 0
        if (status.st_dev, status.st_ino) == self._id:
            self._doubts = 0
            return
        self._doubts += 1
        if self._doubts >= _PATIENCE and not stat.S_ISREG(status.st_mode):
            yield from self._leave("deleted", "what stands in its place is no file")
        elif self._doubts >= _PATIENCE:
            yield from self._leave("rotated", "a new file took its place")

    def _cut(self) -> Iterator[Lines | Turning]:
        """What was read before is not there any more."""
        self._doubts += 1
        if self._doubts >= _PATIENCE:
            yield from self._lose("truncated", "it was cut and begins anew")
        else:
            with contextlib.suppress(OSError):
                os.close(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK))  # as in _ended

    def _leave(self, turn: Turn, text: str) -> Iterator[Lines | Turning]:
        """The file was read to its end; the next poll begins the one at the path."""
        if rest := self.rest():
            yield rest
        self.close()
        yield Turning(turn, text)

    def _lose(self, turn: Turn, text: str) -> Iterator[Lines | Turning]:
        """The content is gone, but there may be a copy, from which the next poll goes on."""
        mark, held = self.mark(), self._at.held
        self.close()
        if mark.offset and self._find(mark) is not None:
            self._mark = mark
            return
        if held:
            yield Lines([held], len(held))
        yield Turning(turn, text)

    def _find(self, mark: Mark) -> Path | None:
        """The file of the mark, under its own name or one that it was renamed or copied to."""
        same: Path | None = None
        for path in (self.path, *self._siblings()):
            try:
                with path.open("rb", buffering=0) as stream:
                    if _is_at(stream.fileno(), mark):
                        if os.fstat(stream.fileno()).st_ino == mark.inode:
                            return path
                        same = same or path
            except OSError:
                continue
        return same if mark.offset >= _BEFORE else None

    def _siblings(self) -> Iterable[Path]:
        """Files with longer names that start with this one's, the newest first: job.log.1, job.log-20260102."""
        name = self.path.name
        try:
            found = [entry for entry in os.scandir(self.path.parent) if _is_sibling(entry, name)]
            found.sort(key=lambda entry: -entry.stat().st_mtime)
        except OSError:
            return ()
        return [Path(entry.path) for entry in found[:_SIBLINGS]]


def near_end(path: Path, most: int) -> Mark | None:
    """A place at the beginning of a line, at most so many bytes before the end; None: read it all."""
    try:
        with path.open("rb", buffering=0) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= most:
                return None
            start = size - most
            piece = os.pread(stream.fileno(), _HELD, start)
            start += piece.find(b"\n") + 1
            before = os.pread(stream.fileno(), min(_BEFORE, start), max(0, start - _BEFORE))
            head = os.pread(stream.fileno(), _HEAD, 0)
            return Mark(os.fstat(stream.fileno()).st_ino, start, _digest(head), _digest(before))
    except OSError:
        return None


def _is_sibling(entry: os.DirEntry[str], name: str) -> bool:
    return entry.name.startswith(name) and entry.name != name and entry.is_file()


def _is_at(file: int, mark: Mark) -> bool:
    """Whether this is the file of the mark, and still as long."""
    before = os.pread(file, min(_BEFORE, mark.offset), max(0, mark.offset - _BEFORE))
    return _digest(before) == mark.before and _digest(os.pread(file, min(_HEAD, mark.offset), 0)) == mark.head


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
