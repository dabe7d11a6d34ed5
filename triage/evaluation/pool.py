"""Processes that live as long as the run. One that dies or takes too long costs its task alone: another takes its place."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker, util
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from triage.errors import TriageError
from triage.evaluation.worker import Done, Ready, Setup, Task, serve
from triage.text import signal_name

START_SECONDS = 300.0
_LONGEST = 85  # bytes, of the folder of the server's socket, whose whole path may have 103
_STARTS = 3  # in a row that fail before the run is given up
T = TypeVar("T")


@dataclass(slots=True)
class _Worker(Generic[T]):
    slot: int
    process: BaseProcess
    link: Connection
    deadline: float
    item: T | None = None
    ready: bool = False
    gone: bool = False  # died before it was ready


class Pool(Generic[T]):
    """jobs: how many processes; seconds: how long a task may take. `memory`: how the workers measure their memory."""

    def __init__(self, setup: Setup, jobs: int, seconds: float) -> None:
        self._setup, self._jobs, self._seconds = setup, jobs, seconds
        self._context = _context(setup.preload)
        self._folders = (
            setup.scratch,
            Path(util.get_temp_dir()),
        )  # the second holds the socket of the server of workers
        self._workers: list[_Worker[T]] = []
        self._unstaged: list[tuple[T, Done]] = []
        self._failed_starts = 0
        self.memory = ""

    def run(self, items: Sequence[T], stage: Callable[[T, int], Task]) -> Generator[tuple[T, Done], None, None]:
        """Each item with what came of it, as they finish. stage: makes its task, for a worker of this number; a TriageError of
        it is what came of the item.

        Errors: TriageError when workers cannot start at all.
        """
        queue = deque(items)
        try:
            self._workers = [self._start(0, first=True)]
            self._await_first()
            self._workers += [self._start(slot) for slot in range(1, min(self._jobs, len(queue)))]
            for worker in self._workers:
                self._give(worker, queue, stage)
            while self._workers:
                yield from self._step(queue, stage)
                yield from self._take_unstaged()
            yield from self._take_unstaged()
        finally:
            self._end()

    def _await_first(self) -> None:
        """The first worker prepares what all of them use."""
        while not (worker := self._workers[0]).ready:
            if worker.gone:
                self._dismiss(worker)
                self._workers = [self._start(0, first=True)]
                continue
            if not worker.link.poll(max(0.0, worker.deadline - time.monotonic())):
                raise TriageError(f"a worker did not start within {START_SECONDS:.0f} s", "is the machine overloaded?")
            self._hear(worker)

    def _step(self, queue: deque[T], stage: Callable[[T, int], Task]) -> Iterator[tuple[T, Done]]:
        nearest = min(worker.deadline for worker in self._workers)
        heard = wait([worker.link for worker in self._workers], max(0.0, nearest - time.monotonic()))
        for worker in list(self._workers):
            if worker.link in heard:
                done = self._hear(worker)
            elif time.monotonic() >= worker.deadline:
                done = self._late(worker)
            else:
                continue
            if done is not None:
                assert worker.item is not None
                yield worker.item, done
                worker.item = None
            if worker.gone or (done is not None and done.gone):
                self._replace(worker, queue)
            elif worker.ready and worker.item is None:
                self._give(worker, queue, stage)

    def _give(self, worker: _Worker[T], queue: deque[T], stage: Callable[[T, int], Task]) -> None:
        """The next task, if the worker is ready for one; without one it goes."""
        if not worker.ready:
            return
        while queue:
            worker.item = queue.popleft()
            try:
                task = stage(worker.item, worker.slot)
            except TriageError as error:  # its files have changed or gone since the run began
                self._unstaged.append((worker.item, Done(problem=f"error: {error}")))
                worker.item = None
                continue
            worker.deadline = time.monotonic() + self._seconds
            with contextlib.suppress(OSError):  # it died between two tasks; reading from it says so
                worker.link.send(task)
            return
        self._dismiss(worker)

    def _take_unstaged(self) -> Iterator[tuple[T, Done]]:
        while self._unstaged:
            yield self._unstaged.pop(0)

    def _hear(self, worker: _Worker[T]) -> Done | None:
        try:
            message: Any = worker.link.recv()
        except (EOFError, OSError):
            return self._dead(worker)
        if isinstance(message, Done):
            return message
        assert isinstance(message, Ready)
        if message.problem:
            raise TriageError(message.problem)
        worker.ready, self.memory, self._failed_starts = True, message.memory, 0
        return None

    def _dead(self, worker: _Worker[T]) -> Done | None:
        """What came of its task; None of a worker that was still starting: another gets a chance."""
        worker.process.join()
        how = _ending(worker.process.exitcode)
        if worker.item is None:
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise TriageError(
                    f"{_STARTS} workers in a row did not start, the last {how}",
                    "set TRIAGE_DEBUG=1 and look at what it printed",
                )
            worker.gone = True
            return None
        return Done(problem=f"crash: the worker {how}", gone=True)

    def _late(self, worker: _Worker[T]) -> Done:
        if worker.item is None:
            raise TriageError(f"a worker did not start within {START_SECONDS:.0f} s", "is the machine overloaded?")
        return Done(problem="timeout", seconds=self._seconds, gone=True)

    # ------------------------------------------------------------------------------------------ processes
    def _start(self, slot: int, first: bool = False) -> _Worker[T]:
        here, there = self._context.Pipe()
        process = self._context.Process(target=serve, args=(there, self._setup, first, self._folders), daemon=True)
        # Ctrl-C goes to the whole process group: the workers do not hear it, this process ends them. The tracker comes
        # first, for starting it unblocks the signal.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            there.close()
        return _Worker(slot, process, here, time.monotonic() + START_SECONDS)

    def _replace(self, worker: _Worker[T], queue: deque[T]) -> None:
        """Another process in its place, if there is anything left to do."""
        self._dismiss(worker)
        if queue:
            self._workers.append(self._start(worker.slot))

    def _dismiss(self, worker: _Worker[T]) -> None:
        worker.process.kill()
        worker.process.join()
        worker.link.close()
        self._workers.remove(worker)

    def _end(self) -> None:
        for worker in list(self._workers):
            self._dismiss(worker)


def _context(preload: Sequence[str]) -> Any:
    """Workers are forked from a process that was started anew, and so has never seen a case or its labels; where there can
    be no such server each is started anew."""
    reachable = len(os.fsencode(util.get_temp_dir())) <= _LONGEST
    if "forkserver" not in multiprocessing.get_all_start_methods() or not reachable:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))  # counts once, before the server of this process starts
    return context


def _ending(code: int | None) -> str:
    return f"ended with exit code {code}" if code is None or code >= 0 else f"was killed by {signal_name(-code)}"
