"""The queue of diagnoses in an event loop of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from triage.web.jobs import Job, Jobs
from triage.web.metrics import Metrics


def test_a_worker_that_does_not_start_fails_each_job_and_holds_up_none(tmp_path: Path) -> None:
    async def diagnosed() -> list[Job]:
        jobs = Jobs(tmp_path / "jobs", (str(tmp_path / "none"),), 1, 30, Metrics())
        jobs.start()
        made = [jobs.add(jobs.room(), "ada", ("a.log",)).id for _ in range(2)]
        async with asyncio.timeout(30):
            while not all(jobs.get(job).over for job in made):
                await asyncio.sleep(0.01)
        await jobs.stop()
        return [jobs.get(job) for job in made]

    found = asyncio.run(diagnosed())
    assert [job.state for job in found] == ["failed"] * 2
    assert all("did not start" in job.said for job in found)
