"""How a run ended, as far as its own end tells. Pure. Meant for the list of earlier runs, not for a diagnosis."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.domain import LogLine, Outcome
from triage.heads import split

_LOOK_BACK = 60
_TELLING = 200  # lines of an earlier run
_ROW = r"^\d{1,12}(?:[_+]\d{1,9})?\|"  # of a job itself, not of a step, in the accounting
# Ended from outside: decides wherever it stands, as the shutdown that follows it prints errors of every kind.
_INTERRUPTED = re.compile(
    r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT |DUE TO (?:TIME LIMIT|PREEMPTION)|[Tt]erminated due to preemption"
    rf"|PREEMPTED|{_ROW}(?:TIMEOUT|DEADLINE|REQUEUED|CANCELLED[\w ]{{0,80}})\||SignalException: Process \d+ got signal: (?:15|2)\b|^KeyboardInterrupt|\bspot (?:instance )?interruption"
)
_NODE_FAILED = re.compile(r"DUE TO NODE[ _]FAILURE|NODE_FAIL")
_FAILED = re.compile(
    r"^(?:\[rank\d+\]: )?(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)\b(?::|$)|^\s*exit ?code\s*: -?[1-9]|exitcode: -?[1-9]"
    r"|ChildFailedError|[Ee]xited with exit code [1-9]|return code = -?[1-9]|[Ss]egmentation fault|core dumped"
    rf"|{_ROW}(?:FAILED|OUT_OF_MEMORY|BOOT_FAIL|LAUNCH_FAILED)\||^(?:\S+: line \d+: +\d+ )?(?:Killed|Aborted)\b|oom[-_]kill|Out Of Memory|exited on signal|MPI_ABORT was invoked"
)
_HEALTHY = re.compile(
    r"\b(?:[Tt]raining|[Jj]ob|[Rr]un|[Ee]valuation|[Ee]pochs?|[Aa]ll)\b.{0,30}\b(?:completed?|finished|done|ended)\b"
    r"|\btrain_runtime\b|^Success rate|^ENDING TIMING RUN|^exiting program|exit code:? 0\b|successfully exit(?:s|ed)"
    rf"|\bAll done\b|{_ROW}COMPLETED\|0:0\|"
)
_DENIED = re.compile(r"\b(?:not|never|un|fail\w*|0/\d+)\b|\bin\s?complete", re.IGNORECASE)


def ended_how(lines: Sequence[LogLine]) -> tuple[Outcome, str, int | None]:
    """(outcome, the line that says so, its number). unknown: the end says nothing, as when a node dies."""
    tail = [line for line in lines if line.text.strip()][-_LOOK_BACK:]
    for line in reversed(tail):
        if _NODE_FAILED.search(line.text):
            return "failed", line.text, line.number
    for line in tail:
        if _INTERRUPTED.search(line.text):
            return "interrupted", line.text, line.number
    for line in reversed(tail):
        if _FAILED.search(line.text) or _FAILED.match(split(line.text)[1]):
            return "failed", line.text, line.number
        if _HEALTHY.search(line.text) and not _DENIED.search(line.text):
            return "healthy", line.text, line.number
    return "unknown", "", None


def telling(lines: Sequence[LogLine], ended: int | None) -> tuple[LogLine, ...]:
    """What to show of a run that is not the last: lines that a signature may know or that end an exception, the last ones."""
    found = [
        line
        for line in lines
        if line.number == ended
        or (line.rule is None and (line.hot or _FAILED.search(line.text) or _INTERRUPTED.search(line.text)))
    ]
    return tuple(found[-_TELLING:])
