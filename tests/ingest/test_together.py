"""What only the files of a job together tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tests.helpers import log_file
from triage.domain import LogFile
from triage.ingest.together import together


def at(file: LogFile, *times: datetime) -> LogFile:
    return replace(file, lines=tuple(replace(line, time=t) for line, t in zip(file.lines, times, strict=True)))


JOB = at(log_file("2024-06-25 10:58:50 step 9 loss 2.1"), datetime(2024, 6, 25, 10, 58, 50, tzinfo=UTC))
KERNEL = "Jun 25 10:58:48 n1 kernel: audit(1618207350.924:818)\nJun 25 10:58:49 n1 kernel: NVRM: Xid 79"


def dated(year: int, month: int = 6) -> LogFile:
    times = [datetime(year, month, 25, 10, 58, second, tzinfo=UTC) for second in (48, 49)]
    return at(log_file(KERNEL, "n1.journal", "kernel"), *times)


def test_stamps_without_a_year_take_that_of_the_jobs_own_lines() -> None:
    _, kernel = together([JOB, dated(2026)])
    assert [line.time and line.time.year for line in kernel.lines] == [2024, 2024]


def test_stamps_stay_that_lie_elsewhere_or_name_their_year() -> None:
    named = at(log_file("2026-06-25 10:58:48 up", "n2.log", "kernel"), datetime(2026, 6, 25, 10, 58, 48, tzinfo=UTC))
    for file in (dated(2026, month=3), dated(2024), named):
        assert together([JOB, file])[1] == file


def test_names_of_a_grid_count_ranks() -> None:
    files = [
        log_file("up", f"worker_{node}_{local}.log", rank=node) for node in range(2) for local in range(8)
    ]  # a single name looks like that of rank `node`
    found = together(files)
    assert [f.rank for f in found] == list(range(16))
    assert found[11].lines[0].rank == 11
    assert together(files[:3]) == tuple(files[:3])
