"""Numbers that schedulers give to jobs, and to the tasks of their arrays. Pure."""

from __future__ import annotations

import re

_PART = re.compile(
    r"(?P<job>\d{1,12})(?:_(?P<slurm>\d{1,9})|\+\d{1,4}|\[(?P<other>\d{1,9})\])(?P<server>\.[\w.-]{1,80})?"
)


def base_and_task(external_id: str) -> tuple[str, str]:
    """A job and the task of its array: "4711_3" and "4711[3].server" are task 3 of job 4711; "4711+1" is a part of 4711."""
    match = _PART.fullmatch(external_id)
    if match is None:
        return external_id, ""
    return match["job"] + (match["server"] or ""), match["slurm"] or match["other"] or ""
