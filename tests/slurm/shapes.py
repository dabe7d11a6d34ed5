"""What sacct and scontrol print of made-up jobs, in the shapes of their versions; and a Slurm that answers with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triage.slurm.accounting import DELIMITER, WANTED
from triage.slurm.command import Answer

SINCE = {"SubmitLine": "21.08", "Restarts": "23.11", "StdOut": "24.05", "StdErr": "24.05"}  # columns by version


def columns(version: str) -> tuple[str, ...]:
    return tuple(name for name in WANTED if SINCE.get(name, "0") <= version)


def table(version: str, *rows: dict[str, str]) -> str:
    """As `sacct -P` prints it."""
    names = columns(version)
    lines = [DELIMITER.join(names), *(DELIMITER.join(row.get(name, "") for name in names) for row in rows)]
    return "\n".join(lines) + "\n"


JOB = {
    "JobID": "4242", "JobIDRaw": "4242", "JobName": "pretrain", "User": "ada", "Account": "llm", "Partition": "gpu", "QOS": "high",
    "Cluster": "alps", "State": "FAILED", "ExitCode": "1:0", "DerivedExitCode": "137:0", "Reason": "None", "NodeList": "nid[001-002]",
    "Submit": "2026-03-04T01:00:00+0100", "Start": "2026-03-04T01:02:00+0100", "End": "2026-03-04T03:02:00+0100", "ElapsedRaw": "7200",
    "TimelimitRaw": "1440", "ReqMem": "512G", "AllocTRES": "billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=512G,node=2",
    "WorkDir": "/home/ada/run", "SubmitLine": "sbatch -N2 train.sh", "Restarts": "0", "StdOut": "/home/ada/run/slurm-%j.out",
}  # fmt: skip
BATCH = {"JobID": "4242.batch", "JobIDRaw": "4242.batch", "JobName": "batch", "State": "FAILED", "ExitCode": "1:0", "NodeList": "nid001",
         "Start": "2026-03-04T01:02:00+0100", "End": "2026-03-04T03:02:00+0100", "ElapsedRaw": "7200", "MaxRSS": "4096K", "MaxRSSNode": "nid001"}  # fmt: skip
STEP = {**BATCH, "JobID": "4242.0", "JobIDRaw": "4242.0", "JobName": "python", "ExitCode": "137:0", "NodeList": "nid[001-002]",
        "MaxRSS": "104857600K", "MaxRSSNode": "nid002", "SubmitLine": "srun --output=rank-%t.log python train.py"}  # fmt: skip

_SHOW = """JobId=4242 JobName=pretrain
   UserId=ada(1001) GroupId=ada(1001) MCS_label=N/A
   Priority=4294901755 Nice=0 Account=llm QOS=high
   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)
   Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=1:0
   DerivedExitCode=137:0
   RunTime=02:00:00 TimeLimit=1-00:00:00 TimeMin=N/A
   SubmitTime=2026-03-04T01:00:00+0100 EligibleTime=2026-03-04T01:00:00+0100
   StartTime=2026-03-04T01:02:00+0100 EndTime=2026-03-04T03:02:00+0100 Deadline=N/A
   Partition=gpu AllocNode:Sid=login1:24883
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=nid[001-002]
   BatchHost=nid001
   NumNodes=2 NumCPUs=64 NumTasks=8 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
{tres}
   MinCPUsNode=8 MinMemoryNode=256G MinTmpDiskNode=0
   Command=/home/ada/run/train.sh --config a b
   WorkDir=/home/ada/run
{comment}   StdErr={stdout}
   StdIn=/dev/null
   StdOut={stdout}
   Power=

"""
_TRES = "cpu=64,mem=512G,node=2,billing=64,gres/gpu=8"
SHOWN = {
    "22.05": _SHOW.format(tres=f"   TRES={_TRES}", stdout="/home/ada/run/slurm-4242.out", comment=""),
    "23.11": _SHOW.format(tres=f"   ReqTRES={_TRES}\n   AllocTRES={_TRES}", stdout="/home/ada/run/slurm-4242.out", comment=""),
    "25.05": _SHOW.format(
        tres=f"   ReqTRES={_TRES}\n   AllocTRES={_TRES}", stdout="/home/ada/run/slurm-4242.out", comment="   SubmitLine=sbatch -N2 train.sh\n"
    ),
}  # fmt: skip


@dataclass(slots=True)
class FakeSlurm:
    """Answers as its commands would. answers: by the first words of the command; asked: what was run."""

    answers: dict[str, Answer]
    version: str = "24.05"
    asked: list[list[str]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str]) -> Answer:
        self.asked.append(list(argv))
        if argv[1] == "--helpformat" and "sacct --helpformat" not in self.answers:
            return Answer(" ".join(columns(self.version)))
        line = " ".join(argv)
        return next(
            (answer for start, answer in self.answers.items() if line.startswith(start)),
            Answer(problem=f"{argv[0]} is not installed on this machine"),
        )
