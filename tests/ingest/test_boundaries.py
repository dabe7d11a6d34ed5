from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Container
from itertools import pairwise

import pytest

from triage.ingest.boundaries import Boundaries

SMI = [
    "+---------------------------------------------------------------------------------------+",
    "| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |",
    "|-----------------------------------------+----------------------+----------------------+",
    "|   0  NVIDIA H800                    On  | 00000000:D1:00.0 Off |                    0 |",
    "+-----------------------------------------+----------------------+----------------------+",
]
NEWER_SMI = [line.replace("---+", "-----+").replace("535.129.03", "570.158.01") for line in SMI]
STEPS = [f"Step {i}: loss=0.{i}, grad_norm=0.1" for i in range(60)]
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    main()",
    "ValueError: Number of devices 1 must be divisible by the number of FSDP devices 4.",
]
CANCELLED = "slurmstepd: error: *** JOB 311898 ON dgx-01 CANCELLED AT 2025-11-02T04:16:29 DUE TO PREEMPTION ***"
SHUTDOWN = [
    "KeyboardInterrupt",
    "slurmstepd: error: container_p_join: open failed for /var/run/1/.ns: No such file or directory",
]


class Lines:
    """A block, as the scan hands it over."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self.outlines = [re.sub(rb"\d", b"0", line) for line in lines]
        self.counts = Counter(self.outlines)

    def last(self, count: int) -> list[bytes]:
        return self.lines[-count:]

    def places(self, wanted: Container[bytes]) -> list[int]:
        return [at for at, outline in enumerate(self.outlines) if outline in wanted]


def openings(lines: list[str], block: int = 10_000) -> list[int]:
    """Line numbers, 1-based, at which runs begin; the file is handed over in blocks, as the scan does."""
    raw = [line.encode() for line in lines]
    finder = Boundaries()
    found = []
    for start, end in pairwise([*range(0, len(raw), block), len(raw)]):
        block = Lines(raw[start:end])
        found += [start + at + 1 for at in finder.openings(block, start + 1)]
    return found


def test_a_file_of_one_run() -> None:
    assert openings(["Sun Aug 17 00:40:32 2025", *SMI, *STEPS, *TRACEBACK]) == []
    assert openings([]) == []


@pytest.mark.parametrize("block", [7, 50, 10_000])
def test_the_same_banner_after_a_failure_a_cancellation_and_a_silence(block: int) -> None:
    failed = ["Sun Aug 17 00:40:32 2025", *SMI, "0", *STEPS, *TRACEBACK]
    cancelled = ["Thu Aug 21 01:31:46 2025", *NEWER_SMI, "0,1", *STEPS, CANCELLED, *SHUTDOWN]
    silent = ["Fri Aug 22 02:00:00 2025", *NEWER_SMI, "0,1", "start process in gpu: 1"]
    last = ["Fri Aug 22 02:54:00 2025", *NEWER_SMI, "0,1", *STEPS]
    second = len(failed) + 1
    third = second + len(cancelled)
    assert openings([*failed, *cancelled, *silent, *last], block) == [second, third, third + len(silent)]


def test_a_monitor_that_prints_the_same_table_splits_nothing() -> None:
    one = ["Sun Aug 17 00:40:32 2025", *SMI]
    lines = list(one)
    for minute in range(41, 59):
        lines += [*STEPS[:20], f"Sun Aug 17 00:{minute}:32 2025", *SMI]
    assert openings([*lines, *TRACEBACK]) == []
    # not even where something then fails and the table is printed once more
    assert openings([*lines, *TRACEBACK, "Sun Aug 17 00:59:40 2025", *SMI]) == []


def test_every_rank_prints_the_banner() -> None:
    banner = ["pybullet build time: Nov 28 2023 23:52:03", "loading the environment", "seed 3"]
    assert openings([*banner * 8, *STEPS, *TRACEBACK, *banner, *STEPS]) == []


def test_a_script_that_starts_again_under_its_own_banner() -> None:
    banner = ["+ export OMP_NUM_THREADS=8", "+ MODEL_PATH=/models/a", "+ python3 -m verl.trainer.main config=a.yaml"]
    first = [*banner, *STEPS, *TRACEBACK]
    assert openings([*first, *banner, *STEPS]) == [len(first) + 1]
    # where nothing ended, it is one run that goes on
    assert openings([*banner, *STEPS, *banner, *STEPS]) == []


def test_a_launcher_after_a_cancelled_job_is_another_job() -> None:
    launcher = "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default"
    lines = [launcher, *STEPS, CANCELLED, *SHUTDOWN, "WARNING:torch.distributed.run:", launcher, *STEPS]
    assert openings(lines) == [lines.index(launcher, 1) + 1]
    # a second step of one script, or a cancelled step, is no other job
    step = "slurmstepd: error: *** STEP 1809577.0 ON r6i5n1 CANCELLED AT 2021-05-23T08:46:02 ***"
    assert (
        openings(["prolog", launcher, *STEPS, "srun: error: n1: task 0: Exited with exit code 1", launcher, *STEPS])
        == []
    )
    assert openings(["prolog", launcher, *STEPS, step, launcher, *STEPS]) == []


def test_job_ids() -> None:
    def job(number: int) -> str:
        return f"SLURM_JOB_ID=26705{number}"

    assert openings([job(7), *STEPS, job(8), *STEPS]) == [62]
    assert openings([job(7), *STEPS, job(7), *STEPS]) == []
    # the tasks of an array that share a file start together
    assert openings([job(7), job(8), job(9), *STEPS, job(8), *STEPS]) == []


def test_jobs_that_a_line_only_mentions() -> None:
    assert (
        openings(
            [
                *STEPS,
                "retry of the step with job ID=11223",
                *STEPS,
                "ValueError: x",
                "retry of the step with job ID=33445",
                *STEPS,
            ]
        )
        == []
    )


def test_restart_counts_of_many_agents_are_one_border_each() -> None:
    def restart(count: int) -> list[str]:
        return [
            "[default] Rendezvous complete for workers. Result:",
            f"  restart_count={count}",
            "  group_world_size=2",
        ]

    first = [*restart(0), *restart(0), *STEPS, "exitcode: -9"]
    assert openings([*first, *restart(1), *restart(1), *STEPS]) == [len(first) + 2]
    assert openings([*first, *STEPS]) == []


def test_an_elastic_restart_without_a_count_stays_one_run() -> None:
    banner = [
        "W0922 17:45:30.265000 139781903140672 torch/distributed/run.py:779]",
        "*****",
        "Setting OMP_NUM_THREADS environment",
    ]
    failed = "E0922 18:00:00.1 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9)"
    assert openings([*banner, *STEPS, failed, "loading model", *STEPS, *TRACEBACK]) == []


def test_kernel_logs_are_never_split() -> None:
    boot = [
        "[Wed Mar  1 17:38:27 2023] Linux version 4.18.0-372.36.1.el8_6.x86_64",
        "[Wed Mar  1 17:38:27 2023] Command line: BOOT_IMAGE=(hd0)/vmlinuz",
        "[Wed Mar  1 17:38:27 2023] x86/fpu: Supporting XSAVE feature",
    ]
    assert openings([*boot, *STEPS, "Kernel panic - not syncing: Fatal exception", *boot, *STEPS]) == []


def test_a_file_of_one_line_over_and_over_costs_little() -> None:
    start = time.perf_counter()
    assert openings(["Sun Aug 17 00:40:32 2025 tick"] * 100_000) == []
    assert openings(["the opening of the file", "second line"] + ["the opening of the file"] * 100_000) == []
    assert len(openings([line for i in range(100, 20_000) for line in ("ValueError: x", f"Job ID: {i}")])) <= 1100
    assert time.perf_counter() - start < 20


def test_an_event_that_comes_again_and_again_is_no_banner() -> None:
    event = [
        "[Dec 18 2024 19:09:50] [INFO] [tid 1579] Received an inband message",
        "Message header details: magic 1",
        "Team setup",
    ]
    lines = [line for _ in range(9) for line in (*event, "multicast group 1 is freed.")]
    assert openings([*lines, "[Dec 20 2024 03:15:35] [INFO] x", *event]) == []
