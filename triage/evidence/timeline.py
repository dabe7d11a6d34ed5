"""Scheduler, kernel and job on one timeline, and what a node's own log has to do with the failure of that node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from triage.domain import Evidence, LogFile, LogLine, Moment
from triage.evidence.account import job_row
from triage.evidence.clocks import describe, node_of_file

WINDOW = timedelta(seconds=20)  # around the first failure of a node
BEFORE_HANG = timedelta(seconds=60)  # before its start, in which its cause is looked for
MOST = 24
Join = Literal["cause", "alone", "outside", "unknown"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A line by which a host failed in the job's own log. host: None where the log does not tell it."""

    time: datetime
    host: str | None
    line: LogLine


def join(at: datetime | None, host: str | None, failures: Sequence[Failure], hang: datetime | None, hosts: int) -> Join:
    """What a line of a host's own log is to that host's failure: its cause, by time; alone, where the host shows no
    other sign; outside of the window; unknown, where stamps or hosts are not told. hosts: how many the job is known to have."""
    if at is None or host is None:
        return "unknown"
    here = [f.time for f in failures if same_host(f.host, host) or (f.host is None and hosts <= 1)]
    if not here:
        return "alone" if failures and all(f.host for f in failures) else "unknown"
    if abs(min(here) - at) <= WINDOW or (hang is not None and hang - BEFORE_HANG <= at <= hang + WINDOW):
        return "cause"
    return "outside"


def same_host(a: str | None, b: str | None) -> bool:
    """gpu-07 and gpu-07.cluster.example are one."""
    return bool(a and b) and str(a).split(".")[0].lower() == str(b).split(".")[0].lower()


def joined(kind: Join, place: str, file: LogFile, first: Failure | None) -> str:
    """The join in words, "" when it says nothing."""
    where = describe(file)
    if kind == "cause" and first is not None:
        return f"{place} of {where}: within {WINDOW.seconds} s of that host's first failure or of where the wait began, which speaks for it as the cause."
    if kind == "alone":
        return f"{place} of {where}: alone, for that host shows no other sign of failure in the job's own log."
    if kind == "outside" and first is not None:
        return f"{place} of {where}: more than {WINDOW.seconds} s away from that host's first failure ({first.line.file}:{first.line.number}), so context only."
    return ""


def moments(
    files: Sequence[LogFile],
    evidence: Iterable[Evidence],
    marked: Iterable[tuple[LogLine, str]],
    hang: datetime | None,
    ahead: dict[str, float],
) -> tuple[Moment, ...]:
    """All dated events in order. marked: lines that are no evidence, with what they show; ahead: seconds, by file."""
    kinds = {f.name: f for f in files}
    found = [m for f in files for m in _accounted(f, ahead.get(f.name, 0.0))]
    if hang is not None:
        found.append(Moment(hang, "the wait began (report time less elapsed)", "job"))
    found += [
        Moment(e.time, _short(e), _source(kinds.get(e.file)), e.file, e.line, e.node, e.id) for e in evidence if e.time
    ]
    found += [Moment(x.time, what, "job", x.file, x.number, x.node) for x, what in marked if x.time]
    return tuple(sorted(found, key=lambda m: m.time)[:MOST])


def _short(e: Evidence) -> str:
    """What the line means, without what its codes stand for."""
    return e.title.partition(" (")[0].partition(";")[0] or e.text[:120]


def _accounted(file: LogFile, ahead: float) -> list[Moment]:
    row = job_row(file)
    if row is None:
        return []
    shift = timedelta(seconds=ahead)
    ended = f"the job ended: {row.state} {row.exit_code}".strip()
    times = ((row.start, f"job {row.job} started"), (row.end, ended))
    return [Moment(at - shift, what, "scheduler", file.name, row.line.number) for at, what in times if at]


def _source(file: LogFile | None) -> str:
    kind = file.kind if file else "job"
    return "scheduler" if kind in ("slurm", "sacct", "kubernetes") else kind


def host_of(line: LogLine, file: LogFile | None, places: dict[int, str]) -> str | None:
    """Which host a line speaks of: named, its rank's, or its file's."""
    rank = line.rank if line.rank is not None else (file.rank if file else None)
    return line.node or (places.get(rank) if rank is not None else None) or (node_of_file(file) if file else None)
