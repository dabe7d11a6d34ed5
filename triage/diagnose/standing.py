"""What a line counts for by what stands around it: last words become causes, other jobs' deaths become context. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from triage.diagnose import limits, ownwords
from triage.diagnose.strangers import slurm_jobs
from triage.domain import JobLog, LogFile, LogLine
from triage.evidence.job import node_numbers
from triage.evidence.match import Best
from triage.evidence.progress import Step

# Lines that only matter when nothing comes after them.
_STOPS_A_SCRIPT = {
    "sh.side-command-not-found": "the shell does not find a program, and the script ended there",
    "sh.word-not-found": "the shell took a word for a program, and the script ended there",
}
_STOPS_A_RANK = {"py.waits-for-lock": "a process waits for a lock file that nobody removes"}
_LAST = 3  # lines that a script's own traps and launchers print after its last words
_STOPPED = 75  # weight of last words
_OTHERS_WAITED = frozenset({"nccl-timeout", "connection-error", "nccl-remote-error", "time-limit", "cancelled"})

_KILLED = re.compile(
    r"SIGKILL|\bsignal:? 9\b|exit ?code:? ?\(?(?:-9|137)\b|exitcode[ :=]{1,4}(?:-9|137)\b|exit(?:ed with)?(?: exit)? (?:code|status) 137|\bKilled\b"
    r"|oom[-_ ]?kill|out[- ]of[- ]memory|died unexpectedly|OutOfMemory|\b(?:code|status|rc)[=: ]{1,2}137\b",
    re.IGNORECASE,
)
# What a process's death makes its peers, its parent or its launcher report.
_FROM_A_DEATH = frozenset(
    {"connection-error", "nccl-timeout", "nccl-remote-error", "dataloader-killed", "called-process-error", "runtime-error",
     "native-crash", "cancelled", "node-failure", "unknown", "host-out-of-memory", "os-error", "network-error"}
)  # fmt: skip
_KILLED_PID = re.compile(r"\bpid=(\d{2,9})\b|Kill(?:ed)? process (\d{2,9})\b")

_OTHER_HOLDS = re.compile(r"\bProcess (\d+) has ([\d.]+) ([KMG])iB memory in use")
_THIS_HOLDS = re.compile(r"this process has ([\d.]+) ([KMG])iB memory in use")
_OCCUPIED: dict[str, Any] = {
    "title": "memory of the GPU is held by a process that is not of this job",
    "node_fault": True,
    "remedy": "See whose process it is and end it when its job is gone; then test that the GPU is empty before jobs start there.",
    "check": "nvidia-smi; ps -o pid,user,lstart,cmd -p PID",
}

_WRONG: dict[str, Any] = {
    "title": "one device gave NaN in several attempts, each time at another iteration that other attempts passed",
    "root_cause_class": "hardware-failure",
    "node_fault": True,
    "remedy": "Restart without this node; it computes wrong, and neither data nor code does: test the device (dcgmi diag -r 4) before it takes jobs.",
    "check": "dcgmi diag -r 4 on the node; replay the same batch there and elsewhere",
}


def weigh(best: Best, log: JobLog, steps: Mapping[str, Sequence[Step]]) -> None:
    """Changes what each finding counts for, and adds those that only the lines around them tell."""
    _last_words(best, log, steps)
    ownwords.weigh(best, log, steps)
    _others_killed(best, log)
    _memory_of_others(best, log)
    _same_device_again(best, steps)
    limits.weigh(best, log)
    _held_up(best, steps)


def _last_words(best: Best, log: JobLog, steps: Mapping[str, Sequence[Step]]) -> None:
    """What stops a script or a rank is the cause where it is the last that it said."""
    waited = any(f.signature.failure_type in _OTHERS_WAITED for f in best.values())
    files = {f.name: f for f in log.files}
    for key, finding in best.items():
        name, file = finding.signature.id, files[key[0]]
        later = [line for line in file.lines if line.number > key[1] and line.text.strip()]
        if name in _STOPS_A_SCRIPT:
            stopped = len(later) <= _LAST and not any(s.line.number > key[1] for s in steps[key[0]])
        elif name in _STOPS_A_RANK:
            stopped = waited and not any(_same_rank(line, finding.line, file) for line in later)
        else:
            continue
        if stopped:
            title = (_STOPS_A_SCRIPT | _STOPS_A_RANK)[name]
            signature = replace(finding.signature, title=title, role="root", weight=_STOPPED)
            best[key] = replace(finding, signature=signature)


def _same_rank(a: LogLine, b: LogLine, file: LogFile) -> bool:
    return file.rank is not None or a.rank is None or b.rank is None or a.rank == b.rank


def _others_killed(best: Best, log: JobLog) -> None:
    """A process that the kernel killed for memory is of this job only if something of this job speaks for it."""
    kernel = {f.name for f in log.files if f.kind == "kernel"}
    kills = [k for k, f in best.items() if k[0] in kernel and f.signature.failure_type == "host-out-of-memory"]
    own = [f for f in log.files if f.kind == "job" and f.lines]
    if not kills or not own:
        return
    pids = {pid for key in kills for found in _KILLED_PID.findall(best[key].line.text) for pid in found if pid}
    named = re.compile(rf"(?<!\d)(?:{'|'.join(sorted(pids))})(?!\d)") if pids else None
    told = any(_KILLED.search(line.text) or (named and named.search(line.text)) for f in own for line in f.lines)
    if _of_another_job(kills, best, own) or (not told and _has_own_error(best, own)):
        for key in kills:
            best[key] = replace(best[key], signature=replace(best[key].signature, role="context"))


def _of_another_job(kills: Sequence[tuple[str, int]], best: Best, own: Sequence[LogFile]) -> bool:
    mine = node_numbers(own)
    jobs = {number for key in kills for number in slurm_jobs(best[key].line.text)}
    return bool(mine and jobs) and mine.isdisjoint(jobs)


def _has_own_error(best: Best, own: Sequence[LogFile]) -> bool:
    """Does the job say of an error that no process's death brings about in its peers?"""
    names = {f.name for f in own}
    return any(
        key[0] in names and f.signature.role == "root" and f.signature.failure_type not in _FROM_A_DEATH
        for key, f in best.items()
    )


def _memory_of_others(best: Best, log: JobLog) -> None:
    """A GPU that mostly another job's process fills is no fault of the program that then finds no room."""
    listed = [f for f in best.values() if f.signature.id == "gpu.process-listed"]
    nodes = {f.name: f.node for f in log.files}
    for key, finding in best.items():
        if finding.signature.id != "cuda.out-of-memory":
            continue
        own = _THIS_HOLDS.search(finding.line.text)
        held = [(pid, _bytes(size, unit)) for pid, size, unit in _OTHER_HOLDS.findall(finding.line.text)]
        foreign = [(pid, size) for pid, size in held if not _is_of_job(pid, key, log)]
        before = [f for f in listed if any(f.groups.get("pid") == pid for pid, _ in foreign) and f.line.file != key[0]]
        mostly = own and sum(size for _, size in foreign) > _bytes(own[1], own[2])
        if mostly or before:
            node = nodes[before[0].line.file] if before else None
            groups = {**finding.groups, "node": node} if node else finding.groups
            best[key] = replace(finding, signature=replace(finding.signature, **_OCCUPIED), groups=groups)


def _same_device_again(best: Best, steps: Mapping[str, Sequence[Step]]) -> None:
    """One device that computes wrong in several attempts, each at another place that others pass, is at fault itself."""
    found: dict[tuple[str, str], list[tuple[int, tuple[str, int]]]] = {}
    for key, f in best.items():
        rank, node, at = f.groups.get("rank"), f.groups.get("node"), f.groups.get("iteration")
        if f.signature.id == "num.nan-grad-rank" and rank and node and at:
            found.setdefault((rank, node), []).append((int(at), key))
    if len(found) != 1:
        return  # several devices show what they have in common: data or code
    ((_, places),) = found.items()
    if any(_passed(a, b, steps) for a, b in pairwise(places)):
        for _, key in places:
            best[key] = replace(best[key], signature=replace(best[key].signature, **_WRONG))


def _passed(
    a: tuple[int, tuple[str, int]], b: tuple[int, tuple[str, int]], steps: Mapping[str, Sequence[Step]]
) -> bool:
    """Did the run go back before the first place, then past it, and fail at the second?"""
    (at, (file, line)), (then, (name, number)) = a, b
    back = any(s.number is not None and s.number <= at for s in steps[name] if line < s.line.number < number)
    return then > at and (file != name or back)


def _held_up(best: Best, steps: Mapping[str, Sequence[Step]]) -> None:
    """A service that gives up on JAX tasks before their first step, while their hosts compile or allocate: no task died."""
    lost = [key for key, f in best.items() if f.signature.id in ("jax.heartbeat-lost", "jax.peer-died")]
    for key, f in best.items():
        after = any(name == key[0] and number > key[1] for name, number in lost)
        if f.signature.id == "jax.held-up" and after and not steps[key[0]]:
            best[key] = replace(f, signature=replace(f.signature, role="root", weight=_STOPPED))


def _bytes(size: str, unit: str) -> float:
    return float(size) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[unit]


def _is_of_job(pid: str, key: tuple[str, int], log: JobLog) -> bool:
    """Do the job's launchers or ranks name this process?"""
    named = re.compile(rf"(?:pid[:= ]{{1,3}}|process |PID )\(?{pid}\b|:{pid}:{pid} ")
    return any(
        (f.name, line.number) != key and "memory in use" not in line.text and named.search(line.text)
        for f in log.files
        for line in f.lines
    )
