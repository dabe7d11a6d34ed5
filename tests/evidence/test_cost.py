"""What a failure costs, in time and GPU-hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.helpers import log_file
from triage.domain import LogFile, LogLine, Progress
from triage.evidence.cost import cost, span, world_size
from triage.evidence.progress import progress, steps

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def run(*told: tuple[int, str]) -> LogFile:
    """told: (minutes after T0, text)."""
    found = tuple(LogLine("job.log", i, text, T0 + timedelta(minutes=m)) for i, (m, text) in enumerate(told, 1))
    return LogFile("job.log", "job", found, 1, len(found))


def costs(file: LogFile, failed: int | None, hung: bool = False) -> Progress:
    worked = {file.name: steps(file)}
    line = file.lines[failed - 1] if failed else None
    return cost([file], worked, progress([file], worked, line), line, hung)


def step(n: int) -> str:
    return f"step {n} loss 2.31 lr 0.01"


RUN = (
    (0, "world_size=16 starting"),
    (4, step(1)),
    (5, step(2)),
    (60, step(100)),
    (61, "successfully saved checkpoint to /ckpt/last.pt"),
    (90, step(150)),
    (91, "RuntimeError: boom"),
)


def test_work_since_the_last_checkpoint_is_lost_on_all_gpus() -> None:
    reached = costs(run(*RUN), 7)
    assert (reached.last_step, reached.last_checkpoint_step, reached.world_size) == (150, 100, 16)
    assert reached.lost_gpu_hours == 8.0  # 30 minutes on 16 GPUs
    assert reached.lost_time == "30 min since the last checkpoint"
    assert reached.restart_cost == "4 min from the start of the log to the first step"


def test_all_gpus_are_held_until_the_jobs_last_line() -> None:
    reached = costs(run(*RUN, (121, "srun: error: n1: task 3: Aborted")), 7)
    assert (reached.lost_gpu_hours, reached.lost_time) == (16.0, "1 h 0 min since the last checkpoint")


def test_the_wait_that_ranks_tell_counts_where_their_lines_have_no_stamp() -> None:
    file = run(*RUN[:6], (90, "watchdog"))
    file = replace(file, lines=(*file.lines[:6], replace(file.lines[6], time=None)))
    worked = {file.name: steps(file)}
    line = file.lines[6]
    reached = cost([file], worked, progress([file], worked, line), line, False, timedelta(minutes=31))
    assert reached.lost_gpu_hours == 16.0


def test_a_hang_without_a_checkpoint_costs_its_silence() -> None:
    told = (*RUN[:4], (180, "heartbeat: alive"))
    reached = costs(run(*told), None, hung=True)
    assert reached.silence == "no step for 2 h 0 min"
    assert reached.lost_gpu_hours == 32.0


def test_a_hang_after_a_checkpoint_costs_all_since_then() -> None:
    reached = costs(run(*RUN[:6], (121, "heartbeat: alive")), None, hung=True)
    assert (reached.lost_gpu_hours, reached.lost_time) == (16.0, "1 h 0 min since the last checkpoint")
    assert reached.silence == "no step for 31 min"


def test_without_a_checkpoint_nothing_is_claimed() -> None:
    reached = costs(run(*RUN[:4], RUN[6]), 5)
    assert reached.lost_gpu_hours is None
    assert reached.lost_time is None


def test_the_step_that_the_checkpoint_names_counts_before_the_one_printed_before_it() -> None:
    reached = costs(run(RUN[0], RUN[1], RUN[2], RUN[3], (61, "checkpoint saved to /ckpt/global_step90"), RUN[6]), 6)
    assert reached.last_checkpoint_step == 90


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("All distributed processes registered. Starting with 8 processes", 8),
        ("n1:1:2 NCCL INFO comm 0x1 rank 0 nranks 64 cudaDev 0", 64),
        ("using world size: 32, data-parallel size: 4", 32),
        ("hello world", None),
    ],
)
def test_the_world_is_as_large_as_printed(text: str, size: int | None) -> None:
    assert world_size([log_file(text)]) == size


def test_ranks_seen_tell_the_world_only_when_all_are_seen() -> None:
    def of(*ranks: int) -> int | None:
        return world_size([LogFile("a", "job", tuple(LogLine("a", i, "x", rank=r) for i, r in enumerate(ranks)), 1, 1)])

    assert of(0, 1, 2, 3) == 4
    assert of(0, 3) is None
    assert of(0) is None


def test_spans_are_in_words() -> None:
    assert [span(timedelta(seconds=s)) for s in (45, 125, 11_100)] == ["45 s", "2 min", "3 h 5 min"]
