"""Reads what `sacct -P` prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from triage import hostlist
from triage.domain import SlurmJob, SlurmStep
from triage.slurm import fields

DELIMITER = "\x1f"  # no name of a job holds it
# Asked for as far as this version has them; all but the last line are in every version from 20.11 on.
WANTED = (
    "JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "QOS", "Cluster", "State", "ExitCode", "DerivedExitCode",
    "Reason", "FailedNode", "NodeList", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw", "ReqMem", "AllocTRES", "MaxRSS",
    "MaxRSSNode", "WorkDir", "SystemComment", "AdminComment",
    "SubmitLine", "Restarts", "StdOut", "StdErr",
)  # fmt: skip
_ID = re.compile(r"\d{1,10}(?:_\d{1,9}|_\[[^\]]*\]?|\+\d{1,4})?(?:\.|$)", re.ASCII)
_LATEST = datetime.max.replace(tzinfo=UTC)


def jobs(text: str) -> tuple[SlurmJob, ...]:
    """The jobs of a table with its line of names, each in its latest attempt, those before it as `earlier`."""
    attempts: dict[str, list[SlurmJob]] = {}
    for row, steps in _by_job(_rows(text)):
        job = _job(row, steps)
        attempts.setdefault(job.id, []).append(job)
    return tuple(_latest(found) for found in attempts.values())


def is_table(text: str) -> bool:
    """A table of no job still has its line of names."""
    return "JobID" in text.partition("\n")[0].split(DELIMITER)


def _latest(attempts: Sequence[SlurmJob]) -> SlurmJob:
    if len(attempts) == 1:
        return attempts[0]
    *earlier, last = sorted(attempts, key=lambda job: job.submit or job.start or _LATEST)
    return replace(last, earlier=tuple(earlier), restarts=max(last.restarts, len(earlier)))


def _rows(text: str) -> Iterator[dict[str, str]]:
    """A name that holds line ends goes over several lines."""
    lines = iter(text.split("\n"))
    names = next(lines, "").split(DELIMITER)
    cells: list[str] = []
    for line in lines:
        more = line.split(DELIMITER)
        cells = [*cells[:-1], f"{cells[-1]} {more[0]}", *more[1:]] if cells else more
        if len(cells) >= len(names):
            yield dict(zip(names, cells, strict=False))
            cells = []


def _by_job(rows: Iterable[dict[str, str]]) -> Iterator[tuple[dict[str, str], list[dict[str, str]]]]:
    """Each job with the steps that follow it."""
    job: dict[str, str] | None = None
    steps: list[dict[str, str]] = []
    for row in rows:
        if not _ID.match(row.get("JobID", "")):
            continue
        if "." in row["JobID"]:
            steps.append(row)
            continue
        if job:
            yield job, steps
        job, steps = row, []
    if job:
        yield job, steps


def _job(row: Mapping[str, str], rows: Iterable[Mapping[str, str]]) -> SlurmJob:
    said = {name: fields.said(value) for name, value in row.items()}
    get = said.get
    steps = tuple(_step(step) for step in rows)
    largest = max(steps, key=lambda step: step.max_rss or -1, default=None)
    state, by = fields.state(row.get("State", ""))
    base, _, task = row["JobID"].partition("_")
    het, _, offset = base.partition("+")
    limit = fields.number(get("TimelimitRaw", ""))
    return SlurmJob(
        id=row["JobID"],
        raw_id=get("JobIDRaw", "") or base,
        state=state,
        cancelled_by=by,
        reason=get("Reason", ""),
        exit_code=fields.code(get("ExitCode", ""))[0],
        signal=fields.code(get("ExitCode", ""))[1],
        derived_exit_code=fields.code(get("DerivedExitCode", ""))[0],
        derived_signal=fields.code(get("DerivedExitCode", ""))[1],
        name=get("JobName", ""),
        user=get("User", ""),
        account=get("Account", ""),
        partition=get("Partition", ""),
        qos=get("QOS", ""),
        cluster=get("Cluster", ""),
        nodes=hostlist.expand(get("NodeList", "")),
        node_list=get("NodeList", ""),
        failed_node=get("FailedNode", ""),
        submit=fields.time(get("Submit", "")),
        start=fields.time(get("Start", "")),
        end=fields.time(get("End", "")),
        elapsed=fields.number(get("ElapsedRaw", "")),
        time_limit=None if limit is None else fields.limit(limit * 60),
        restarts=fields.number(get("Restarts", "")) or 0,
        tres=get("AllocTRES", ""),
        req_mem=get("ReqMem", ""),
        gpus=fields.gpus(get("AllocTRES", "")),
        max_rss=largest.max_rss if largest else None,
        max_rss_node=largest.max_rss_node if largest else "",
        work_dir=get("WorkDir", ""),
        stdout=get("StdOut", ""),
        stderr=get("StdErr", ""),
        command=get("SubmitLine", ""),
        comment=" ".join(filter(None, (get("SystemComment", ""), get("AdminComment", "")))),
        array_job=base if task else "",
        array_task=task.strip("[]").partition("%")[0],
        het_job=het if offset else "",
        het_offset=fields.number(offset),
        steps=steps,
    )


def _step(row: Mapping[str, str]) -> SlurmStep:
    code, signal = fields.code(row.get("ExitCode", ""))
    return SlurmStep(
        id=row["JobID"],
        name=fields.said(row.get("JobName", "")),
        state=fields.state(row.get("State", ""))[0],
        exit_code=code,
        signal=signal,
        nodes=hostlist.expand(row.get("NodeList", "")),
        start=fields.time(row.get("Start", "")),
        end=fields.time(row.get("End", "")),
        max_rss=fields.size(row.get("MaxRSS", "")),
        max_rss_node=fields.said(row.get("MaxRSSNode", "")),
        submitted=fields.said(row.get("SubmitLine", "")),
    )
