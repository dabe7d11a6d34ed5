"""A node's own log that shares no event with the job's: is it told in another time zone? Only a guess, and said to be one. Pure.

Where what it reports lies nowhere near the job, and a whole number of hours brings it to where the job stopped its work,
the log is read so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from triage.domain import ClockNote, LogFile, LogLine
from triage.evidence.progress import steps
from triage.text import how_many

HOUR = timedelta(hours=1)
WIDEST = 14  # hours
EARLY, LATE = timedelta(minutes=2), timedelta(minutes=3)  # around the end of work, in which its cause is reported
AFTER = timedelta(minutes=5)  # the job's last line; what comes later is no longer beside it
_SERIOUS = re.compile(
    r"NVRM: Xid|fallen off the bus|illed process|segfault at|blocked for more than|was lost; in progress|not responding|Hardware Error|"
    r"link is (?:not ready|down)|Link is Down|I/O error|Machine check|Uncorrect(?:ed|able)",
    re.IGNORECASE,
)


def guessed(file: LogFile, job: Sequence[LogFile]) -> int:
    """Whole hours that the file's clock is ahead of the job's, 0 where nothing speaks for any. job: the job's own files."""
    serious = [line.time for line in file.lines if line.time and _SERIOUS.search(line.text)]
    own = [line for f in job for line in f.lines if line.time]
    if not serious or not own:
        return 0
    first, last = (pick(line.time for line in own if line.time) for pick in (min, max))
    if any(first <= at <= last + AFTER for at in serious):
        return 0
    ends = [last, *_last_steps(job)]
    fits = {
        hours: sum(_fits(at - hours * HOUR, ends) for at in serious) for hours in range(-WIDEST, WIDEST + 1) if hours
    }
    best = max(fits, key=lambda hours: (fits[hours], -abs(hours)))
    return best if fits[best] else 0


def _last_steps(job: Sequence[LogFile]) -> Iterator[datetime]:
    found = [line for f in job for line in _last_step(f)]
    yield from (line.time for line in found if line.time)


def _last_step(file: LogFile) -> list[LogLine]:
    return [step.line for step in steps(file)[-1:]]


def _fits(at: datetime, ends: Sequence[datetime]) -> bool:
    return any(end - EARLY <= at <= end + LATE for end in ends)


def note(file: LogFile, what: str, main: str, hours: int) -> ClockNote:
    """what: the file in words."""
    side = "ahead of" if hours > 0 else "behind"
    said = (
        f"{what} shares no event with {main}, and is taken to be {how_many(abs(hours), 'hour')} {side} it, another time zone, because what it "
        "reports then falls to where the job stopped its work; if it is no zone (`date` on the node tells), it is not the cause"
    )
    seconds = hours * HOUR.total_seconds()
    return ClockNote((file.name,), said, seconds, seconds)
