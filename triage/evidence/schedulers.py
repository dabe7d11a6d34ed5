"""Which scheduler a job's log is of, told by what its lines say of it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from triage.domain import LogFile

SCHEDULERS: Final = ("slurm", "kubernetes", "pbs", "lsf", "sge", "flux")  # sge: Grid Engine, whoever makes it
# Variables, daemons and commands that only one of them has. A word first, so that most lines cost one test.
_MARKS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    ("slurm", ("srun", "slurm", "SLURM", "SBATCH", "StepId"), re.compile(
        r"\b(?:srun|slurmstepd(?:-[\w.-]+)?|slurmd(?:\[[\w.-]+\])?): |\bSLURM_[A-Z]|Submitted batch job \d|\bStepId=\d|^#SBATCH "
    )),
    ("kubernetes", ("kube", "KUBERNETES"), re.compile(r"\bkubelet\b|\bkubectl |\bKUBERNETES_SERVICE_HOST\b")),
    ("pbs", ("PBS", "pbs", "qsub"), re.compile(
        r"\bPBS_(?:JOBID|NODEFILE|O_\w+|QUEUE|ENVIRONMENT|JOBNAME)\b|PBS: job killed|^#PBS -|\bqsub: |\bpbs_(?:mom|tmrsh|server)\b"
    )),
    ("lsf", ("LSB_", "LSF", "BSUB", "jsrun", "TERM_"), re.compile(
        r"\bLSB_(?:JOBID|JOBNAME|HOSTS|MCPU_HOSTS|DJOB_\w+|QUEUE|SUB_HOST)\b|Sender: LSF System|^#BSUB -|\bjsrun -"
        r"|\bTERM_[A-Z_]+: [Jj]ob (?:killed|exited|removed)"
    )),
    ("sge", ("SGE_", "qmaster", "PE_HOSTFILE", "#$ -", "sge_"), re.compile(
        r"\bSGE_(?:O_\w+|ROOT|TASK_ID|CELL|JOB_SPOOL_DIR)\b|\bqmaster enforced\b|\bPE_HOSTFILE\b|^#\$ -|\bsge_(?:execd|shepherd|qmaster)\b"
    )),
    ("flux", ("flux", "FLUX"), re.compile(
        r"\bFLUX_(?:JOB_ID|URI|TASK_RANK|KVS_NAMESPACE)\b|\bflux-(?:job|shell)(?:\[\d+\])?: |\bjob\.exception type=|^#\s?[Ff][Ll][Uu][Xx]: "
        r"|\bflux (?:mini )?(?:run|submit|batch|alloc) "
    )),
)  # fmt: skip
_OF_FILES = {"slurm": "slurm", "sacct": "slurm", "kubernetes": "kubernetes"}


def scheduler_of(files: Iterable[LogFile]) -> str:
    """One of SCHEDULERS, "" where no line tells: that of most lines that name one, files that only one writes first."""
    files = tuple(files)
    of_kinds = [_OF_FILES[f.kind] for f in files if f.kind in _OF_FILES]
    if of_kinds:
        return of_kinds[0]
    said = Counter(name for f in files if f.kind == "job" for line in f.lines for name in _named(line.text))
    return max(SCHEDULERS, key=lambda name: said[name]) if said else ""


def _named(text: str) -> Iterable[str]:
    return (name for name, words, mark in _MARKS if any(w in text for w in words) and mark.search(text[:2000]))
