"""The risk of a step: what ends processes, takes a machine down or deletes is destructive, wherever it is written."""

from __future__ import annotations

import re

import pytest

from triage import kb
from triage.diagnose.names import fill_text
from triage.risk import destroys, destroys_as_typed, of_command
from triage.runbooks import SECTIONS, runbooks

# Words of such steps, and where they stand without ordering anything.
_WORDS = re.compile(r"(?i)\b(?:reboot|power[- ]cycle|kill|delete|remove|purge|wipe|erase|fsck|xfs_repair)\b")
_ONLY_TOLD = re.compile(
    r"(?i)\ba (?:full disk or a )?kill\b|\bseveral ranks delete\b|\bRemove code\b|\b(?:after|needs|ask for) (?:a |the )?(?:reboot|power[- ]cycle|purge)\b"
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Drain the node and reboot it, with a cold power cycle if the GPU stays away", ""),
        ("drain and reset the GPU; reboot if the reset fails", ""),
        ("If another process holds memory on the GPU, end it.", ""),
        ("End process 4711 on n1 if it is a leftover", ""),
        ("Use a free port and kill leftover processes", ""),
        ("Free space on that file system", ""),
        ("Delete the lock file", ""),
        ("Restart Fabric Manager (`systemctl restart nvidia-fabricmanager`)", ""),
        ("Take it out", "ssh n1 sudo ipmitool chassis power cycle"),
        ("End the job", "scancel 77"),
        ("Delete the pods", "kubectl -n ml delete pod a-0"),
        ("Clear it", "find /tmp -user x -delete"),
    ],
)
def test_what_cannot_be_taken_back(text: str, command: str) -> None:
    assert destroys(text, command)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Drain gpu103 for test", "scontrol update NodeName=gpu103 State=DRAIN Reason=triage:gpu-lost"),
        ("Reset the GPU of n1 once nothing runs there", "ssh n1 sudo nvidia-smi --gpu-reset -i 0"),
        ("Look for the OOM killer; 137 is a kill, and the process cannot be killed until the call returns", ""),
        ("Ask who or what rebooted it", "last -x reboot"),
        ("Do not let several ranks delete or replace the same files", ""),
        ("After the reboot, run the long diagnostic", ""),
        ("End the whole step when one task fails (`srun --kill-on-bad-exit=1 --wait=60`)", ""),
        ("Restart from the last checkpoint without this node", "sbatch --exclude=n1 JOBSCRIPT"),
    ],
)
def test_what_can(text: str, command: str) -> None:
    assert not destroys(text, command)


def test_each_remedy_of_a_signature_that_orders_it_is_known_to() -> None:
    missed = {
        s.id: s.remedy
        for s in kb.signatures()
        if _WORDS.search(_ONLY_TOLD.sub("", s.remedy)) and not destroys(s.remedy)
    }
    assert missed == {}


def test_each_step_of_a_runbook_is_labelled_for_what_it_does() -> None:
    books = runbooks()
    steps = [step for book in books.of.values() for section in SECTIONS[1:3] for step in getattr(book, section)] + [
        step for listed in books.doing.values() for step in listed
    ]
    assert [s.step for s in steps if destroys(s.step, s.command) and s.risk != "destructive"] == []
    assert [
        s.step for s in steps if s.risk == "destructive" and not destroys(fill_text(s.step, {"pid": "7"}), s.command)
    ] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rm -rf /data/ckpt && scancel -u alice", True),
        ("run rm -rf /data/ckpt/run7, then start it again", True),
        ("as done in incident 7: scancel 4711", True),
        ("replace the fibre and clean the port", False),
        ("set NCCL_IB_TIMEOUT=23", False),
    ],
)
def test_in_a_text_that_a_person_typed_a_command_may_stand_anywhere(text: str, expected: bool) -> None:
    assert destroys_as_typed(text) is expected


@pytest.mark.parametrize(
    ("argv", "risk"),
    [
        (("scontrol", "show", "node", "n[1-2]"), "read-only"),
        (("squeue", "-h", "-j", "4711", "-o", "%T"), "read-only"),
        (("kubectl", "get", "pods"), "read-only"),
        (("kubectl", "-n", "ml", "describe", "pod", "p"), "read-only"),
        (("kubectl", "cordon", "n1"), "reversible"),
        (("scontrol", "update", "NodeName=n1", "State=DRAIN"), "reversible"),
        (("sbatch", "job.sh"), "reversible"),
        (("sacctmgr", "modify", "user"), "reversible"),
        (("nvidia-smi", "--gpu-reset"), "reversible"),
        (("scancel", "4711"), "destructive"),
        (("kubectl", "delete", "pod", "p"), "destructive"),
        (("rm", "x"), "destructive"),
        (("someprogram",), "reversible"),
    ],
)
def test_the_risk_of_a_command_is_never_taken_for_less(argv: tuple[str, ...], risk: str) -> None:
    assert of_command(argv) == risk
