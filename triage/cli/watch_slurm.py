"""A Slurm job as `triage watch` sees it: its state by Slurm, its processes by a step on each of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from triage import reach
from triage.domain import SlurmJob as Job
from triage.errors import UsageError
from triage.probing.probe import RemoteProbe, Whose
from triage.probing.values import NodeView
from triage.slurm import ids
from triage.slurm.client import Slurm
from triage.watching.values import Scheduled


class SlurmJob:
    """Follows the job over requeues: other nodes, other processes, the same job. Errors: UsageError: there is none of that id."""

    def __init__(self, text: str, url: str = "", slurm: Slurm | None = None) -> None:
        self._asked, self._url, self._slurm = ids.parse(text), url, slurm or Slurm()
        self._job: Job | None = None
        self._at: tuple[str, tuple[str, ...]] = ("", ())
        self._probe: RemoteProbe | None = None

    def scheduled(self) -> Scheduled:
        """Slurm's word for it; where Slurm does not answer, no word, and the nodes that it named before are looked at."""
        found = self._slurm.jobs(self._asked)
        if not found.jobs:
            if self._job is None and found.known:
                raise UsageError(f"Slurm knows no job {self._asked}", "see `squeue --me`")
            if found.known:
                return Scheduled("finished", "Slurm does not know the job any more")
            if self._job is None:
                raise UsageError(
                    f"job {self._asked} cannot be watched: Slurm does not answer: {'; '.join(found.missing)}",
                    "run it where Slurm's commands are, or watch with --pid or --logs",
                )
            return Scheduled("", f"Slurm does not answer: {'; '.join(found.missing)}")
        going = [job for job in found.jobs if not job.ended] or list(found.jobs)
        if len(going) > 1:
            raise UsageError(
                f"{len(going)} tasks of job {self._asked} are there", f"name one of them, such as {going[0].id}"
            )
        self._job = going[0]
        return _word(self._job)

    def logs(self) -> list[str]:
        """Its output, where this machine sees it."""
        job = self._job
        paths = [job.stdout, job.stderr] if job else []
        return [path for path in dict.fromkeys(paths) if path and Path(path).is_file()]

    def look(self, devices: bool, paths: Sequence[str]) -> tuple[NodeView, ...]:
        job = self._job
        if job is None or job.waits or job.ended or not job.nodes:
            return ()
        at = (job.raw_id or self._asked.job, job.nodes)
        if self._probe is None or at != self._at:
            self._at, self._probe = at, RemoteProbe(reach.srun(*at), Whose(job=at[0], url=self._url))
        return self._probe.look(devices, paths)


def _word(job: Job) -> Scheduled:
    reason = f" ({job.reason})" if job.reason and job.reason != "None" else ""
    words = f"Slurm: {job.state}{reason}"
    if job.waits:
        return Scheduled("queued", words)
    if job.state in ("SUSPENDED", "STOPPED"):
        return Scheduled("suspended", f"{words}: stopped by the scheduler, not by itself")
    if job.state == "PREEMPTED":
        return Scheduled("preempted", words, failed=True)
    if job.ended:
        return Scheduled("finished", words, job.ended_badly)
    return Scheduled("running", words)
