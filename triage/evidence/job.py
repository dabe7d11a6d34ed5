"""Which job the log is of: the scheduler's id and the nodes, where a line or a file name says them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage.domain import LogFile

_IN_LINE = re.compile(
    r"\*\*\* (?:JOB|STEP) (\d{1,12})[. ]|\bStepId=(\d{1,12})"
    r"|\bSLURM_JOB_?ID[=: ]+(\d{1,12})\b|\bJob ?ID ?[:=] ?(\d{1,12}(?:\.(?!batch|extern|interactive)[a-z][\w-]{1,60})?)\b|Submitted batch job (\d{1,12})|\[job (\d{1,12})\]"
    r"|\bPBS_JOBID[=: ]+(\d{1,12}(?:\[\d{0,7}\])?(?:\.[\w-]{1,60})?)|\bqsub: job (\d{1,12}(?:\[\d{0,7}\])?(?:\.[\w-]{1,60})?)[\w.-]* (?:completed|deleted|ready)"
    r"|\bLSB_JOBID[=: ]+(\d{1,12})\b|^Subject: Job (\d{1,12})(?:\[\d{1,7}\])?: <|\bJob <(\d{1,12})> is submitted"
    r"|\bFLUX_JOB_ID[=: ]+(\u0192?[0-9A-Za-z]{2,20})\b|^Your job(?:-array)? (\d{1,12})[. ]",
    re.IGNORECASE,
)
_IN_NAME = re.compile(r"(?:^|[/_.-])slurm[-_.](\d{3,12}(?P<task>_\d{1,7})?)(?=[._-]|$)")


def job_id(files: Iterable[LogFile], said: Iterable[str] = ()) -> str:
    """The id of the last run's job, "" when nothing says it. said: lines that tell the failure, whose word counts first.

    The job's own output counts before the scheduler's, which names many jobs.
    """
    files = list(files)
    tasks = {
        match[1] for file in files if file.kind == "job" and (match := _IN_NAME.search(file.name)) and match["task"]
    }
    if len(tasks) == 1:  # a task of an array: lines name it by a number of its own, which nothing else knows
        return tasks.pop()
    for text in said:
        if match := _IN_LINE.search(text):
            return next(group for group in match.groups() if group)
    named = ""
    for file in sorted(files, key=lambda f: f.kind != "job"):
        for line in reversed(file.lines):
            if ("ob" in line.text or "OB" in line.text or "Step" in line.text) and (
                match := _IN_LINE.search(line.text)
            ):
                return next(group for group in match.groups() if group)
        match = _IN_NAME.search(file.name)
        named = named or (match[1] if match else "")
    return named
