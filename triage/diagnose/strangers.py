"""Kernel lines of processes: whose they are. Those of another job's process are no cause of this one's failure. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triage.domain import JobLog, LogFile
from triage.evidence.fallen import Fallen
from triage.evidence.job import node_numbers
from triage.evidence.match import Best, Finding
from triage.evidence.processes import Processes, processes

_KERNEL = re.compile(
    r"\bNVRM: |\bkernel: |oom-kill:|Killed process \d|\bblocked for more than \d|: segfault at |\bamdgpu "
)
_PID = re.compile(
    r"\bpid='?(?P<a>\d{2,8})\b|Kill(?:ed)? process (?P<b>\d{2,8}) \(|\btask \S{1,40}:(?P<c>\d{2,8}) blocked|\w\[(?P<d>\d{2,8})\]: segfault"
)
_NAME = re.compile(
    r"\bname='?(?P<a>[^\s,']{1,40})|\btask=(?P<b>[^\s,]{1,40}),pid|Kill(?:ed)? process \d{2,8} \((?P<c>[^)]{1,40})\)|\btask (?P<d>\S{1,40}):\d{2,8} blocked"
    r"|(?:^|\s)(?P<e>[^\s\[\]]{1,40})\[\d{2,8}\]: segfault"
)
_SLURM_JOB = re.compile(r"/job_?(\d{1,12})\b")
_PBS_JOB = re.compile(r"/(\d{1,12})\.[a-z][\w-]{0,60}[/,]")
_KILLED = re.compile(r"Killed process (\d{2,8}) \(([^)]{1,40})\).{0,200}?anon-rss:(\d{1,15})kB.{0,200}?UID:(\d{1,10})")
_CGROUP = re.compile(r"task_memcg=([^,\s]{1,300}),.{0,80}?pid=(\d{2,8})")
_SCHEDULED = re.compile(r"job|slurm|pbs|lsf|kubepods|docker|flux|htcondor", re.IGNORECASE)
_NOBODY = Processes()
_FROM_OUTSIDE = frozenset(
    {
        "nccl-timeout",
        "nccl-remote-error",
        "connection-error",
        "cuda-error",
        "gpu-lost",
        "ecc-error",
        "nvlink-error",
        "network-error",
    }
    | {"node-failure", "hang", "native-crash", "called-process-error", "runtime-error", "dataloader-killed"}
)
_NEIGHBOUR: dict[str, Any] = {
    "title": "memory of the node was used up by another user's process, and the kernel killed one of this job's",
    "node_fault": True,
    "remedy": "Ask for nodes alone (--exclusive), or have the cluster team limit memory for each user there; restart elsewhere.",
    "check": "who holds the memory of the node: ps -eo user,pid,rss,cmd --sort=-rss | head",
}


@dataclass(frozen=True, slots=True)
class _Victim:
    key: tuple[str, int]
    pid: int
    name: str
    kilobytes: int
    user: str


def weigh(best: Best, log: JobLog, gone: Sequence[Fallen]) -> None:
    """Gives ranks to what the kernel says of the job's processes; what it says of others becomes context."""
    said = {key: f for key, f in best.items() if f.signature.role != "benign" and _KERNEL.search(f.line.text)}
    if not said:
        return
    own = processes(log, gone, {_first(_NAME, f.line.text) for f in said.values()})
    nodes = {f.name: f.node for f in log.files}
    jobs = node_numbers([f for f in log.files if f.kind == "job"])
    explained = bool(own.ranks) or _has_own_cause(best, log)
    places: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for key, f in said.items():
        _, pid = about(f.line.text)
        node = f.groups.get("node") or f.line.node or nodes[key[0]]
        if known := own.rank(node, pid):
            places[f.signature.id].add(known)
            best[key] = replace(f, groups={"node": known[0], "rank": str(known[1]), **_with_node(f.groups, node)})
        elif not own.has(node, pid) and _of_others(f.line.text, own if explained else _NOBODY, jobs):
            best[key] = replace(f, signature=as_context(f))
    for key, f in said.items():
        if len(places[f.signature.id]) * 2 > max(2, len(own.ranks)):
            best[key] = replace(best[key], groups=f.groups)  # what most ranks met is no rank's own
    _neighbours(best, said, log.files, own)


def _has_own_cause(best: Best, log: JobLog) -> bool:
    """Does the job itself tell of a failure that neither a fault of a node nor a lost peer brings about?"""
    own = {f.name for f in log.files if f.kind == "job"}
    return any(
        key[0] in own
        and f.signature.role == "root"
        and not f.signature.node_fault
        and f.signature.failure_type not in _FROM_OUTSIDE
        for key, f in best.items()
    )


def _with_node(groups: Mapping[str, str], node: str | None) -> Mapping[str, str]:
    return {**groups, "node": node} if node else groups


def _of_others(text: str, own: Processes, jobs: Collection[str]) -> bool:
    named = slurm_jobs(text) | {*_PBS_JOB.findall(text)}
    if jobs and named:
        return named.isdisjoint(job.split(".", 1)[0] for job in jobs)
    return own.foreign(_first(_NAME, text))


def slurm_jobs(text: str) -> frozenset[str]:
    """Numbers of the jobs of Slurm whose control groups a line of the kernel names."""
    return frozenset(_SLURM_JOB.findall(text))


def about(text: str) -> tuple[str, int]:
    """Name and number of the process that a line of the kernel tells of; "" and 0 where it does not."""
    return _first(_NAME, text), int(_first(_PID, text) or 0)


def as_context(f: Finding) -> Any:
    """The signature of a line that tells of a process of another job."""
    name, pid = _first(_NAME, f.line.text), _first(_PID, f.line.text)
    whose = f"{name}, process {pid}" if name and pid else name or f"process {pid}"
    return replace(
        f.signature,
        role="context",
        title=f"{f.signature.title}, of a process that is none of this job's ({whose})",
        weight=20,
    )


def _neighbours(best: Best, said: Best, files: Sequence[LogFile], own: Processes) -> None:
    """The whole node ran out of memory, and the process that held most of it is another user's than the job's."""
    by_file: dict[str, list[_Victim]] = defaultdict(list)
    for victim in _victims(said):
        by_file[victim.key[0]].append(victim)
    for name, victims in by_file.items():
        holder = max(victims, key=lambda v: v.kilobytes)
        ours = [v for v in victims if v.user != holder.user and v.kilobytes * 2 < holder.kilobytes]
        lines = next(f.lines for f in files if f.name == name)
        cgroups = {found[2]: found[1] for line in lines if (found := _CGROUP.search(line.text))}
        outside = str(holder.pid) in cgroups and not _SCHEDULED.search(cgroups[str(holder.pid)])
        if not ours or not (outside or own.foreign(holder.name)):
            continue
        for key, f in said.items():
            if (
                key[0] != name
                or f.signature.failure_type != "host-out-of-memory"
                or "constraint=CONSTRAINT_MEMCG" in f.line.text
            ):
                continue
            of_holder = _first(_PID, f.line.text) == str(holder.pid)
            changed = (
                as_context(f)
                if of_holder
                else replace(f.signature, **_NEIGHBOUR)
                if f.signature.role == "root"
                else f.signature
            )
            best[key] = replace(best[key], signature=changed)


def _victims(said: Best) -> Iterator[_Victim]:
    for key, f in said.items():
        if (found := _KILLED.search(f.line.text)) and "cgroup out of memory" not in f.line.text:
            yield _Victim(key, int(found[1]), found[2], int(found[3]), found[4])


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text[:2000])
    return next((group for group in found.groups() if group), "") if found else ""
