"""The names of output files: %j, %A, %a, %N and the others filled in, as far as the job tells them. Pure."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from triage.domain import SlurmJob

_SYMBOL = re.compile(r"%(\d{0,3})([AaJjNnstuxb%])")
_MOST_WIDTH = 10
BATCH = "batch"


def to_glob(pattern: str, job: SlurmJob, step: str = BATCH) -> str:
    """A pattern for glob: names that all tasks and nodes of the step have, below the job's folder.

    step: `batch`, or the number of a step, whose ranks and nodes each may write a file of their own. What the job does not
    tell stands as *.
    """
    if "\\" in pattern:  # Slurm's rule: then no symbol means anything
        name = glob.escape(pattern.replace("\\", ""))
    else:
        parts = re.split(_SYMBOL, pattern)
        name = "".join(_part(parts, at, job, step) for at in range(0, len(parts), 3))
    return str(PurePosixPath(glob.escape(job.work_dir), name)) if job.work_dir else name


def _part(parts: list[str], at: int, job: SlurmJob, step: str) -> str:
    """The text that stands at this place, and the symbol after it."""
    symbol = parts[at + 1 : at + 3]
    return glob.escape(parts[at]) + (_symbol(symbol[1], symbol[0], job, step) if symbol else "")


def _symbol(symbol: str, width: str, job: SlurmJob, step: str) -> str:
    if symbol == "%":
        return "%"
    value = _VALUES[symbol](job, step)
    if not value:
        return "[0-9]*" if symbol in "tns" else "*"
    return glob.escape(value.zfill(min(int(width), _MOST_WIDTH)) if width and value.isdecimal() else value)


def _node(job: SlurmJob, step: str) -> str:
    """The batch script runs on the first node; a step, on each of them."""
    first = job.nodes[0].partition(".")[0] if job.nodes else ""
    return first if step == BATCH or len(job.nodes) == 1 else ""


def _task(job: SlurmJob) -> str:
    return job.array_task if job.array_task.isdecimal() else "4294967294"  # what Slurm writes where there is no array


_VALUES: dict[str, Callable[[SlurmJob, str], str]] = {
    "A": lambda job, _: job.array_job or job.raw_id,
    "a": lambda job, _: _task(job),
    "b": lambda job, _: str(int(_task(job)) % 10),
    "J": lambda job, step: job.raw_id if step == BATCH else f"{job.raw_id}.{step}",
    "j": lambda job, _: job.raw_id,
    "N": _node,
    "n": lambda _, step: "0" if step == BATCH else "",
    "s": lambda _, step: step,
    "t": lambda _, step: "0" if step == BATCH else "",
    "u": lambda job, _: job.user,
    "x": lambda job, _: job.name,
}
