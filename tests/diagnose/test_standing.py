"""Last words that become causes, a program's own words beside its abort, deaths of other jobs, and a loss that diverged."""

from __future__ import annotations

import pytest

from tests.diagnose.test_outlived import steps, told
from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


KERNEL = (
    "[1.1] oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/job_88,task_memcg=/job_88,task=python3,pid=111,uid=9\n"
    "[1.2] Memory cgroup out of memory: Killed process 111 (python3) total-vm:1kB, anon-rss:1kB"
)
KEY_ERROR = "Traceback (most recent call last):\n  File \"/w/a.py\", line 1, in f\n    d[k]\nKeyError: 'k'"


def test_a_kill_in_the_kernel_log_is_not_of_a_job_that_died_of_its_own_error(knowledge: Knowledge) -> None:
    kernel = log_file(KERNEL, "dmesg.txt", "kernel")
    d = judge(job(f"{steps(1, 9)}\n{KEY_ERROR}", kernel), knowledge)
    assert d.failure_type == "key-error"
    assert any(e.role == "context" and e.file == "dmesg.txt" for e in d.evidence)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("python3 invoked oom-killer: gfp_mask=0x0, order=0", "tracker: none"),
        ("Memory cgroup out of memory: Kill process 111 (python3) score 999 or sacrifice child", "tracker: none"),
    ],
)
def test_a_kill_that_names_no_process_is_of_a_job_that_speaks_of_one(
    knowledge: Knowledge, kernel: str, said: str
) -> None:
    d = judge(job(f"{said}\n{steps(1, 9)}\n{KEY_ERROR}", log_file(kernel, "dmesg.txt", "kernel")), knowledge)
    assert d.failure_type == "key-error"


@pytest.mark.parametrize("said", ["exitcode: -9 (pid: 7)", "srun: error: n1: task 0: Killed", "worker pid 111 is gone"])
def test_a_kill_is_of_the_job_that_reports_it(knowledge: Knowledge, said: str) -> None:
    d = judge(job(f"{steps(1, 9)}\n{KEY_ERROR}\n{said}", log_file(KERNEL, "dmesg.txt", "kernel")), knowledge)
    assert d.failure_type == "host-out-of-memory"


def test_a_kill_explains_a_job_that_only_stops(knowledge: Knowledge) -> None:
    d = judge(job(steps(1, 9), log_file(KERNEL, "dmesg.txt", "kernel")), knowledge)
    assert d.failure_type == "host-out-of-memory"


def test_a_kill_in_the_cgroup_of_another_job_is_not_this_jobs(knowledge: Knowledge) -> None:
    kernel = log_file(KERNEL, "dmesg.txt", "kernel")
    other = judge(job(f"SLURM_JOB_ID=99\n{steps(1, 9)}\nexitcode: -9 (pid: 7)", kernel), knowledge)
    same = judge(job(f"SLURM_JOB_ID=88\n{steps(1, 9)}\nexitcode: -9 (pid: 7)", kernel), knowledge)
    assert (other.failure_type == "host-out-of-memory", same.failure_type) == (False, "host-out-of-memory")


def test_the_programs_words_beside_its_abort_are_the_cause(knowledge: Knowledge) -> None:
    abort = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 3."
    d = judge(job(f"ERROR (rank 5): unknown keyword 'timestep' in heat.in\n{abort}"), knowledge)
    assert (told(d), d.evidence[0].line) == (("failed", "argument-error"), 1)
    late = judge(job(f"solver starts\n{abort}\nERROR: the residual is not finite"), knowledge)
    assert [e.line for e in late.evidence if e.role == "root"] == [4]


def test_a_program_that_refuses_to_go_on_has_failed(knowledge: Knowledge) -> None:
    d = judge(job(f"{steps(1, 9)}\nERROR: resume check: refusing to go on\n[rank0]: SystemExit: 17"), knowledge)
    assert (d.outcome, d.evidence[0].line) == ("failed", 9)


def test_a_missing_helper_is_the_cause_where_the_script_ends_on_it(knowledge: Knowledge) -> None:
    missing = "job.sh: line 15: module: command not found"
    assert judge(job(f"job 5 on n1\n{missing}"), knowledge).failure_type == "file-not-found"
    assert judge(job(f"job 5 on n1\n{missing}\n{steps(1, 9)}"), knowledge).outcome == "healthy"


def test_a_rank_that_waits_for_a_lock_while_the_others_give_up_is_the_cause_and_the_suspect(
    knowledge: Knowledge,
) -> None:
    waits = log_file("rank 0 of 2\nwaiting for /data/val.index.lock", "rank0.log", rank=0)
    gave_up = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete"
    others = log_file(f"rank 1 of 2\n{gave_up}", "rank1.log", rank=1)
    d = judge(job(waits, others), knowledge)
    assert (d.failure_type, d.evidence[0].file, d.suspects.ranks) == ("hang", "rank0.log", (0,))
    went_on = log_file("waiting for /data/val.index.lock\nlock taken", "rank0.log", rank=0)
    assert judge(job(went_on, others), knowledge).failure_type == "nccl-timeout"


def losses(values: list[float]) -> str:
    return "\n".join(f"step {i} loss {value:.4f} lr 0.1" for i, value in enumerate(values))


LEVEL = [2.5 - i / 100 for i in range(20)]


@pytest.mark.parametrize(
    ("after", "failed"),
    [
        ([400.0] * 20 + [4.0] * 10, True),  # came down, but not to what it had reached
        ([400.0] * 20, True),
        ([400.0] * 20 + [2.2] * 10, False),  # recovered
        ([400.0, 2.3] * 10, False),  # single batches
        ([9.0] * 20, False),  # worse, but of the same order
    ],
)
def test_a_loss_far_above_its_own_level_that_does_not_come_back_has_diverged(
    knowledge: Knowledge, after: list[float], failed: bool
) -> None:
    d = judge(job(f"{losses(LEVEL + after)}\nTraining finished in 3 s"), knowledge)
    assert told(d) == (("failed", "loss-spike") if failed else ("healthy", "healthy"))
    assert not failed or 20 <= d.evidence[0].line <= 24


LONG = [2.3 + 0.01 * (i % 7) for i in range(80)]


@pytest.mark.parametrize(
    ("values", "failed"),
    [
        ([*LONG, *[7.5 - 0.1 * (i % 5) for i in range(40)]], True),
        ([*LONG, *[2.3 + 0.1 * i for i in range(90)]], True),  # crept away
        ([*LONG, *[7.5] * 20], False),  # too short to tell
        ([*LONG, *[7.5] * 40, *[2.4] * 30], False),  # came back
        ([*LONG, *[7.5, 7.5, 7.5, 3.0] * 10], False),  # comes down between
        ([*LONG, *[4.0] * 40], False),  # not twice
        ([9.0 - 0.1 * (i % 80) for i in range(160)], False),
        ([0.0001 + 0.0001 * i for i in range(300)], False),  # the KL term of reinforcement learning
    ],
)
def test_a_loss_that_left_a_level_held_for_long_and_stands_at_twice_that_has_diverged(
    knowledge: Knowledge, values: list[float], failed: bool
) -> None:
    d = judge(job(losses(values)), knowledge)
    assert told(d) == (("failed", "loss-spike") if failed else ("healthy", "healthy"))


def test_another_training_in_the_same_log_has_a_level_of_its_own(knowledge: Knowledge) -> None:
    assert told(judge(job(f"{losses(LONG)}\n{losses([9.0] * 40)}"), knowledge)) == ("healthy", "healthy")


def nan(at: int, rank: int = 37) -> str:
    return f"RuntimeError: Rank {rank}, node r07n0{rank % 8}, device 5, iteration {at}: Unexpected result nan (message='spiky loss')"


def test_a_device_that_gives_nan_in_one_attempt_after_another_is_at_fault(knowledge: Knowledge) -> None:
    again = judge(job(f"{steps(1, 9)}\n{nan(9)}\n{steps(4, 30)}\n{nan(30)}"), knowledge)
    assert (again.root_cause_class, again.action) == ("hardware-failure", "restart-excluding")
    assert (again.suspects.nodes, again.suspects.ranks) == (("r07n05",), (37,))
    replayed = judge(job(f"{steps(1, 9)}\n{nan(9)}\n{steps(4, 9)}\n{nan(9)}"), knowledge)
    elsewhere = judge(job(f"{steps(1, 9)}\n{nan(9)}\n{steps(4, 30)}\n{nan(30, 12)}"), knowledge)
    assert {replayed.action, elsewhere.action} == {"rollback-and-skip"}


def test_a_host_that_is_held_up_while_its_heartbeat_is_missed_did_not_die(knowledge: Knowledge) -> None:
    slow = "W xla/stream_executor/cuda/cuda_driver.cc:1061] cuMemHostAlloc of 64 bytes took 139.7s"
    lost = "E1 coordination_service.cc:1170] /job:jax_worker/replica:0/task:0 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:0 heartbeat timeout."
    d = judge(job(f"{slow}\n{lost}"), knowledge)
    assert (d.failure_type, d.root_cause_class, d.evidence[0].line) == ("connection-error", "config-error", 1)
    later = judge(job(f"{slow}\n{steps(1, 9)}\n{lost}"), knowledge)
    assert all(e.role != "root" for e in later.evidence if e.line == 1)


def test_a_process_that_was_on_the_gpu_before_the_job_is_not_of_it(knowledge: Knowledge) -> None:
    full = (
        "[rank16]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 79.11 GiB of which 611.19 MiB is free. "
        "Process 1395 has 24.49 GiB memory in use. Including non-PyTorch memory, this process has 53.99 GiB memory in use."
    )
    row = "|    0   N/A  N/A      {}      C   python                          25081MiB |"
    listed = judge(job(full, log_file(row.format(1395), "prolog/cn112.txt", node="cn112")), knowledge)
    other = judge(job(full, log_file(row.format(77), "prolog/cn112.txt", node="cn112")), knowledge)
    assert (listed.action, listed.suspects.nodes) == ("restart-excluding", ("cn112",))
    assert (other.action, other.suspects.nodes) == ("fix-and-resubmit", ())
