"""Events that more than one file tells of, by which their clocks are compared. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from triage.domain import LogFile, LogLine
from triage.evidence.account import times_of
from triage.evidence.progress import steps
from triage.heads import split

LOOKED_AT = 160  # lines with a time, at most, at each end of a file
_EXACT, _STEP, _WAIT, _DEATH, _SPAN = 1.0, 20.0, 60.0, 120.0, 300.0  # seconds within which both tell of it
_WATCHDOG = re.compile(
    r"(?:GUID (\w+).{0,200}?)?collective operation timeout: Work\w{0,6}\(SeqNum=(\d{1,20}), OpType=(\w+)"
)
_PEER = re.compile(r"(?:remote|from|by|to) peer ([A-Za-z][\w.-]{1,80}?)<")
_DEAD = re.compile(
    r"Killed process (\d{2,9})\b|\bpid[=:] ?'?(\d{2,9})\b|\w\[(\d{2,9})\]: segfault|\(pid:? (\d{2,9})\)|\bPID:? (\d{2,9})\b"
)
_DEATH_WORDS = ("illed", "Xid", "segfault", "failed (exitcode", "exited", "SIGKILL", "SIGSEGV", "exit code", "died")
_ALLOCATED = re.compile(r"\bAllocate JobId=\d+|\bsched: Allocate\b|_start_job|[Ll]aunching batch job")
_COMPLETED = re.compile(r"_job_complete: JobId=\d+ (?:done|WEXITSTATUS|WTERMSIG)|job_complete: JobId=\d+ done")


@dataclass(frozen=True, slots=True)
class Mark:
    """An event and when the file says it was. within: seconds that two tellers of it may honestly differ by."""

    event: str
    time: datetime
    within: float


def marks(file: LogFile, most: int = LOOKED_AT) -> list[Mark]:
    """Those of a file, each event once, at its first telling. most: lines looked at, at either end."""
    found: dict[str, Mark] = {}
    for mark in _marks(file, min(most, LOOKED_AT)):
        found.setdefault(mark.event, mark)
    return list(found.values())


def _marks(file: LogFile, most: int) -> Iterator[Mark]:
    if file.kind == "sacct":
        for name, at in times_of(file).items():
            yield Mark(name, at, _SPAN)
        return
    timed = [line for line in file.lines if line.time]
    if not timed:
        return
    ends = timed if len(timed) <= 2 * most else [*timed[:most], *timed[-most:]]
    for line in ends:
        yield from _of_line(line, file)
    if file.kind == "job":
        for step in steps(replace(file, lines=tuple(ends))):
            if step.number is not None and step.line.time:
                yield Mark(f"step {step.number}", step.line.time, _STEP)
        yield Mark("job start", _time(timed[0]), _SPAN)
        yield Mark("job end", _time(timed[-1]), _SPAN)


def _of_line(line: LogLine, file: LogFile) -> Iterator[Mark]:
    at, text = _time(line), line.text[:600]
    if line.program == "slurm" and "error" in text and file.kind in ("job", "slurm"):
        yield Mark("line " + _from_slurm(split(text)[1]), at, _EXACT)
    if file.kind == "slurm":
        if _ALLOCATED.search(text):
            yield Mark("job start", at, _SPAN)
        elif _COMPLETED.search(text):
            yield Mark("job end", at, _SPAN)
    elif "collective operation timeout" in text and (found := _WATCHDOG.search(text)):
        yield Mark(f"wait {found[1] or ''} {found[2]} {found[3]}", at, _WAIT)
    elif line.node and "peer " in text and (peer := _PEER.search(text)):
        ends = sorted((line.node.split(".")[0], peer[1].split(".")[0]))
        yield Mark(f"lost connection {ends[0]} {ends[1]}", at, _STEP)
    if any(word in text for word in _DEATH_WORDS):
        for groups in _DEAD.findall(text):
            yield Mark(f"end of process {next(filter(None, groups))}", at, _DEATH)


def _from_slurm(text: str) -> str:
    """From the program's name on, as collectors put their own words before it."""
    place = min((at for name in ("srun: ", "slurmstepd: ", "slurmstepd-") if (at := text.find(name)) >= 0), default=0)
    return text[place:].strip()


def _time(line: LogLine) -> datetime:
    assert line.time is not None
    return line.time
