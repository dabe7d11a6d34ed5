"""What the pipeline gets to see of a case: its input files in a neutral folder, and nothing else.

Copies, not links: a link tells where it leads. All files get one date, for that of a checkout says nothing and would
make the year of a stamp without one depend on the day of the evaluation.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from triage.errors import InputError
from triage.evaluation import lines
from triage.evaluation.cases import FILE, Case
from triage.evaluation.worker import Task

_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def stage(case: Case, place: Path) -> Task:
    """Copies the inputs into place/job, which is made anew. Errors: InputError when they cannot be copied."""
    job = place / "job"
    shutil.rmtree(job, ignore_errors=True)
    try:
        names = [_copy(path, job, name) for name, path in case.files()]
    except OSError as error:
        raise InputError(f"{case.folder}: cannot be copied to {place}: {error.strerror or error}") from None
    return Task(job, case.inputs, tuple(names))


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
