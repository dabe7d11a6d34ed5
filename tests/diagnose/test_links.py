"""Links that went down beside ranks that lost each other."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

STEPS = "".join(f"step {i} loss 2.{i} lr 1e-4\n" for i in range(1, 40))
GLOO = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 60000ms for recv operation to complete\n"
LOST = STEPS + "".join(f"[rank{r}]: {GLOO}" for r in range(4))
SET_UP = "[7331.1] br0: port 2(swp2) entered disabled state\n[7331.2] br0: port 2(swp2) entered forwarding state\n"
LEFT = "[7369.5] br0: port 2(swp2) entered disabled state\n"
NIC = "[812.1] ixgbe 0000:03:00.0 eno1: NIC Link is Down\n"


@pytest.mark.parametrize(("name", "down"), [("leaf1.dmesg", SET_UP + LEFT), ("cn018.dmesg", NIC)])
def test_a_link_that_stays_down_is_the_cause_of_lost_peers(diagnosed: Diagnose, name: str, down: str) -> None:
    d = diagnosed({"job.log": LOST, name: down})
    assert (d.failure_type, d.status) == ("network-error", "supported")
    assert d.evidence[0].line == len(down.splitlines())


@pytest.mark.parametrize(
    "kernel",
    [
        SET_UP,
        SET_UP + LEFT + "[7399.5] br0: port 2(swp2) entered forwarding state\n",
        "[7.1] docker0: port 1(veth3f2a1b0) entered disabled state\n",
        NIC + "[815.9] ixgbe 0000:03:00.0 eno1: NIC Link is Up 10 Gbps, Flow Control: RX/TX\n",
    ],
)
def test_one_that_came_up_again_is_not(diagnosed: Diagnose, kernel: str) -> None:
    assert diagnosed({"job.log": LOST, "cn018.dmesg": kernel}).failure_type == "nccl-timeout"


def test_another_link_that_comes_up_is_another(diagnosed: Diagnose) -> None:
    other = "[815.9] ixgbe 0000:03:00.1 eno2: NIC Link is Up 10 Gbps, Flow Control: RX/TX\n"
    assert diagnosed({"job.log": LOST, "cn018.dmesg": NIC + other}).failure_type == "network-error"


def test_where_nobody_lost_a_peer_a_link_is_no_cause(diagnosed: Diagnose) -> None:
    error = "Traceback (most recent call last):\n  File \"/w/a.py\", line 1, in f\n    d[k]\nKeyError: 'k'\n"
    assert diagnosed({"job.log": STEPS + error, "leaf1.dmesg": SET_UP + LEFT}).failure_type == "key-error"


def test_no_job_runs_on_a_switch(diagnosed: Diagnose) -> None:
    d = diagnosed({"job.log": LOST, "leaf1.dmesg": SET_UP + LEFT})
    assert (d.suspects.nodes, d.suspects.ranks, d.action) == ((), (), "restart")
