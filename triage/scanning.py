"""Reads the files of a job: in one process, or where it pays in several, with the same result.

Many files go to workers one by one. A large one is cut into parts, whose portions workers digest while this process puts
them together in order; a part in which a run may open is read again here. Workers are forked, so that they have what is
compiled: only from a process of one thread, on Linux. Where a worker dies, this process goes on alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

from triage.compress.engine import Openings, Part, ScanLimits, Scanner, Sighted, no_collection
from triage.domain import LogFile, LogLine, ScannedFile
from triage.ingest import assemble, kinds, streams

LARGE = 32 << 20  # bytes, of one file or of many, from which on a second process pays
MOST_JOBS = 8
_PART = 4  # portions of a part
_REACH = 64 << 10  # how far before the end of a part its last newline may stand
_FIELDS = tuple(field.name for field in fields(LogLine))
_WHOLE = frozenset({"stacks", "processes", "fabric"})  # kinds of files whose lines are alike and each tells something
_values = attrgetter(*_FIELDS)

Result = TypeVar("Result")
Packed = tuple[LogFile, list[tuple[Any, ...]]]


class Content(Protocol):
    """An input, what was met in reading it, and its bytes, to be read once."""

    item: streams.Input
    problems: list[str]
    pieces: Iterator[bytes]


def usable_cpus() -> int:
    """How many processes are worth while, at most MOST_JOBS."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus, MOST_JOBS)


def read(scanner: Scanner, contents: Sequence[Content], jobs: int, tell: Callable[[str], None]) -> list[LogFile]:
    """Each file, scanned and assembled, in order."""
    sizes = [content.item.size for content in contents]
    if jobs < 2 or sum(sizes) < LARGE or not _may_fork():
        jobs = 1
    if jobs > 1 and max(sizes) < sum(sizes) // 2:
        return list(_many(scanner, contents, jobs, tell))
    return [_one(scanner, content, jobs) for content in _told(contents, tell)]


def scan(scanner: Scanner, content: Content, jobs: int) -> ScannedFile:
    """One file, by as many processes as pay."""
    if jobs > 1 and content.item.size >= LARGE and streams.is_plain(content.item) and _may_fork():
        with contextlib.suppress(OSError):  # met again below, and said in words
            return _large(scanner, content.item, jobs)
    return scanner.scan(content.item.name, content.pieces)


def _told(contents: Sequence[Content], tell: Callable[[str], None]) -> Iterator[Content]:
    for at, content in enumerate(contents, 1):
        tell(f"reading {content.item.name} ({at}/{len(contents)})")
        yield content


def _one(scanner: Scanner, content: Content, jobs: int = 1) -> LogFile:
    kind, content.pieces = kinds.detect(content.item, content.pieces)
    if kind in _WHOLE:
        scanner = scanner.another(scanner.limits.whole)
    scanned = scan(scanner, content, jobs)
    item = content.item
    return assemble.assemble(scanned, kind, content.problems, item.modified, item.place, item.stamps)


# ---------------------------------------------------------------------------------------------- many files
def _many(scanner: Scanner, contents: Sequence[Content], jobs: int, tell: Callable[[str], None]) -> Iterator[LogFile]:
    again = [content.item for content in contents if content.item.path and content.item.path.is_file()]
    packed = _in_order(jobs, functools.partial(_whole, scanner), again)
    sent = set(again)
    for content in _told(contents, tell):
        yield _unpacked(next(packed)) if content.item in sent else _one(scanner, content)


@dataclass(slots=True)
class _Fresh:
    item: streams.Input
    problems: list[str]
    pieces: Iterator[bytes]


def _whole(scanner: Scanner, item: streams.Input) -> Packed:
    problems: list[str] = []
    file = _one(scanner, _Fresh(item, problems, streams.chunks(item, problems)))
    return replace(file, lines=()), list(map(_values, file.lines))  # lines pickle slowly


def _unpacked(packed: Packed) -> LogFile:
    file, lines = packed
    return replace(file, lines=tuple(itertools.starmap(LogLine, lines)))


# ---------------------------------------------------------------------------------------------- one large file
@dataclass(frozen=True, slots=True)
class _Range:
    """Pieces of a file: from byte `begin`, where piece number `piece` starts, to `end`; its first line starts at `line`."""

    piece: int
    line: int
    begin: int
    end: int
    last: bool


def _large(scanner: Scanner, item: streams.Input, jobs: int) -> ScannedFile:
    path = item.path or Path()
    first, *rest = _ranges(path, path.stat().st_size, scanner.limits)
    whole = scanner.begin()
    with no_collection():
        for block in scanner.blocks(_part(path, first, scanner.limits)):
            whole.block(block)
        digest = functools.partial(_digest, scanner, path, whole.finder)
        for range_, portions in zip(rest, _in_order(jobs, digest, rest), strict=True):
            if not whole.takes(portions):
                for block in scanner.blocks(_part(path, range_, scanner.limits)):
                    whole.block(block)
    return whole.end(item.name)


def _digest(scanner: Scanner, path: Path, finder: Openings | None, range_: _Range) -> list[Sighted]:
    return list(scanner.digests(_part(path, range_, scanner.limits), finder))


def _ranges(path: Path, size: int, limits: ScanLimits) -> list[_Range]:
    """The parts of a file; the first, from which what finds runs learns, is a single portion."""
    portion = limits.block * limits.portion
    found: list[_Range] = []
    piece = line = begin = 0
    with path.open("rb", buffering=0) as stream:
        for end in (portion, *range(portion + _PART * portion, size, _PART * portion)):
            if end >= size:
                break
            back = min(_REACH, limits.line_cut[0], end)
            stream.seek(end - back)
            newline = stream.read(back).rfind(b"\n")
            if newline >= 0:
                found.append(_Range(piece, line, begin, end, last=False))
                piece, line, begin = end // limits.block, end - back + newline + 1, end
    return [*found, _Range(piece, line, begin, size, last=True)]


def _part(path: Path, range_: _Range, limits: ScanLimits) -> Part:
    with path.open("rb", buffering=0) as stream:
        stream.seek(range_.line)
        pending = stream.read(range_.begin - range_.line)
    return Part(_chunks(path, range_, limits.block), range_.piece, pending, range_.last)


def _chunks(path: Path, range_: _Range, size: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as stream:
        stream.seek(range_.begin)
        left = range_.end - range_.begin
        while left and (chunk := stream.read(min(size, left))):
            left -= len(chunk)
            yield chunk


# ---------------------------------------------------------------------------------------------- processes
_work: Callable[[Any], Any] | None = None  # what workers do; they have it from being forked


def _may_fork() -> bool:
    return sys.platform == "linux" and threading.active_count() == 1 and not multiprocessing.current_process().daemon


def _do(task: Any) -> Any:
    if _work is None:
        raise RuntimeError("a worker without work")
    return _work(task)


def _in_order(jobs: int, work: Callable[[Any], Result], tasks: Sequence[Any]) -> Iterator[Result]:
    """The results, in the order of the tasks; few are held at a time."""
    global _work  # noqa: PLW0603  forked, not sent
    _work = work
    done = 0
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), initializer=_begin)
    try:
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            waiting.append(pool.submit(_do, task))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
                done += 1
        while waiting:
            yield waiting.popleft().result()
            done += 1
    except BrokenProcessPool:
        yield from map(work, tasks[done:])
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _work = None


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers it
