"""What sacct and scontrol print, parsable or in columns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.helpers import log_file
from triage.evidence.account import job_row, rows, times_of

PARSABLE = """JobID|JobName|State|ExitCode|Start|End|NodeList
77|lm|FAILED|1:0|2026-01-01T12:00:00|2026-01-01T14:00:00|gpu-[01-02]
77.batch|batch|FAILED|1:0|2026-01-01T12:00:00|2026-01-01T14:00:00|gpu-01
77.0|python|OUT_OF_MEMORY|0:125|2026-01-01T12:00:01|2026-01-01T13:59:58|gpu-[01-02]"""
COLUMNS = """       JobID      State ExitCode               Start                 End
------------ ---------- -------- ------------------- -------------------
          77     FAILED      1:0 2026-01-01T12:00:00 2026-01-01T14:00:00
        77.0 CANCELLED+     0:15 2026-01-01T12:00:01             Unknown"""
SCONTROL = """JobId=77 JobName=lm
   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)
   StartTime=2026-01-01T12:00:00 EndTime=2026-01-01T14:00:00 Deadline=N/A
   NodeList=gpu-[01-02] ExitCode=1:0"""


@pytest.mark.parametrize("text", [PARSABLE, COLUMNS, SCONTROL], ids=["parsable", "columns", "scontrol"])
def test_the_job_itself_and_not_its_steps(text: str) -> None:
    file = log_file(text, "sacct.txt", "sacct")
    row = job_row(file)
    assert row is not None
    assert (row.job, row.state, row.exit_code, row.is_step) == ("77", "FAILED", "1:0", False)
    assert times_of(file) == {
        "job start": datetime(2026, 1, 1, 12, 0, tzinfo=UTC),
        "job end": datetime(2026, 1, 1, 14, 0, tzinfo=UTC),
    }


def test_steps_are_rows_and_an_unknown_time_is_none() -> None:
    found = rows(log_file(COLUMNS, "sacct.txt", "sacct"))
    assert [(r.job, r.state, r.is_step, r.end is None) for r in found] == [
        ("77", "FAILED", False, False),
        ("77.0", "CANCELLED+", True, True),
    ]


def test_a_time_that_no_clock_shows_is_none() -> None:
    file = log_file("JobID|State|Start|End\n7|FAILED|2026-01-01T25:00:99|2026-01-01T10:00:00\n", "sacct.txt", "sacct")
    (row,) = rows(file)
    assert (row.start, row.end) == (None, datetime(2026, 1, 1, 10, tzinfo=UTC))


def test_another_kind_of_file_has_no_rows() -> None:
    assert rows(log_file(PARSABLE, "job.log", "job")) == []
    assert job_row(log_file("no table here", "sacct.txt", "sacct")) is None
