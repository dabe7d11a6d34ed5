"""The check of a signature: what can be typed is a command, the rest is said in a whole sentence."""

from __future__ import annotations

import re
import subprocess

import pytest

from triage import kb
from triage.diagnose.checks import as_step, is_command, of_scheduler

KNOWN = {
    "job": "77",
    "path": "/data/a",
    "pid": "4711",
    "port": "29500",
    "node": "n1",
    "peer": "n2",
    "gpu": "0",
    "module": "apex",
}


@pytest.mark.parametrize(
    ("check", "known", "step", "command"),
    [
        ("ask the owner", {}, "Confirm the cause: ask the owner", ""),
        ("the lines before it", {}, "Confirm the cause: look at the lines before it", ""),
        ("does the run go on?", {}, "Confirm the cause: does the run go on?", ""),
        ("how many steps were skipped", {}, "Confirm the cause: see how many steps were skipped", ""),
        (
            "CUDA_LAUNCH_BLOCKING=1, then the call",
            {},
            "Confirm the cause: run with CUDA_LAUNCH_BLOCKING=1, then the call",
            "",
        ),
        (
            "sacct -j <job> --format=State%30 shows the uid (CANCELLED by UID, 0 is root)",
            {"job": "77"},
            "Confirm the cause",
            "sacct -j 77 --format=State%30",
        ),
        ("sacct -j JOB --format=State", {}, "Confirm the cause: `sacct -j <job> --format=State`", ""),
        (
            "ls -ld PATH and df PATH on the failing node and on a good one",
            {"path": "/data/a"},
            "Confirm the cause on the failing node",
            "ls -ld /data/a; df /data/a",
        ),
        ("dmesg -T | grep -i oom on the node", {}, "Confirm the cause on the node", "dmesg -T | grep -i oom"),
        ("ls -l of the file against its peers", {}, "Confirm the cause: `ls -l` of the file against its peers", ""),
        (
            "ls -ld PATH on the failing node; dmesg of the same minute",
            {"path": "/data/a"},
            "Confirm the cause on the failing node",
            "ls -ld /data/a",
        ),
        ("last lines of that task", {}, "Confirm the cause: look at last lines of that task", ""),
        ("lsof FILE on the nodes of the job", {}, "Confirm the cause: `lsof <path>` on the nodes of the job", ""),
    ],
)
def test_a_check_as_a_step(check: str, known: dict[str, str], step: str, command: str) -> None:
    assert as_step(check, known, "") == (step, command)


def test_what_tells_of_a_machine_is_run_on_the_accused_one() -> None:
    on = "gpu-042"
    assert as_step("nvidia-smi -q -d ECC", {}, on) == (
        "Confirm the cause on gpu-042",
        "ssh gpu-042 nvidia-smi -q -d ECC",
    )
    assert (
        as_step("dmesg -T | grep -i xid; df /tmp", {}, on)[1]
        == "ssh gpu-042 dmesg -T | grep -i xid; ssh gpu-042 df /tmp"
    )
    assert as_step("sacct -j JOB --format=State", {"job": "7"}, on)[1] == "sacct -j 7 --format=State"
    assert as_step("nvidia-smi -L", {}, "10.0.0.5; reboot")[1] == "nvidia-smi -L"


@pytest.mark.parametrize("known", [{}, KNOWN], ids=["nothing known", "all known"])
def test_no_check_of_any_signature_makes_a_broken_sentence_or_command(known: dict[str, str]) -> None:
    commands = []
    for signature in kb.signatures():
        if not signature.check:
            continue
        step, command = as_step(signature.check, known, "")
        commands.append(command)
        assert not re.search(
            r"look at (?:ask|sacct|dmesg|kubectl|compare|print|see|did|does|was|which|how|what)\b", step
        ), step
        assert "\0" not in step + command and not re.search(r"<\w+>", command), (signature.id, command)
        assert not re.search(r" (?:of the|on the|in the|names the|shows the)\b", command), (signature.id, command)
        assert step != "Confirm the cause" or command, signature.id
    script = "\n".join(filter(None, commands))
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False, timeout=60).returncode == 0


def test_a_scheduler_that_does_not_run_the_job_is_not_asked() -> None:
    check = "sacct -j <job> --format=State; dmesg -T | grep oom"
    assert of_scheduler(check, "kubernetes") == of_scheduler(check, "other") == "dmesg -T | grep oom"
    assert of_scheduler(check, "slurm") == of_scheduler(check, "none") == check


def test_a_command_can_be_typed() -> None:
    assert is_command("which python") and is_command("df -h /dev/shm")
    for text in (
        "which ranks lack this line",
        "mount options (flock on Lustre)",
        "ls -l PATH",
        "free GPUs",
        "ping and traceroute",
    ):
        assert not is_command(text)
