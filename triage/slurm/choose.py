"""Which of the jobs that one id names are to be diagnosed, and which of their attempts. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from triage.domain import SlurmJob
from triage.slurm.ids import JobId
from triage.text import how_many

MOST_TASKS = 100
_SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)
_PLAIN = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Chosen:
    """groups: jobs that are diagnosed together, such as the components of a heterogeneous one; notes: what is to be said of it.

    waiting: why there is nothing to diagnose yet, "" where there is. live: it still runs.
    """

    groups: tuple[tuple[SlurmJob, ...], ...] = ()
    notes: tuple[str, ...] = ()
    waiting: str = ""
    live: bool = False


def choose(asked: JobId, jobs: Sequence[SlurmJob]) -> Chosen:
    """Of an array the tasks that failed, of a job that was put back into the queue the last attempt that ended badly."""
    if len(jobs) > 1 and all(job.array_job for job in jobs):
        return _of_array(asked, jobs)
    parts = [_attempt(job) for job in jobs]
    group = tuple(_step(asked, job) for job, _ in parts)
    notes = [note for _, note in parts if note]
    if all(job.waits for job in group):
        return Chosen(waiting=f"job {asked} has not begun: {_state(group[0])}", notes=tuple(notes))
    running = [job for job in group if not job.ended and not job.waits]
    if running:
        since = f" since {running[0].start:%Y-%m-%d %H:%M:%S}" if running[0].start else ""
        notes.append(
            f"job {asked} still runs ({running[0].state}{since}): this is what its log shows so far; `triage watch --job {asked.asked}` tells a hang"
        )
    if asked.step and not any(job.steps for job in group):
        notes.append(f"no step {asked.step} of job {asked.asked} is known; the job as a whole was looked at")
    return Chosen((group,), tuple(notes), live=bool(running))


def _of_array(asked: JobId, jobs: Sequence[SlurmJob]) -> Chosen:
    latest = [_attempt(job) for job in jobs]
    failed = [(job, note) for job, note in latest if job.ended_badly]
    states: Counter[str] = Counter()
    for job in jobs:
        states[job.state] += _tasks(job)
    tally = ", ".join(f"{count} {state}" for state, count in states.most_common())
    of_all = f"array {asked}: of {how_many(states.total(), 'task')} {tally}"
    if not failed and not all(job.ended for job in jobs):
        return Chosen(waiting=f"no task of array {asked} has failed so far ({tally})")
    if not failed:
        return Chosen(((jobs[0],),), (f"{of_all}; the first is shown",))
    notes = [of_all, *(note for _, note in failed[:MOST_TASKS] if note)]
    if len(failed) > MOST_TASKS:
        notes.append(
            f"only the first {MOST_TASKS} of {len(failed)} failed tasks are diagnosed; name others as {asked.asked}_[from-to]"
        )
    return Chosen(tuple((job,) for job, _ in failed[:MOST_TASKS]), tuple(notes))


def _tasks(job: SlurmJob) -> int:
    """Tasks that wait together are one job with their list: 6-9, 1,3,5-20:5."""
    spans = _SPAN.findall(job.array_task)
    return max(1, sum(len(range(int(a), int(b or a) + 1, max(1, int(step or 1)))) for a, b, step in spans))


def _attempt(job: SlurmJob) -> tuple[SlurmJob, str]:
    """The attempt to look at, with what only the job as it is now tells; and what to say of it."""
    before = job.earlier[-1] if job.earlier else None
    if job.ended or before is None or not before.ended_badly:
        return job, ""
    told = {
        name: getattr(before, name) or getattr(job, name)
        for name in ("work_dir", "stdout", "stderr", "command", "user", "name")
    }
    looked_at = replace(before, **told, earlier=job.earlier[:-1], restarts=len(job.earlier) - 1)
    return looked_at, (
        f"job {job.id} is in the queue again ({job.state}, attempt {len(job.earlier) + 1}); attempt {len(job.earlier)}, which ended {before.state}, is diagnosed"
    )


def _step(asked: JobId, job: SlurmJob) -> SlurmJob:
    if not asked.step:
        return job
    return replace(job, steps=tuple(step for step in job.steps if step.id.partition(".")[2] == asked.step))


def _state(job: SlurmJob) -> str:
    return f"{job.state}, reason {job.reason}" if job.reason else job.state


def summary(jobs: Sequence[SlurmJob], user: Callable[[str], str]) -> str:
    """The job in one line: its state, how it ended, where and how long it ran. user: the name of a user id."""
    job = jobs[0]
    worst = next((other for other in jobs if other.ended_badly), job)
    by = f" by {user(worst.cancelled_by)}" if worst.cancelled_by else ""
    nodes = [node for each in jobs for node in each.nodes]
    parts = [
        f"{worst.state}{by}",
        f"exit code {worst.exit_code}:{worst.signal or 0}" if worst.exit_code is not None else "",
        f"{how_many(len(nodes), 'node')} {job.node_list}".strip() if nodes else "",
        f"ran {worst.elapsed // 3600}:{worst.elapsed // 60 % 60:02d}:{worst.elapsed % 60:02d}"
        if worst.elapsed is not None
        else "",
        how_many(worst.restarts, "restart") if worst.restarts else "",
    ]
    name = (
        job.name if _PLAIN.fullmatch(job.name) else f"'{job.name}'"
    )  # people give any, such as one that ends in passwd
    of = f" {name}" * bool(job.name) + f" of {job.user}" * bool(job.user)
    return f"{job.het_job or job.id}{of}: {', '.join(filter(None, parts))}"
