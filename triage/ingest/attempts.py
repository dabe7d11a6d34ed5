"""Several jobs or attempts in one folder: the last one is diagnosed, and what became of the others is said. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import PurePosixPath

from triage.domain import LogFile
from triage.ingest.runs import ended_how
from triage.text import how_many

# The number that schedulers and people put into names for each job or attempt; not that of a task, a rank or an array.
_NUMBERED = re.compile(
    r"(?P<a>(?:^|[_.-])(?:slurm|job|pbs|lsf)[_.-])(?P<n>\d{2,12})(?=\.(?:out|err|log|txt)$)"
    r"|(?P<b>\.[oe])(?P<m>\d{2,12})$"
    r"|(?P<c>(?:^|[_.-])(?:attempt|try|retry)[_.-]?)(?P<k>\d{1,4})(?=$|[._-])",
    re.IGNORECASE,
)
_MAY_BE_RANKS = re.compile(r"job[_.-]$", re.IGNORECASE)  # unless their stamps say that one follows the other
_TORCHRUN = re.compile(r"(?:^|/)attempt_\d+/\d{1,3}/(?:stdout|stderr|error)\b")
_FEW = 3  # lines that a job leaves at least


@dataclass(frozen=True, slots=True)
class _Job:
    number: int
    files: tuple[LogFile, ...]

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        times = [line.time for f in self.files for line in f.lines if line.time]
        return (min(times), max(times)) if times else None

    @property
    def name(self) -> str:
        return PurePosixPath(self.files[0].name).name

    @property
    def lines(self) -> int:
        return sum(bool(line.text.strip()) for f in self.files for line in f.lines)


def last_job(files: Sequence[LogFile]) -> tuple[tuple[LogFile, ...], tuple[str, ...]]:
    """The files without those of earlier jobs, and what to say of these. Jobs that ran side by side stay together."""
    jobs = _jobs(files)
    while jobs and jobs[-1].lines < _FEW:
        jobs = jobs[:-1]
    if len(jobs) < 2 or not all(_follows(a, b) for a, b in pairwise(jobs)):
        return tuple(files), ()
    earlier = {f.name for job in jobs[:-1] for f in job.files}
    told = ", ".join(f"{job.name} ({_how(job)})" for job in jobs[:-1][-3:])
    said = f"of {how_many(len(jobs), 'job')} that ran one after the other only the last, {jobs[-1].name}, is diagnosed; before it: {told}"
    return tuple(f for f in files if f.name not in earlier), (said,)


def _jobs(files: Sequence[LogFile]) -> list[_Job]:
    """By number, where all output of the job is named alike but for it."""
    found: dict[tuple[str, int], list[LogFile]] = defaultdict(list)
    output = [f for f in files if f.kind == "job"]
    for file in output:
        key = _key(file.name)
        if key is None:
            return []
        found[key].append(file)
    if len({stem for stem, _ in found}) != 1:
        return []
    jobs = [_Job(number, tuple(of)) for (_, number), of in sorted(found.items())]
    ranks = any(_MAY_BE_RANKS.search(stem) for stem, _ in found) and any(job.span is None for job in jobs)
    return [] if ranks else jobs


def _key(name: str) -> tuple[str, int] | None:
    if _TORCHRUN.search(name):
        return None  # of one job, whose launcher started its ranks again
    for part in (PurePosixPath(name).name, *reversed(PurePosixPath(name).parts[:-1])):
        if match := _NUMBERED.search(part):
            groups: Mapping[str, str | None] = match.groupdict()
            number = next(int(groups[g] or 0) for g in ("n", "m", "k") if groups[g])
            return part[: match.start()] + (groups["a"] or ("." if groups["b"] else groups["c"]) or ""), number
    return None


def _follows(a: _Job, b: _Job) -> bool:
    """Did b begin after a had ended, as far as their stamps tell?"""
    return a.span is None or b.span is None or b.span[0] >= a.span[1]


def _how(job: _Job) -> str:
    outcome, _, _ = ended_how(job.files[0].lines)
    return "its end is not told" if outcome == "unknown" else outcome
