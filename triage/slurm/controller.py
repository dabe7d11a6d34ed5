"""Reads what `scontrol show job` and `sinfo -N` print. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from triage import hostlist
from triage.domain import ENDED_BADLY, SlurmJob, SlurmNode
from triage.slurm import fields

NODE_FORMAT = "%N|%T|%u|%H|%E"
_WHOLE = (
    "JobName",
    "Command",
    "WorkDir",
    "StdErr",
    "StdIn",
    "StdOut",
    "Comment",
    "AdminComment",
    "SystemComment",
    "SubmitLine",
)
_PAIR = re.compile(r"(?:^|\s)([A-Za-z][\w/:]{0,40})=(\S*)")
_REST = re.compile(rf"(?:^|\s)({'|'.join(_WHOLE)})=(.*)$")
_NUMBER = re.compile(r"\d{1,10}", re.ASCII)
_USER = re.compile(r"([^()]*)\((\d+)\)")


def jobs(text: str) -> tuple[SlurmJob, ...]:
    """The jobs of the answer, in its order; what has no number or no state is none."""
    return tuple(_job(pairs) for pairs in _blocks(text) if _is_job(pairs))


def _is_job(pairs: Mapping[str, str]) -> bool:
    numbers = (pairs.get("JobId", ""), *(pairs[name] for name in ("ArrayJobId", "HetJobId") if name in pairs))
    return all(map(_NUMBER.fullmatch, numbers)) and bool(pairs.get("JobState"))


def nodes(text: str) -> tuple[SlurmNode, ...]:
    """The nodes of `sinfo -N -h -o NODE_FORMAT`, each once."""
    found: dict[str, SlurmNode] = {}
    for line in text.splitlines():
        name, *rest = line.split("|", 4)
        if len(rest) == 4 and name.strip():
            state, by, since, reason = (fields.said(part) for part in rest)
            reason = "" if reason.lower() == "none" else reason
            told = (fields.without_zones(since), by) if reason else ("", "")
            found.setdefault(name.strip(), SlurmNode(name.strip(), state.lower(), reason, *told))
    return tuple(found.values())


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """The first value of each name: a job's own name cannot put another state in its place."""
    pairs: dict[str, str] = {}
    for line in text.split("\n"):
        if line.startswith("JobId=") and pairs:
            yield pairs
            pairs = {}
        if pairs and not line.startswith(" "):  # what a name with a line end goes on with
            continue
        rest = _REST.search(line)
        for name, value in _PAIR.findall(line[: rest.start()] if rest else line):
            pairs.setdefault(name, value)
        if rest:
            pairs.setdefault(rest[1], rest[2].strip())
    if "JobId" in pairs:
        yield pairs


def _job(pairs: Mapping[str, str]) -> SlurmJob:
    said = {name: fields.said(value) for name, value in pairs.items()}
    get = said.get
    state, _ = fields.state(get("JobState", ""))
    code, signal = fields.code(get("ExitCode", ""))
    derived, derived_signal = fields.code(get("DerivedExitCode", ""))
    array, task, het, offset = (get(n, "") for n in ("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"))
    user = _USER.match(get("UserId", ""))
    tres = get("AllocTRES", "") or get("TRES", "")
    listed = get("NodeList", "")
    return SlurmJob(
        id=_shown(get("JobId", ""), array, task, het, offset),
        raw_id=get("JobId", ""),
        state=state,
        reason=get("Reason", ""),
        exit_code=code,
        signal=signal,
        derived_exit_code=derived,
        derived_signal=derived_signal,
        name=get("JobName", ""),
        user=user[1] if user else get("UserId", ""),
        account=get("Account", ""),
        partition=get("Partition", ""),
        qos=get("QOS", ""),
        nodes=hostlist.expand(listed),
        node_list=listed,
        failed_node=get("FailedNode", ""),
        submit=fields.time(get("SubmitTime", "")),
        start=fields.time(get("StartTime", "")),
        end=fields.time(get("EndTime", "")) if state == "COMPLETED" or state in ENDED_BADLY else None,
        elapsed=fields.span(get("RunTime", "")),
        time_limit=fields.limit(fields.span(get("TimeLimit", ""))),
        restarts=fields.number(get("Restarts", "")) or 0,
        tres=tres,
        req_mem=get("MinMemoryNode", "") or get("MinMemoryCPU", ""),
        gpus=fields.gpus(tres),
        work_dir=get("WorkDir", ""),
        stdout=get("StdOut", ""),
        stderr=get("StdErr", ""),
        command=get("Command", ""),
        comment=" ".join(filter(None, (get("SystemComment", ""), get("AdminComment", "")))),
        array_job=array,
        array_task=task.partition("%")[0],
        het_job=het,
        het_offset=fields.number(offset),
    )


def _shown(job: str, array: str, task: str, het: str, offset: str) -> str:
    if array:
        return f"{array}_{task}" if task.isdecimal() else f"{array}_[{task}]"
    return f"{het}+{offset}" if het else job
