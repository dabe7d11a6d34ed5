"""What PBS, LSF, Grid Engine and Flux say when they end a job."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

STEPS = "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9))


@pytest.mark.parametrize(
    ("end", "outcome", "kind", "job"),
    [
        ("=>> PBS: job killed: walltime 7231 exceeded limit 7200\n", "interrupted", "time-limit", ""),
        ("=>> PBS: job killed: vmem 92gb exceeded limit 81gb\n", "failed", "host-out-of-memory", ""),
        (
            "Sender: LSF System <a@b1>\nSubject: Job 17: <t> in cluster <c> Exited\n\n"
            "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n",
            "interrupted",
            "time-limit",
            "17",
        ),
        (
            "Subject: Job 17: <t> in cluster <c> Exited\nTERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n"
            "Exited with exit code 137.\n",
            "failed",
            "host-out-of-memory",
            "17",
        ),
        ("TERM_OWNER: job killed by owner.\nExited with exit code 130.\n", "interrupted", "cancelled", ""),
        (
            "failed       37  : qmaster enforced h_rt, h_cpu, or h_vmem limit\nexit_status  137\n",
            "interrupted",
            "time-limit",
            "",
        ),
        (
            "FLUX_JOB_ID=f24YW13\nflux-job: task(s) exited with exit code 142\n"
            "12.3s: job.exception type=timeout severity=0 resource allocation expired\n",
            "interrupted",
            "time-limit",
            "f24YW13",
        ),
    ],
)
def test_the_scheduler_says_why_it_ended_the_job(
    diagnosed: Diagnose, end: str, outcome: str, kind: str, job: str
) -> None:
    d = diagnosed({"out.txt": STEPS + end})
    assert (d.outcome, d.failure_type, d.job) == (outcome, kind, job)


def test_an_error_before_the_schedulers_report_is_the_cause(diagnosed: Diagnose) -> None:
    error = (
        'Traceback (most recent call last):\n  File "/w/t.py", line 3, in step\n    x = batch["y"]\nKeyError: \'y\'\n'
    )
    d = diagnosed({"out.txt": STEPS + error + "Subject: Job 17: <t> in cluster <c> Exited\nExited with exit code 1.\n"})
    assert d.failure_type == "key-error"
