"""What a job's processes did between two looks, and whether that is progress. Pure.

CPU time alone is none: libraries spin while they wait. Neither are a few bytes: watchdogs and loggers write them from threads of
their own, and go on in a hang.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from triage.probing.values import Key, NodeView, Process, ranks_of

LARGE = 64 << 10  # bytes a second, of all processes, that no watchdog and no logger moves
_STEADY = 1 << 10  # bytes a second that the main thread of one rank moves, or what it started: one that waits does not
_DROP = 0.2  # of what the job moved in its usual round: less is what goes on in a hang too
_ROUNDS = 5  # that make a usual round
_COMPILERS = frozenset(
    ("nvcc", "cicc", "ptxas", "cudafe++", "fatbinary", "nvlink", "cc1plus", "cc1", "ninja", "as", "ld", "lld", "ld.lld", "clang", "clang++",
     "clang-17", "clang-18", "hipcc", "lto1", "collect2", "gcc", "g++", "c++", "cmake", "make", "rustc", "bisheng", "ccec", "neuronx-cc", "opt")
)  # fmt: skip
_WORKS = 0.1  # of a core: a compiler that computes


@dataclass(frozen=True, slots=True)
class Done:
    """Of one process, since the last look: cores used (0..), of its main thread; bytes moved, of its main thread; None: not readable."""

    process: Process
    cores: float
    main_cores: float | None
    moved: int | None
    main_moved: int | None
    stored: int = 0  # bytes read from and written to storage


@dataclass(frozen=True, slots=True)
class Activity:
    """words: of what is progress, "" for none. small: bytes moved that may be those of a watchdog. readable: of any process.
    steady: one rank moved more itself than one that waits. ended: how those ended that were there at the last look, where that is known."""

    seconds: float = 0.0
    done: tuple[Done, ...] = ()
    moved: int = 0
    small: int = 0
    words: str = ""
    compiling: str = ""
    readable: bool = False
    new: tuple[Process, ...] = ()
    steady: bool = False
    ended: Mapping[Key, int] = field(default_factory=dict)

    @property
    def everyone(self) -> list[Process]:
        return [*(one.process for one in self.done), *self.new]


@dataclass(slots=True)
class Moves:
    """Remembers the last look and what usual rounds move."""

    _last: dict[Key, tuple[float, Process]] = field(default_factory=dict)  # and when it was seen so
    _now: float | None = None
    _usual: deque[float] = field(default_factory=lambda: deque(maxlen=120))

    def compare(self, nodes: Iterable[NodeView], now: float, beats: int = 0) -> Activity | None:
        """beats: bytes that the logs grew by in mere signs of life. None at the first look."""
        views = [view for view in nodes if not view.problem]
        seen = {process.key: process for view in views for process in view.processes}
        hidden = {node.node for node in nodes if node.problem}
        before, then = self._last, self._now
        unseen = {key: old for key, old in before.items() if key[0] in hidden}
        self._last = unseen | {key: (now, process) for key, process in seen.items()}
        self._now = now
        if then is None:
            return None
        seconds = max(now - then, 1e-3)
        done = tuple(_done(*before[key], process, now, seconds) for key, process in seen.items() if key in before)
        new = tuple(process for key, process in seen.items() if key not in before)
        ended = {key: status for view in views for key, status in view.ended.items()}
        return replace(self._judged(done, new, seconds, beats), ended=ended)

    def _judged(self, done: tuple[Done, ...], new: tuple[Process, ...], seconds: float, beats: int) -> Activity:
        begun = sum(sum(process.io[:2]) for process in new if _began(process) and process.io)
        moved = begun + sum(one.moved or 0 for one in done)
        stored = sum(one.stored for one in done)
        own = _own(done, new)
        small = max(0, sum(own) - beats)
        steady = max(own, default=0) - beats >= _STEADY * seconds
        words = ""
        if max(moved, stored) >= LARGE * seconds:
            words = f"{_size(max(moved, stored))} read and written in {seconds:.2g} s"
        elif small and not self._is_drop(small / seconds):
            words = f"{_size(small)} read and written in {seconds:.2g} s"
        if words:
            self._usual.append(small / seconds)
        compilers = sorted({one.process.comm for one in done if one.process.comm in _COMPILERS and one.cores > _WORKS})
        compilers += sorted({process.comm for process in new if process.comm in _COMPILERS} - set(compilers))
        readable = any(one.moved is not None for one in done)
        return Activity(
            seconds, done, moved, small, words, ", ".join(compilers), readable, new, steady=steady and bool(words)
        )

    def _is_drop(self, rate: float) -> bool:
        return len(self._usual) >= _ROUNDS and rate < _DROP * median(self._usual)


def _own(done: Sequence[Done], new: Sequence[Process]) -> list[int]:
    """Bytes that the ranks moved themselves: by their main threads, and by the processes that they started, each.

    Where no rank is known, all processes count.
    """
    everyone = [*(one.process for one in done), *new]
    ranks = {process.key for process in ranks_of(everyone).values()}
    counted = _below(everyone, ranks) if ranks else {process.key for process in everyone}
    found = [sum(p.io[:2]) for p in new if _began(p) and p.io and p.key in counted]
    for one in done:
        if one.process.key in counted:
            main = one.main_moved if one.main_moved is not None and one.process.threads > 1 else one.moved
            found.append(main or 0)
    return found


def _began(process: Process) -> bool:
    """Not one that comes to us dead: in a container, what was none of the job's is left to its first process."""
    return process.state not in "ZX"


def _below(processes: Sequence[Process], tops: set[Key]) -> set[Key]:
    """These processes and all that descend from them."""
    found = set(tops)
    pids = {(key[0], key[1]) for key in tops}
    grew = True
    while grew:
        grew = False
        for process in processes:
            if process.key not in found and (process.node, process.ppid) in pids:
                found.add(process.key)
                pids.add((process.node, process.pid))
                grew = True
    return found


def _done(then: float, old: Process, new: Process, now: float, seconds: float) -> Done:
    """In so many seconds, on the mean of the time since it was seen last: its node may have been out of sight for long."""
    past = max(now - then, 1e-3)

    def since(a: tuple[int, int, int, int] | None, b: tuple[int, int, int, int] | None, *which: int) -> int | None:
        return None if a is None or b is None else round(sum(max(0, b[n] - a[n]) for n in which) * seconds / past)

    main = None
    if old.main_cpu is not None and new.main_cpu is not None:
        main = max(0.0, new.main_cpu - old.main_cpu) / past
    return Done(
        new,
        max(0.0, new.cpu - old.cpu) / past,
        main,
        since(old.io, new.io, 0, 1),
        since(old.main_io, new.main_io, 0, 1),
        since(old.io, new.io, 2, 3) or 0,
    )


def _size(count: int) -> str:
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"
