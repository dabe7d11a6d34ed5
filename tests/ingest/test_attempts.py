"""Files of several jobs that ran one after the other, and files of one that only look so."""

from __future__ import annotations

import pytest

from tests.helpers import lines, log_file
from triage.domain import LogFile, RawLine
from triage.ingest.attempts import last_job
from triage.ingest.lines import LineParser

OOM = "0: torch.OutOfMemoryError: CUDA out of memory."


def output(name: str, hour: int, end: str = "done") -> LogFile:
    text = "\n".join(f"2026-05-01 {hour:02d}:0{i}:00 step {i} loss 2.{i}" for i in range(4)) + f"\n{end}"
    parser = LineParser(name, "job")
    made = log_file(text, name)
    return LogFile(name, "job", tuple(parser.parse(raw) for raw in _raw(text)), made.bytes_in, made.lines_in)


def _raw(text: str) -> list[RawLine]:
    return [RawLine(i, t.encode()) for i, t in enumerate(text.split("\n"), 1)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("slurm-100.out", "slurm-101.out"),
        ("run/attempt_1.log", "run/attempt_2.log"),
        ("train.o4411", "train.o4412"),
        ("attempt-9/out.log", "attempt-10/out.log"),
    ],
)
def test_the_last_of_several_jobs_is_left_and_the_others_are_said(first: str, second: str) -> None:
    kernel = log_file("oops", "dmesg-n1.txt", "kernel")
    left, (said,) = last_job([output(second, 11), kernel, output(first, 10, OOM)])
    assert [f.name for f in left] == [second, "dmesg-n1.txt"]
    assert "2 jobs" in said and "(failed)" in said


def test_output_and_errors_of_one_job_stay_together() -> None:
    files = [
        output("slurm-100.out", 10),
        output("slurm-100.err", 10),
        output("slurm-101.out", 11),
        output("slurm-101.err", 11),
    ]
    left, said = last_job(files)
    assert [f.name for f in left] == ["slurm-101.out", "slurm-101.err"] and said


@pytest.mark.parametrize(
    "files",
    [
        [output("slurm-100_1.out", 10), output("slurm-100_2.out", 11)],  # tasks of an array
        [output("slurm-100.0.out", 10), output("slurm-100.1.out", 11)],  # tasks of a step
        [output("slurm-100.out", 10), output("slurm-101.out", 10)],  # side by side
        [
            output("t/attempt_0/0/stdout.log", 10),
            output("t/attempt_1/0/stdout.log", 11),
        ],  # torchrun started ranks again
        [log_file("step\n" * 9, "job_10.log"), log_file("step\n" * 9, "job_11.log")],  # ranks, for all that is known
        [output("rank_0.log", 10), output("rank_1.log", 11)],
        [output("slurm-100.out", 10), output("other.log", 11)],
    ],
)
def test_files_of_one_job_are_all_left(files: list[LogFile]) -> None:
    assert last_job(files) == (tuple(files), ())


def test_a_last_job_that_wrote_nothing_is_not_the_last() -> None:
    empty = LogFile("slurm-101.out", "job", lines("queued", "slurm-101.out"), 6, 1)
    left, said = last_job([output("slurm-100.out", 10, OOM), empty])
    assert len(left) == 2 and not said
