"""Where launchers and host files put ranks."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage.evidence.placement import placed

TWO_BY_TWO = {0: "gn01", 1: "gn01", 2: "gn02", 3: "gn02"}
LAUNCHED = {
    "deepspeed": "[2026-01-01 10:00:00,102] [INFO] [launch.py:163:main] global_rank_mapping=defaultdict(<class 'list'>, "
    "{'gn01': [0, 1], 'gn02': [2, 3]})",
    "srun": "srun: launching StepId=7.0 on host gn01, 2 tasks: [0-1]\nsrun: launching StepId=7.0 on host gn02, 2 tasks: [2-3]",
    "openmpi": "\n".join(
        f"[gn0{1 + r // 2}:4411] MCW rank {r} bound to socket 0[core {r}[hwt 0]]: [B/.]" for r in range(4)
    ),
    "intel": "[0] MPI startup(): Rank    Pid      Node name  Pin cpu\n"
    + "\n".join(f"[0] MPI startup(): {r}       99{r}      gn0{1 + r // 2}       {{0,1}}" for r in range(4)),
    "ray": "\n".join(
        f"(TorchTrainer pid=9) - (node_id=ab{r}, ip=gn0{1 + r // 2}, pid=3{r}) world_rank={r}, local_rank=0, node_rank=0"
        for r in range(4)
    ),
    "nccl": "\n".join(
        f"gn0{1 + r // 2}:41{r}:52{r} [{r % 2}] NCCL INFO ncclCommInitRank comm 0x55 rank {r} nranks 4 cudaDev {r % 2} busId 1b000"
        for r in range(4)
    ),
}


@pytest.mark.parametrize("launcher", LAUNCHED)
def test_a_launcher_says_where_it_puts_each_rank(launcher: str) -> None:
    assert placed(job(LAUNCHED[launcher]), {}, range(4)) == TWO_BY_TWO


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hostfile", "gn01 slots=2\n# a spare one\n\ngn02 slots=2"),
        ("nodes.txt", "gn01:2\ngn02:2"),
        ("machinefile", "gn01\ngn01\ngn02\ngn02"),
        ("pe_hostfile", "gn01 slots = 2 max_slots=4\ngn02 slots = 2"),
    ],
)
def test_ranks_fill_the_slots_of_a_host_file_from_the_top(name: str, text: str) -> None:
    assert placed(job(log_file(text, name)), {}, range(4)) == TWO_BY_TWO


def test_slots_do_not_count_where_ranks_are_missing_or_a_line_says_otherwise() -> None:
    log = job(log_file("gn01 slots=2\ngn02 slots=2", "hostfile"))
    assert placed(log, {}, range(5)) == {}
    assert placed(log, {1: "gn02"}, range(4)) == {}
    assert placed(log, {1: "gn01"}, range(4)) == TWO_BY_TWO


def test_tasks_of_srun_that_each_launch_several_ranks_are_no_ranks() -> None:
    assert placed(job(LAUNCHED["srun"]), {}, range(32)) == {}


def test_a_log_of_single_words_is_no_host_file() -> None:
    assert placed(job(log_file("start\ndone", "job.log"), log_file("gn01 is down", "hosts")), {}, [0]) == {}


NINES = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        LAUNCHED["deepspeed"].replace("[0, 1]", f"[{NINES}]"),
        f"srun: launching StepId=7.0 on host gn01, 2 tasks: [0-{NINES}]",
        f"SLURM_JOB_NODELIST=gn[01-02]\nSLURM_NTASKS_PER_NODE={NINES[:11]}",
    ],
    ids=["deepspeed", "srun", "tasks"],
)
def test_numbers_without_end_put_no_rank_anywhere(text: str) -> None:
    assert placed(job(text), {}, range(2)).keys() <= {2, 3}


def test_nodes_and_tasks_without_end_are_ranks_up_to_a_bound() -> None:
    text = "SLURM_JOB_NODELIST=gn[00001-99999]\nSLURM_NTASKS_PER_NODE=9999999"
    assert 10_000 < len(placed(job(text), {}, range(4))) < 1_000_000
