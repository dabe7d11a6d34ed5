"""What a diagnosis tells beyond its cause, on small jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.helpers import job, log_file
from triage.cli import wiring
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, LogFile, LogLine

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return wiring.knowledge()


def timed(name: str, kind: str, *told: tuple[float, str], **fields: object) -> LogFile:
    """told: (seconds after T0, text)."""
    file = log_file("\n".join(text for _, text in told), name, kind)
    lines = tuple(
        replace(line, time=T0 + timedelta(seconds=s), **fields) for (s, _), line in zip(told, file.lines, strict=True)
    )
    return replace(file, lines=lines)


def step(n: int) -> str:
    return f"iteration {n}/ 1000 | lm loss: 2.{n} | elapsed time per iteration (ms): 500.1"


def watchdog(rank: int, seq: int = 9) -> str:
    return (
        f"[rank{rank}]:[E1118 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds before timing out."
    )


XID = "NVRM: Xid (PCI:0000:4a:00): 79, pid=4711, name=python, GPU has fallen off the bus."
PEER = "[rank1]: RuntimeError: CUDA error: unspecified launch failure"


def joined(seconds: float, knowledge: Knowledge) -> Diagnosis:
    mine = timed("gpu-07.log", "job", *((10 * n, step(n)) for n in range(1, 6)), (100.0, PEER))
    kernel = timed("gpu-07.dmesg", "kernel", (100.0 + seconds, XID), program="kernel", node="gpu-07")
    return judge(job(replace(mine, node="gpu-07"), replace(kernel, node="gpu-07")), knowledge)


def test_a_kernel_line_within_the_window_supports_the_cause(knowledge: Knowledge) -> None:
    found = joined(-5, knowledge)
    assert (found.failure_type, found.status) == ("gpu-lost", "established")
    assert found.timeline.joins[0].startswith("E1 of the kernel log of gpu-07 (gpu-07.dmesg): within 20 s")


def test_outside_of_the_window_it_establishes_nothing(knowledge: Knowledge) -> None:
    found = joined(-60, knowledge)
    assert found.status == "supported"
    assert "more than 20 s away" in found.timeline.joins[0]


@pytest.mark.parametrize("hours", [-8, 2, 9])
def test_whole_hours_that_nothing_else_tells_are_a_question_and_establish_nothing(
    hours: int, knowledge: Knowledge
) -> None:
    found = joined(hours * 3600 - 5, knowledge)
    assert (found.failure_type, found.status, found.suspects.nodes) == ("gpu-lost", "supported", ("gpu-07",))
    assert "if it is no zone" in found.root_cause
    assert found.timeline.clocks[0].zone == hours * 3600
    assert found.timeline.moments[-1].source == "job"


@pytest.mark.parametrize("seconds", [300, 1000, 5000])
def test_what_the_kernel_says_well_after_the_jobs_end_is_not_its_cause(seconds: int, knowledge: Knowledge) -> None:
    found = joined(seconds, knowledge)
    assert (found.failure_type, found.suspects.nodes) == ("cuda-error", ())


def test_an_own_error_at_another_time_comes_before_what_the_kernel_said_long_ago(knowledge: Knowledge) -> None:
    error = "KeyError: 'tokens'"
    mine = timed("gpu-07.log", "job", *((10 * n, step(n)) for n in range(1, 6)), (100.0, error))
    for seconds, type_ in ((-5.0, "gpu-lost"), (-90.0, "key-error")):
        kernel = timed("gpu-07.dmesg", "kernel", (100.0 + seconds, XID), program="kernel", node="gpu-07")
        found = judge(job(replace(mine, node="gpu-07"), replace(kernel, node="gpu-07")), knowledge)
        assert found.failure_type == type_


def test_the_kernel_log_of_another_zone_is_joined_all_the_same(knowledge: Knowledge) -> None:
    dead = "failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: python"
    mine = timed("gpu-07.log", "job", *((10 * n, step(n)) for n in range(1, 6)), (100.0, dead))
    killed = "Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
    kernel = timed("gpu-07.dmesg", "kernel", (100.0 + 7195, killed), program="kernel", node="gpu-07")
    found = judge(job(replace(mine, node="gpu-07"), replace(kernel, node="gpu-07")), knowledge)
    assert found.failure_type == "host-out-of-memory"
    assert "another time zone" in found.timeline.clocks[0].said
    assert found.evidence[0].time == T0 + timedelta(seconds=95)
    assert [m.source for m in found.timeline.moments] == ["job", "kernel", "job"]


def test_the_first_error_that_is_not_of_the_collectives_is_context(knowledge: Knowledge) -> None:
    told = [(10.0 * n, step(n)) for n in range(1, 6)]
    told += [(60.0, "odd thing: cannot flush the frobnicator"), (700.0, watchdog(0)), (700.5, watchdog(1))]
    file = timed("job.log", "job", *told)
    lines = [replace(x, level="error") if "frob" in x.text else x for x in file.lines]
    found = judge(job(replace(file, lines=tuple(lines))), knowledge)
    assert found.failure_type == "nccl-timeout"
    other = [e for e in found.evidence if "not of the collectives" in e.title]
    assert [(e.line, e.role) for e in other] == [(6, "context")]
    early = [replace(x, time=T0 - timedelta(hours=1)) if "frob" in x.text else x for x in lines]
    found = judge(job(replace(file, lines=tuple(early))), knowledge)
    assert not [e for e in found.evidence if "not of the collectives" in e.title]


def test_initiator_and_followers_of_dumps_are_told(knowledge: Knowledge) -> None:
    asked = "[rank1]:[E1118 ProcessGroupNCCL.cpp:684] [Rank 1] First PG on this rank to signal dumping."
    followed = "[rank0]:[E1118 ProcessGroupNCCL.cpp:1447] [Rank 0] Observed flight recorder dump signal from another rank via TCPStore."
    found = judge(job("\n".join([step(1), watchdog(1), asked, followed])), knowledge)
    assert "The watchdog of rank 1 fired and asked for dumps; rank 0 only followed." in found.root_cause


def test_the_group_that_waited_first_is_named(knowledge: Knowledge) -> None:
    def of(group: str, rank: int) -> str:
        return watchdog(rank).replace(f"[Rank {rank}]", f"[PG ID 1 PG GUID {group} Rank {rank}]")

    late = timed("job.log", "job", (0.0, step(1)), (700.0, of("7", 0)), (640.0, of("3", 1)), (705.0, of("7", 2)))
    assert "Process group 3 waited first, 60 s before the next one" in judge(job(late), knowledge).root_cause
    same = timed("job.log", "job", (0.0, step(1)), (700.0, of("7", 0)), (699.0, of("3", 1)))
    assert "waited first" not in judge(job(same), knowledge).root_cause


def test_a_kill_without_a_reason_is_said_to_be_one(knowledge: Knowledge) -> None:
    dead = "failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: python"
    alone = judge(job(step(1) + "\n" + dead), knowledge)
    assert "Nothing here says who sent SIGKILL" in alone.root_cause
    assert "the kernel log and the scheduler's account of that time are not among the files" in alone.root_cause
    killed = "Out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
    told = judge(job(log_file(step(1) + "\n" + dead), log_file(killed, "dmesg", "kernel")), knowledge)
    assert "SIGKILL" not in told.root_cause.partition("What followed")[0].replace("exit code", "")
    assert "Nothing here says" not in told.root_cause


SUMMARY = """step 9
train.py FAILED
Failures:
[1]:
  time      : 2026-01-01_12:00:07
  host      : gpu-07
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 11)
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_12:00:01
  host      : gpu-07
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 14)"""


def test_the_order_of_exits_in_the_launchers_summary(knowledge: Knowledge) -> None:
    found = judge(job(SUMMARY), knowledge)
    assert "rank 3 fell first (exit code 1, job.log:14); 0 was ended after it." in found.root_cause


def test_the_chain_goes_on_in_order_of_time(knowledge: Knowledge) -> None:
    first = timed(
        "b.log",
        "job",
        (
            100.0,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB",
        ),
    )
    peers = timed("a.log", "job", (9.0, step(1)), (700.0, watchdog(0)))
    closed = timed(
        "c.log",
        "job",
        (
            101.0,
            "[rank2]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
        ),
    )
    found = judge(job(peers, first, closed), knowledge)
    by_id = {e.id: e for e in found.evidence}
    order = [by_id[i].file for i in found.chain]
    assert order == ["b.log", "c.log", "a.log"]


def test_gpu_hours_and_restart_cost_stand_in_the_result(knowledge: Knowledge) -> None:
    told = [(0.0, "world_size=8"), *((60.0 * n, step(n)) for n in range(1, 9))]
    told += [(490.0, "successfully saved checkpoint at iteration 8"), (2290.0, "KeyError: 'tokens'")]
    found = judge(job(timed("job.log", "job", *told)), knowledge)
    assert (found.progress.lost_gpu_hours, found.progress.last_checkpoint_step) == (4.0, 8)
    assert found.progress.restart_cost == "60 s from the start of the log to the first step"


def test_a_healthy_job_lost_nothing(knowledge: Knowledge) -> None:
    lines = [LogLine("job.log", n, step(n), T0 + timedelta(seconds=n)) for n in range(1, 9)]
    found = judge(job(LogFile("job.log", "job", tuple(lines), 1, 8)), knowledge)
    assert found.outcome == "healthy"
    assert found.timeline.moments == ()
    assert found.progress.lost_gpu_hours is None
