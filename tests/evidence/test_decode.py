from __future__ import annotations

import pytest

from triage.evidence.decode import completion, exit_code, explain, sub_code

XID = "NVRM: Xid (PCI:0018:01:00): {}, pid=88121, name=python, {}"


@pytest.mark.parametrize(
    ("text", "means"),
    [
        (XID.format(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x01500000 0x0)"),
         "NVLink-5 NETIR: NETIR_LINK_EVT, fatal, sub-code 21, the peer device is the source"),
        (XID.format(149, "NETIR_LINK_DOWN Link Fatal XC0 i0 Link 08 (0x02a00000 0x0)"),
         "NVLink-5 NETIR: NETIR_LINK_DOWN, link fatal, sub-code 42, a cable was taken out or is bad"),
        ("NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 02", "NVLink-5 RLW: RLW_REMAP, nonfatal"),
        (XID.format(145, "RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x00001000 0x80000000)"),
         "NVLink-5 RLW: RLW_RXPIPE, nonfatal"),
        ("NVRM: Xid (PCI:0000:5f:00): 79, pid=7, GPU has fallen off the bus.", ""),
        ("NCCL WARN NET/IB: Got completion from peer 10.0.0.1<5> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
         "state 12 RETRY_EXC_ERR: the peer did not answer: it is dead, the link is down, or the fabric is congested"),
        ("NCCL WARN NET/IB: Got completion from peer 10.0.0.1<5> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=0",
         "state 5 WR_FLUSH_ERR: flushed after another error: look for the first state that is not 5"),
        ("http status=12 of the page", ""),
        ("mlx5_0: status=0", ""),
        ("  exitcode  : -11 (pid: 26384) (SIGSEGV)", "-11 is SIGSEGV: native code; on one host only, suspect its hardware"),
        ("srun: error: n1: task 3: Exited with exit code 137",
         "137 is SIGKILL: out of memory, the scheduler or a person: without a line that says which, unknown"),
        ("JobId=7 JobState=FAILED ExitCode=0:15",
         "-15 is SIGTERM: told to stop: teardown after another failure, preemption, time limit or cancel"),
        ("ExitCode=127:0", "127: the command was not found"),
        ("Exited with exit code 1", ""),
        ("exit code 0", ""),
        ("nothing here", ""),
    ],
)  # fmt: skip
def test_numbers_in_words(text: str, means: str) -> None:
    assert explain(text) == means


def test_the_sub_code_is_bits_20_to_25() -> None:
    assert [sub_code(n) for n in (0x00100000, 0x03F00000, 0xFC0FFFFF, 0x04000000)] == [1, 63, 0, 0]


def test_signals_above_128_and_below_0_are_the_same() -> None:
    for number in (4, 6, 7, 8, 9, 11, 15):
        assert exit_code(128 + number).split(" is ")[1] == exit_code(-number).split(" is ")[1]
    assert exit_code(255).startswith("255: exit(-1)")
    assert exit_code(-200) == exit_code(77) == ""


def test_every_known_completion_has_a_name_and_a_meaning() -> None:
    assert all(completion(code) for code in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 22))
    assert completion(0) == completion(99) == ""
