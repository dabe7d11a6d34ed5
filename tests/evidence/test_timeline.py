"""The window join, and events of all sources in one order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from triage.domain import Evidence, LogFile, LogLine
from triage.evidence.timeline import Failure, join, moments

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def failed(seconds: float, host: str | None = "gpu-07") -> Failure:
    return Failure(at(seconds), host, LogLine("job.log", 9, "x", at(seconds)))


@pytest.mark.parametrize(
    ("seconds", "kind"),
    [(0, "cause"), (-20, "cause"), (20, "cause"), (-21, "outside"), (21, "outside"), (900, "outside")],
)
def test_twenty_seconds_around_the_first_failure_of_that_host(seconds: float, kind: str) -> None:
    assert join(at(seconds), "gpu-07", [failed(0), failed(880)], None, 2) == kind


def test_before_the_start_of_a_hang_a_minute_counts() -> None:
    assert join(at(-50), "gpu-07", [failed(600)], at(0), 2) == "cause"
    assert join(at(-70), "gpu-07", [failed(600)], at(0), 2) == "outside"


def test_a_host_with_no_other_sign_stands_alone() -> None:
    assert join(at(0), "gpu-07", [failed(0, "gpu-01")], None, 2) == "alone"
    assert join(at(0), "gpu-07", [failed(0, "GPU-07.cluster.example")], None, 2) == "cause"


def test_failures_of_no_known_host_are_of_the_only_one() -> None:
    assert join(at(0), "gpu-07", [failed(0, None)], None, 1) == "cause"
    assert join(at(0), "gpu-07", [failed(0, None)], None, 4) == "unknown"


def test_no_stamp_or_no_host_says_nothing() -> None:
    assert join(None, "gpu-07", [failed(0)], None, 1) == "unknown"
    assert join(at(0), None, [failed(0)], None, 1) == "unknown"


def test_scheduler_kernel_and_job_stand_in_one_order() -> None:
    table = ["JobID|State|ExitCode|Start|End", "77|FAILED|1:0|2026-01-01T14:00:00|2026-01-01T14:10:00"]
    account = LogFile("sacct.txt", "sacct", tuple(LogLine("sacct.txt", i, t) for i, t in enumerate(table, 1)), 1, 2)
    kernel = LogFile("dmesg", "kernel", (), 1, 1)
    cited = [
        Evidence("E2", "job.log", 5, "x", "cascade", "nccl-timeout", "a time-out", time=at(500)),
        Evidence("E1", "dmesg", 3, "x", "root", "gpu-lost", "the GPU fell off the bus", node="gpu-07", time=at(400)),
        Evidence("E3", "job.log", 6, "no stamp", "context", "unknown"),
    ]
    step = (LogLine("job.log", 4, "step 9", at(390)), "the last step")
    found = moments([account, kernel], cited, [step], at(395), {"sacct.txt": 7200.0})
    assert [(m.time, m.source, m.evidence) for m in found] == [
        (at(0), "scheduler", ""),
        (at(390), "job", ""),
        (at(395), "job", ""),
        (at(400), "kernel", "E1"),
        (at(500), "job", "E2"),
        (at(600), "scheduler", ""),
    ]
    assert found[-1].what == "the job ended: FAILED 1:0"
