"""Xid 154: the driver asks for a reset, so the event beside it was no passing one."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

AT = "Nov 13 00:31:05 gb-14 kernel: "
PASSING = (
    AT + "NVRM: Xid (PCI:0018:01:00): 145, pid=81, name=python, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x00001000 0x8)\n"
)
ASKS = AT + "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n"
JOB = "".join(f"step {i} loss 2.{i} lr 1e-4\n" for i in range(1, 40))
DIED = JOB + "[rank3]: RuntimeError: NCCL error: remote process exited or there was a network error\n"


def test_the_event_of_the_same_gpu_becomes_the_cause(diagnosed: Diagnose) -> None:
    d = diagnosed({"job.log": DIED, "gb-14.dmesg": PASSING + ASKS})
    assert (d.failure_type, d.root_cause_class, d.suspects.nodes) == ("nvlink-error", "hardware-failure", ("gb-14",))
    assert d.evidence[0].line == 1 and "asked for a reset" in d.root_cause


def test_without_an_event_the_asking_itself_does(diagnosed: Diagnose) -> None:
    d = diagnosed({"job.log": DIED, "gb-14.dmesg": ASKS})
    assert (d.failure_type, d.status, d.suspects.nodes) == ("gpu-lost", "supported", ("gb-14",))


@pytest.mark.parametrize(
    "kernel",
    [
        PASSING,
        PASSING + ASKS.replace("0x0 (None) to 0x1 (GPU Reset Required)", "0x1 (GPU Reset Required) to 0x0 (None)"),
    ],
)
def test_a_passing_event_stays_one(diagnosed: Diagnose, kernel: str) -> None:
    assert diagnosed({"job.log": DIED, "gb-14.dmesg": kernel}).failure_type == "nccl-remote-error"


def test_the_event_that_is_a_cause_already_stays_it(diagnosed: Diagnose) -> None:
    fallen = AT + "NVRM: Xid (PCI:0018:01:00): 79, pid=81, name=python, GPU has fallen off the bus.\n"
    d = diagnosed({"job.log": DIED, "gb-14.dmesg": PASSING + fallen + ASKS})
    assert (d.failure_type, d.evidence[0].line) == ("gpu-lost", 2)


def test_of_another_gpu_nothing_is_said(diagnosed: Diagnose) -> None:
    d = diagnosed({"job.log": DIED, "gb-14.dmesg": PASSING.replace("0018:01", "0008:01") + ASKS})
    assert d.failure_type == "gpu-lost"


def test_a_job_whose_stacks_were_taken_and_that_did_not_end_hangs(diagnosed: Diagnose) -> None:
    stack = (
        'Process {0}: python train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread {0} (idle): "MainThread"\n'
        "    all_reduce (torch/distributed/distributed_c10d.py:2810)\n    step (train.py:40)\n    <module> (train.py:90)\n"
    )
    stacks = {f"stacks/rank{r}.txt": stack.format(100 + r) for r in range(2)}
    d = diagnosed({"job.log": JOB, "gb-14.dmesg": PASSING + ASKS, **stacks})
    assert (d.outcome, d.failure_type) == ("hung", "nvlink-error")
