"""What Slurm says of a job as a text whose lines can be cited, in the columns of `sacct -P`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from triage.domain import SlurmJob, SlurmNode, SlurmStep
from triage.slurm import fields

COLUMNS = (
    "JobID", "State", "ExitCode", "DerivedExitCode", "Reason", "NodeList", "FailedNode", "Start", "End", "Elapsed", "Timelimit",
    "ReqMem", "MaxRSS", "MaxRSSNode",
)  # fmt: skip
# Names that people give, to jobs and steps, are left out: they could be taken for a state.
_AROUND = timedelta(hours=1)
_GIB = 1 << 30


def table(jobs: Sequence[SlurmJob]) -> str:
    """A line of names and then a line a job and step; each earlier attempt stands before, under a line of names of its own."""
    earlier = [attempt for job in jobs for attempt in job.earlier]
    return "".join(_lines([attempt]) for attempt in earlier) + _lines(jobs)


def nodes(found: Iterable[SlurmNode], jobs: Sequence[SlurmJob]) -> str:
    """A line for each node that went out of service while the jobs ran or soon after, as `scontrol show node` writes it.

    "" when there is none: what befell a node days later has nothing to do with the job.
    """
    first = min((job.start for job in jobs if job.start), default=None)
    last = max((job.end for job in jobs if job.end), default=None) if all(job.end for job in jobs) else None
    lines = [_node(node) for node in found if (node.out_of_service or node.reason) and _within(node, first, last)]
    return "\n".join(lines) + "\n" if lines else ""


def _within(node: SlurmNode, first: datetime | None, last: datetime | None) -> bool:
    at = fields.time(node.since)
    return at is None or ((first is None or at >= first - _AROUND) and (last is None or at <= last + _AROUND))


def _node(node: SlurmNode) -> str:
    told = f" Reason={_cell(node.reason)} [{node.by}@{node.since}]" if node.reason else ""
    return f"NodeName={node.name} State={node.state.upper()}{told}"


def _lines(jobs: Iterable[SlurmJob]) -> str:
    rows = [COLUMNS, *(row for job in jobs for row in (_job(job), *map(_step, job.steps)))]
    return "".join("|".join(row) + "\n" for row in rows)


def _job(job: SlurmJob) -> tuple[str, ...]:
    state = f"{job.state} by {job.cancelled_by}" if job.cancelled_by else job.state
    return tuple(
        map(
            _cell,
            (
                job.id,
                state,
                _code(job.exit_code, job.signal),
                _code(job.derived_exit_code, job.derived_signal),
                job.reason,
                job.node_list,
                job.failed_node,
                _time(job.start),
                _time(job.end),
                _span(job.elapsed),
                _span(job.time_limit) or "UNLIMITED",
                job.req_mem,
                _size(job.max_rss),
                job.max_rss_node,
            ),
        )
    )


def _step(step: SlurmStep) -> tuple[str, ...]:
    told = {
        "JobID": step.id,
        "State": step.state,
        "ExitCode": _code(step.exit_code, step.signal),
        "NodeList": ",".join(step.nodes[:1]) if len(step.nodes) == 1 else "",
        "Start": _time(step.start),
        "End": _time(step.end),
        "MaxRSS": _size(step.max_rss),
        "MaxRSSNode": step.max_rss_node,
    }
    return tuple(_cell(told.get(name, "")) for name in COLUMNS)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", " ").split())


def _code(code: int | None, signal: int | None) -> str:
    return "" if code is None else f"{code}:{signal or 0}"


def _time(at: datetime | None) -> str:
    """Local time and no zone, as Slurm writes it into the job's own log."""
    return at.astimezone().strftime("%Y-%m-%dT%H:%M:%S") if at else ""


def _span(seconds: int | None) -> str:
    if seconds is None:
        return ""
    days, rest = divmod(seconds, 86400)
    return (f"{days}-" if days else "") + f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def _size(size: int | None) -> str:
    return "" if size is None else f"{size / _GIB:.2f}G" if size >= _GIB else f"{size >> 10}K"
