"""Which job the log is of: the scheduler's id and the nodes, where a line or a file name says them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from triage.domain import LogFile
from triage.jobids import base_and_task

_NUMBER = r"\d{1,12}(?:_\d{1,9}|\+\d{1,4})?"
_IN_LINE = re.compile(
    rf"\*\*\* (?:JOB|STEP) ({_NUMBER})[. ]|\bStepId=({_NUMBER})"
    rf"|\bSLURM_JOB_?ID[=: ]+({_NUMBER})\b|\bJob ?ID ?[:=] ?(\d{{1,12}}(?:_\d{{1,9}}|\+\d{{1,4}}|\.(?!batch|extern|interactive)[a-z][\w-]{{1,60}})?)\b"
    rf"|Submitted batch job ({_NUMBER})|\[job ({_NUMBER})\]"
    r"|\bPBS_JOBID[=: ]+(\d{1,12}(?:\[\d{0,7}\])?(?:\.[\w-]{1,60})?)|\bqsub: job (\d{1,12}(?:\[\d{0,7}\])?(?:\.[\w-]{1,60})?)[\w.-]* (?:completed|deleted|ready)"
    r"|\bLSB_JOBID[=: ]+(\d{1,12})\b|^Subject: Job (\d{1,12}(?:\[\d{1,7}\])?): <|\bJob <(\d{1,12}(?:\[\d{1,7}\])?)> is submitted"
    r"|\bFLUX_JOB_ID[=: ]+(\u0192?[0-9A-Za-z]{2,20})\b|^Your job(?:-array)? (\d{1,12})[. ]|^(?:export )?JOB_ID[=: ]+(\d{1,12})\b",
    re.IGNORECASE,
)
_IN_NAME = re.compile(r"(?:^|[/_.-])slurm[-_.](\d{3,12}(?P<task>_\d{1,7})?)(?=[._-]|$)")
_OF_ARRAY = re.compile(
    r"\b(?:SLURM_ARRAY_JOB_ID|ArrayJobId)[=: ]{1,3}(?P<array>\d{1,12})\b"
    r"|\b(?:SLURM_ARRAY_TASK_ID|ArrayTaskId)[=: ]{1,3}(?P<task>\d{1,9})\b"
    r"|\b(?:LSB_JOBINDEX|SGE_TASK_ID)[=: ]{1,3}(?P<index>[1-9]\d{0,8})\b"
)
_ARRAY_WORDS = ("ARRAY_", "ArrayJobId", "JOBINDEX", "SGE_TASK_ID")
_OWN_NUMBER = re.compile(r"\bSLURM_JOB_?ID[=: ]+(\d{1,12})\b(?!_)")


def job_id(files: Iterable[LogFile], said: Iterable[str] = ()) -> str:
    """The id of the last run's job, "" when nothing says it. said: lines that tell the failure, whose word counts first.

    A task of an array goes by the array's number and its own ("4711_3"; LSF and Grid Engine: "4711[3]"), whatever number
    besides the scheduler gives it. The job's own output counts before the scheduler's, which names many jobs.
    """
    files = list(files)
    tasks = {
        match[1] for file in files if file.kind == "job" and (match := _IN_NAME.search(file.name)) and match["task"]
    }
    if len(tasks) == 1:  # lines name the task by a number of its own, which nothing else knows
        return tasks.pop()
    array = _array([file for file in files if file.kind == "job"])
    if len(array["array"]) == 1:
        (job,) = array["array"]
        return f"{job}_{next(iter(array['task']))}" if len(array["task"]) == 1 else job
    found = _said(files, said)
    return f"{found}[{next(iter(array['index']))}]" if found.isdecimal() and len(array["index"]) == 1 else found


def node_numbers(files: Sequence[LogFile]) -> frozenset[str]:
    """The numbers by which a node's own log may name the job; none where only a part of an array is known, since there
    it has another number."""
    found = job_id(files)
    if base_and_task(found)[0] == found:
        return frozenset(filter(None, [found]))
    lines = (line.text for file in files for line in file.lines if "SLURM_JOB" in line.text)
    return frozenset(match[1] for text in lines if (match := _OWN_NUMBER.search(text)))


def _array(files: Iterable[LogFile]) -> Mapping[str, set[str]]:
    """All numbers of arrays and of tasks that lines tell."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        for line in file.lines:
            if any(word in line.text for word in _ARRAY_WORDS):
                for match in _OF_ARRAY.finditer(line.text):
                    found[str(match.lastgroup)].add(str(match[str(match.lastgroup)]))
    return found


def _said(files: Sequence[LogFile], said: Iterable[str]) -> str:
    for text in said:
        if match := _IN_LINE.search(text):
            return next(group for group in match.groups() if group)
    named = ""
    for file in sorted(files, key=lambda f: f.kind != "job"):
        for line in reversed(file.lines):
            if ("ob" in line.text or "OB" in line.text or "Step" in line.text or "STEP" in line.text) and (
                match := _IN_LINE.search(line.text)
            ):
                return next(group for group in match.groups() if group)
        match = _IN_NAME.search(file.name)
        named = named or (match[1] if match else "")
    return named
