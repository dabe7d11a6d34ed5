"""Clocks of several files against each other: zones, skew, and what is too little to say either."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.helpers import job
from triage.domain import JobLog, LogFile, LogLine
from triage.evidence.clocks import align
from triage.evidence.marks import marks

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def file(
    name: str, told: list[tuple[float, str]], kind: Any = "job", zone: str = "", node: str | None = None
) -> LogFile:
    """told: (seconds after T0 as the clock of the file shows it, text); zone: what its stamps say of theirs."""
    lines = []
    for i, (after, text) in enumerate(told, 1):
        at = T0 + timedelta(seconds=after)
        program = "slurm" if text.startswith(("srun", "slurmstepd")) else "kernel" if kind == "kernel" else None
        lines.append(LogLine(name, i, f"{at:%Y-%m-%d %H:%M:%S.%f}{zone} {text}", time=at, program=program, hot=True))
    return LogFile(name, kind, tuple(lines), 1, len(lines), last_line=len(lines), node=node)


def steps(first: int, last: int, ahead: float = 0.0, jitter: float = 0.0) -> list[tuple[float, str]]:
    return [
        (10.0 * n + ahead + (jitter if n % 2 else -jitter), f"step {n} loss 2.5 lr 0.1") for n in range(first, last)
    ]


def times(log: JobLog, name: str) -> list[datetime | None]:
    return [line.time for f in log.files if f.name == name for line in f.lines]


def test_a_skew_between_ranks_is_the_middle_of_their_steps_and_is_taken_out() -> None:
    a, b = file("rank0.log", [*steps(1, 20), (300.0, "end")]), file("rank8.log", steps(1, 20, ahead=3.2, jitter=0.1))
    found = align(job(a, b))
    assert [(n.files, n.ahead, n.zone) for n in found.notes] == [(("rank8.log",), pytest.approx(3.2, abs=0.11), 0.0)]
    assert "3.2 s ahead of that of rank0.log" in found.notes[0].said or "3.3 s ahead" in found.notes[0].said
    moved = times(found.log, "rank8.log")[0]
    assert moved is not None and abs((moved - (T0 + timedelta(seconds=10))).total_seconds()) < 0.3
    assert times(found.log, "rank0.log") == times(job(a), "rank0.log")


def test_one_outlier_does_not_move_the_middle() -> None:
    told = steps(1, 12, ahead=4.0)
    told[5] = (told[5][0] + 14.0, told[5][1])
    found = align(job(file("a.log", [*steps(1, 12), (200.0, "end")]), file("b.log", told)))
    assert found.notes[0].ahead == pytest.approx(4.0)


@pytest.mark.parametrize("ahead", [0.4, -0.6])
def test_less_than_stamps_can_show_is_no_skew(ahead: float) -> None:
    assert (
        align(job(file("a.log", [*steps(1, 9), (200.0, "end")]), file("b.log", steps(1, 9, ahead=ahead)))).notes == ()
    )


def test_events_that_do_not_agree_give_no_skew() -> None:
    told = [(at + (n % 3) * 6.0, text) for n, (at, text) in enumerate(steps(1, 13))]
    assert align(job(file("a.log", [*steps(1, 13), (200.0, "end")]), file("b.log", told))).notes == ()


def test_whole_hours_are_a_zone_and_the_rest_is_skew() -> None:
    ended = "slurmstepd: error: *** STEP 77.0 ON gpu-07 CANCELLED AT 2026-01-01T12:03:00 ***"
    a = file("job.log", [*steps(1, 10), (180.0, ended)], zone="Z")
    b = file("slurmd.log", [(7200.0 + 183.2, ended)], kind="slurm", node="gpu-07")
    found = align(job(a, b))
    assert found.notes[0].zone == 7200.0
    assert found.notes[0].ahead == pytest.approx(7203.2)
    said = found.notes[0].said
    assert "read as UTC+2, because" in said
    assert "3.2 s ahead" in said
    assert times(found.log, "slurmd.log") == [T0 + timedelta(seconds=180)]


def test_a_zone_of_quarter_hours_is_told_by_steps() -> None:
    found = align(
        job(file("a.log", [*steps(1, 9), (200.0, "end")], zone="+00:00"), file("b.log", steps(1, 9, ahead=20700.0)))
    )
    assert found.notes[0].zone == 20700.0
    assert "UTC+5:45" in found.notes[0].said


def test_the_kernel_log_names_its_zone_and_the_job_does_not() -> None:
    a = file("job.log", [*steps(1, 9), (100.0, "failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: python")])
    b = file(
        "dmesg.txt", [(95.0 - 3600.0, "Out of memory: Killed process 4711 (python)")], "kernel", "+00:00", "gpu-07"
    )
    found = align(job(a, b))
    assert found.notes[0].zone == -3600.0
    assert (
        "the kernel log of gpu-07 (dmesg.txt) names its time zone, job.log does not and is read as UTC+1"
        in found.notes[0].said
    )
    assert times(found.log, "dmesg.txt") == [T0 + timedelta(seconds=95)]


def test_the_death_of_one_process_an_odd_time_apart_tells_no_zone() -> None:
    a = file("job.log", [*steps(1, 9), (100.0, "failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: python")])
    b = file("dmesg.txt", [(100.0 + 2500.0, "Out of memory: Killed process 4711 (python)")], "kernel")
    assert align(job(a, b)).notes == ()


def test_a_file_is_compared_through_another_one() -> None:
    line = "srun: error: gpu-07: task 3: Killed"
    a = file("a.log", [*steps(1, 9), (200.0, "end")])
    b = file("b.log", [*steps(5, 9, ahead=5.0), (105.0, line)])
    c = file("c.log", [(95.0, line)], kind="slurm")
    ahead = {n.files[0]: n.ahead for n in align(job(a, b, c)).notes}
    assert ahead == {"b.log": pytest.approx(5.0), "c.log": pytest.approx(-5.0)}


def test_both_ends_of_a_lost_connection_are_one_event() -> None:
    a = file("a.log", [*steps(1, 9), (200.0, "end")])
    one = LogLine("a.log", 99, "gpu-01:1:1 NCCL WARN connection closed by remote peer gpu-02<41022>", T0, node="gpu-01")
    other = LogLine(
        "b.log", 1, "gpu-02:1:1 NCCL WARN connection closed by remote peer gpu-01<51022>", T0, node="gpu-02"
    )
    with_one = replace(a, lines=(*a.lines, one))
    events = {m.event for m in marks(with_one)} & {m.event for m in marks(LogFile("b.log", "job", (other,), 1, 1))}
    assert "lost connection gpu-01 gpu-02" in events


def test_the_start_and_end_of_the_accounting_tell_its_zone() -> None:
    a = file("job.log", [*steps(1, 9), (3600.0, "end")], zone="Z")
    rows = "JobID|State|ExitCode|Start|End\n77|FAILED|1:0|2026-01-01T14:00:02|2026-01-01T15:00:11\n"
    found = align(
        job(
            a,
            LogFile(
                "sacct.txt", "sacct", tuple(LogLine("sacct.txt", i, t) for i, t in enumerate(rows.split("\n"), 1)), 1, 2
            ),
        )
    )
    assert [(n.files, n.zone) for n in found.notes] == [(("sacct.txt",), 7200.0)]
    assert "UTC+2" in found.notes[0].said


def test_one_file_has_nothing_to_be_compared_with() -> None:
    log = job(file("a.log", steps(1, 9)))
    assert align(log).log is log


def test_files_that_are_off_alike_are_told_of_once() -> None:
    off = [file(f"rank{r}.log", steps(1, 12, ahead=4.0 + r / 50)) for r in (1, 2, 3)]
    same = [file(f"rank{r}.log", steps(1, 12)) for r in (4, 5, 6, 7)]
    (note,) = align(job(file("rank0.log", [*steps(1, 12), (200.0, "end")]), *off, *same)).notes
    assert note.files == ("rank1.log", "rank2.log", "rank3.log")
    assert "rank1.log (and alike of 2 other files) is 4.0 s ahead" in note.said


def test_where_the_main_file_alone_is_off_it_is_told_to_be() -> None:
    others = [file(f"rank{r}.log", steps(1, 12)) for r in (1, 2, 3)]
    (note,) = align(job(file("rank0.log", [*steps(1, 12, ahead=3.0), (200.0, "end")]), *others)).notes
    assert (note.files, note.ahead) == (("rank0.log",), 3.0)
    assert "ahead of that of rank1.log" in note.said
