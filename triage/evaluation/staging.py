"""What the pipeline gets to see of a case: its input files in a neutral folder, the scheduler's facts beside them, and nothing else.

Copies, not links: a link tells where it leads. All files get one date, for that of a checkout says nothing and would
make the year of a stamp without one depend on the day of the evaluation.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from triage.errors import InputError
from triage.evaluation import lines
from triage.evaluation.cases import Case
from triage.evaluation.inputs import FILE
from triage.evaluation.worker import Task
from triage.ingest import kinds, streams

FACTS = "sacct.txt"
_ALWAYS = ("JobID", "State", "ExitCode")
_SPELT = {"job": "JobID", "job_id": "JobID", "exit": "ExitCode", "exit_code": "ExitCode"}
_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def stage(case: Case, place: Path) -> Task:
    """Copies the inputs into place/job, which is made anew. Errors: InputError when they cannot be copied."""
    job = place / "job"
    shutil.rmtree(job, ignore_errors=True)
    try:
        names = [_copy(path, job, name) for name, path in case.files()]
    except OSError as error:
        raise InputError(f"{case.folder}: cannot be copied to {place}: {error.strerror or error}") from None
    if facts := _facts(case, job, names):
        return Task(job, (*case.inputs, facts), (*names, facts))
    return Task(job, case.inputs, tuple(names))


def _facts(case: Case, job: Path, names: Sequence[str]) -> str:
    """The name of a file with the scheduler's facts; "" where there are none, or an input tells them itself."""
    if not case.scheduler or any(_is_sacct(job / name) for name in names):
        return ""
    name = FACTS if FACTS not in names else f"scheduler-{FACTS}"
    (job / name).write_text(as_sacct(case.scheduler), "utf-8")
    os.utime(job / name, (_WRITTEN, _WRITTEN))
    return name


def as_sacct(facts: Mapping[str, Any]) -> str:
    """The facts as `sacct --parsable2` prints them: a line of names, a line of values."""
    spelt = {known.lower(): known for known in _ALWAYS} | _SPELT
    told = dict.fromkeys(_ALWAYS, "")
    for name, value in facts.items():
        told[spelt.get(str(name).lower(), str(name))] = " ".join(str(value).replace("|", " ").split())
    return "|".join(told) + "\n" + "|".join(told.values()) + "\n"


def _is_sacct(path: Path) -> bool:
    return kinds.classify(path.name, streams.sample(streams.Input(path.name, path, 0), [])) == "sacct"


def _copy(path: Path, job: Path, name: str) -> str:
    copy = job / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    os.utime(copy, (_WRITTEN, _WRITTEN))
    return name


def count_lines(case: Case) -> dict[str, int]:
    """Lines of each input file. Errors: InputError when a label names a file or a line that is not there."""
    counts = {name: lines.count(path) for name, path in case.files()}
    for at, decisive in enumerate(case.expect.evidence or ()):
        there = counts.get(decisive.file) if decisive.file else max(counts.values())
        if there is None or decisive.last > there:
            wrong = "is no input" if there is None else f"has {there} lines only"
            where = f"{case.folder / FILE}: expect.evidence[{at}]"
            raise InputError(f"{where}: {decisive.file or 'the longest input'} {wrong}")
    return counts
