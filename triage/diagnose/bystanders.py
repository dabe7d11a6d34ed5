"""What the kernel says of processes that are none of a hung job's, whose own processes were all looked at. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from triage.diagnose.hangs import Hang
from triage.diagnose.strangers import about, as_context, slurm_jobs
from triage.domain import JobLog
from triage.evidence.crew import Process
from triage.evidence.match import Best, Finding
from triage.evidence.processes import short

# What happens to one process, and says nothing of the others of its node.
_OF_ONE = frozenset({"host-out-of-memory", "native-crash", "cuda-error", "hang"})
_ENVIRONMENT = re.compile(r"env-\d{1,9}(?:\.\d{1,3})?\.txt")
_JOB = re.compile(r"SLURM_JOB_ID=(\d{1,12})")


def set_aside(best: Best, hang: Hang, log: JobLog) -> None:
    """Makes context of what befell a process that is none of the job's, where the job's own are there: a kernel's log tells of
    all that runs on a node. What befell one that is missing may be the cause, and stays."""
    crew = hang.scene.crew
    if not crew:
        return
    nodes = {f.name: f.node for f in log.files if f.kind == "kernel"}
    others = _of_other_jobs(best, log)
    for key, f in best.items():
        if key[0] not in nodes or f.signature.role == "context" or f.signature.failure_type not in _OF_ONE:
            continue
        name, pid = about(f.line.text)
        node = f.groups.get("node") or f.line.node or nodes[key[0]]
        if not (name or pid) or _is_there(hang.scene.processes, pid, node):
            continue
        if (pid and (key[0], pid) in others) or not _may_be_ours(hang, f, name):
            best[key] = replace(f, signature=as_context(f))


def _of_other_jobs(best: Best, log: JobLog) -> frozenset[tuple[str, int]]:
    """By file and number the processes that were in control groups of other Slurm jobs than the one that the environments of
    the job's own processes name; those of a job that Slurm did not start name none."""
    told = [f for f in log.files if _ENVIRONMENT.fullmatch(PurePosixPath(f.name).name)]
    own = {found[1] for f in told for line in f.lines if (found := _JOB.match(line.text))}
    named = ((key[0], f.line.text, slurm_jobs(f.line.text)) for key, f in best.items())
    return frozenset((file, about(text)[1]) for file, text, jobs in named if told and jobs and jobs.isdisjoint(own))


def _is_there(processes: Iterable[Process], pid: int, node: str | None) -> bool:
    here = (p for p in processes if p.pid == pid and pid)
    return any(node is None or p.node is None or short(p.node) == short(node) for p in here)


def _may_be_ours(hang: Hang, f: Finding, name: str) -> bool:
    """Is a process of the job gone, or does one wait for a worker that may be? Or does nothing else explain the hang?"""
    crew = hang.scene.crew
    if f.signature.failure_type == "hang" and not hang.culprits:
        return True  # what else is blocked on a node tells of its file systems
    programs = {p.program for p in hang.scene.processes if p.member or p in crew}
    alike = any(program and (name.startswith(program[:15]) or program.startswith(name)) for program in programs)
    if not (alike or name.startswith(("python", "pt_"))):
        return False
    gone = any(p.ended for p in crew) or bool(hang.scene.gone)
    return gone or not hang.culprits or any(s.doing == "data-loader" for s in hang.scene.seen)
