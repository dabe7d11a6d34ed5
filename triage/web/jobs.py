"""The queue of diagnoses. Each job is a folder with its record and, where they were uploaded, its logs; so a job that was
waiting or running when the server ended is done after the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from triage.errors import NotFoundError, StoreError, TriageError
from triage.web.metrics import Metrics
from triage.web.places import FullError
from triage.web.worker import Worker

Scheduler = Literal["", "slurm", "pod", "k8s-job"]
JobState = Literal["queued", "running", "done", "failed"]
RECORD, LOGS = "job.json", "logs"
MOST_WAITING = 500
PING = 5.0  # seconds between two signs of life of a stream
GRACE = 4.0  # seconds that a running diagnosis is given when the server ends: what stops containers waits for 10 in all
_ID = re.compile(r"[0-9a-f]{20}")


@dataclass(frozen=True, slots=True)
class Job:
    """paths: within the folder of its logs, or absolute; scheduler, asked: who was asked for what, where no logs were given;
    said: what is being done, or why it failed; times in seconds of
    the epoch; version: grows with each change.
    """

    id: str
    who: str
    paths: tuple[str, ...]
    created: float
    state: JobState = "queued"
    said: str = "waiting"
    incident: int | None = None
    outcome: str = ""
    failure_type: str = ""
    status: str = ""
    ended: float | None = None
    version: int = 0
    scheduler: Scheduler = ""
    asked: str = ""

    @property
    def name(self) -> str:
        words = {"": ", ".join(self.paths), "pod": f"pod {self.asked}"}
        return words.get(self.scheduler, f"job {self.asked}")

    @property
    def over(self) -> bool:
        return self.state in ("done", "failed")


class Jobs:
    """All jobs that this server knows. For use in one event loop; of no two servers at once with one folder."""

    def __init__(self, folder: Path, command: Sequence[str], workers: int, keep_days: int, metrics: Metrics) -> None:
        self._folder, self._keep_days, self._metrics = folder, keep_days, metrics
        self._jobs: dict[str, Job] = {}
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self._workers = [Worker(command) for _ in range(workers)]
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    # ------------------------------------------------------------------------------------------ life
    def start(self) -> None:
        """Takes up what was not done. Errors: StoreError when the folder cannot be used."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            records = sorted(self._folder.glob(f"*/{RECORD}"))
        except OSError as error:
            raise StoreError(
                f"{self._folder}: {error.strerror}", "set TRIAGE_HOME to a folder that can be written"
            ) from None
        for job in sorted(filter(None, map(_read, records)), key=lambda j: j.created):
            self._jobs[job.id] = job
            if not job.over:
                self._put(replace(job, state="queued", said="waiting; the server was started anew"))
                self._waiting.put_nowait(job.id)
        self._drop_halves()
        self._count()
        self._tasks = [asyncio.create_task(self._work(worker)) for worker in self._workers]
        self._tasks.append(asyncio.create_task(self._clean()))

    def _drop_halves(self) -> None:
        """What a server that was killed had received half, or recorded half, is nobody's job."""
        for room in self._folder.iterdir():
            if _ID.fullmatch(room.name) and room.name not in self._jobs:
                self.drop(room)

    async def stop(self) -> None:
        """What runs is given a moment; what is not done then waits for the next start."""
        self._stopping = True
        end = time.monotonic() + GRACE
        while any(j.state == "running" for j in self._jobs.values()) and time.monotonic() < end:
            await asyncio.sleep(0.05)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers:
            await worker.kill()
        for job in [j for j in self._jobs.values() if j.state == "running"]:
            self._put(replace(job, state="queued", said="waiting for the next start of the server"))

    # ------------------------------------------------------------------------------------------ jobs
    def room(self) -> Path:
        """A new folder for logs to come; it becomes a job by `add`, or is given up by `drop`. Errors: FullError."""
        if self._waiting.qsize() >= MOST_WAITING:
            raise FullError(f"{MOST_WAITING} diagnoses wait already", "try again in a while")
        room = self._folder / secrets.token_hex(10)
        (room / LOGS).mkdir(mode=0o700, parents=True)
        return room

    def drop(self, room: Path) -> None:
        shutil.rmtree(room, ignore_errors=True)

    def add(self, room: Path, who: str, paths: Sequence[str], scheduler: Scheduler = "", asked: str = "") -> Job:
        job = Job(room.name, who, tuple(paths), time.time(), scheduler=scheduler, asked=asked)
        self._put(job)
        self._waiting.put_nowait(job.id)
        self._count()
        return job

    def get(self, number: str) -> Job:
        """Errors: NotFoundError."""
        if number not in self._jobs:
            raise NotFoundError("there is no such job", "it may be older than what is kept")
        return self._jobs[number]

    def newest(self, most: int) -> list[Job]:
        return sorted(self._jobs.values(), key=lambda j: -j.created)[:most]

    def ahead(self, job: Job) -> int:
        """How many are to be done before it."""
        return 0 if job.over else sum(not j.over and j.created < job.created for j in self._jobs.values())

    async def follow(self, number: str) -> AsyncIterator[Job | None]:
        """The job now and whenever it changes, until it is over; None as a sign of life."""
        seen = -1
        while not self._stopping:
            job = self.get(number)
            if job.version != seen:
                seen = job.version
                yield job
                if job.over:
                    return
                continue
            try:
                async with asyncio.timeout(PING), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                yield None

    # ------------------------------------------------------------------------------------------ work
    async def _work(self, worker: Worker) -> None:
        while not self._stopping:
            number = await self._waiting.get()
            if number in self._jobs and not self._stopping:
                await self._diagnose(worker, self._jobs[number])

    async def _diagnose(self, worker: Worker, job: Job) -> None:
        began = time.monotonic()
        await self._set(job.id, state="running", said="reading")
        loop = asyncio.get_running_loop()

        def tell(text: str) -> None:
            loop.create_task(self._set(job.id, said=text))  # noqa: RUF006 - short, and looked at by nobody

        try:
            found = dict(await worker.diagnose(str(self._folder / job.id / LOGS), job, tell))
        except TriageError as error:
            self._metrics.failed.inc()
            await self._set(job.id, state="failed", said=str(error), ended=time.time())
            return
        self._metrics.diagnose_seconds.observe(time.monotonic() - began)
        self._metrics.diagnoses.labels(found["failure_type"], found["outcome"]).inc()
        await self._set(job.id, state="done", said=found.pop("said", "") or "done", ended=time.time(), **found)

    async def _set(self, number: str, **changes: Any) -> None:
        job = self._jobs[number]
        if job.over:
            return
        self._put(replace(job, **changes))
        self._count()
        async with self._changed:
            self._changed.notify_all()

    def _put(self, job: Job) -> None:
        before = self._jobs.get(job.id)
        job = replace(job, version=job.version + 1)
        self._jobs[job.id] = job
        if before is None or before.state != job.state:  # what is said meanwhile need not outlive the server
            file = self._folder / job.id / RECORD
            with contextlib.suppress(OSError):
                beside = file.with_suffix(".new")
                beside.write_text(json.dumps(asdict(job)), "utf-8")
                beside.replace(file)

    def _count(self) -> None:
        for state in ("queued", "running", "done", "failed"):
            self._metrics.queue.labels(state).set(sum(j.state == state for j in self._jobs.values()))

    async def _clean(self) -> None:
        """Logs older than what is kept go; the incidents stay."""
        while True:
            oldest = time.time() - self._keep_days * 86_400
            for job in [j for j in self._jobs.values() if j.over and j.created < oldest]:
                await asyncio.to_thread(shutil.rmtree, self._folder / job.id, True)
                del self._jobs[job.id]
            await asyncio.sleep(3600)


def _read(file: Path) -> Job | None:
    """None for a record that is none of ours, or was cut."""
    try:
        found: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
        job = Job(**{**found, "paths": tuple(found["paths"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return job if _ID.fullmatch(job.id) and job.id == file.parent.name else None
