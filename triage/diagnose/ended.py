"""What came before a job that was ended from outside: a hang, the end of its work, or only another time zone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts
from triage.diagnose.silence import HANG_SILENCE, HANG_STEPS, silence
from triage.domain import LogLine
from triage.evidence.cost import span

ON_THE_HOUR = timedelta(seconds=60)
MOST_ZONE = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class Before:
    """What came before a job was ended from outside: a hang, its work's completion, or what may be another time zone."""

    kind: Literal["hang", "done", "zone"]
    said: str


def before_the_end(facts: Facts, root: Candidate) -> Before | None:
    """When the job was ended from outside after a long silence between steps; None otherwise."""
    if root.failure_type not in ("time-limit", "cancelled"):
        return None
    end = root.first.line
    timed = [s.line for s in facts.steps.get(end.file, ()) if s.line.time and s.line.number < end.number]
    if not end.time or len(timed) < 3:
        return None
    still, pace = silence(timed, end.time)
    if still <= HANG_SILENCE or still <= pace * HANG_STEPS:
        return None
    last, done = f"{timed[-1].file}:{timed[-1].number}", facts.done.get(end.file)
    if done is not None and timed[-1].number < done < end.number:
        return Before(
            "done",
            f"The program had said before that its work was complete ({end.file}:{done}); it did not come to its end, and was ended "
            f"{span(still)} after its last step: nothing is lost, and nothing has to be run again.",
        )
    if _may_be_zone(facts, end, timed[-1]):
        return Before(
            "zone",
            f"The stamp of this line is {span(still)} after the last step ({last}): a whole number of hours, so either Slurm writes "
            "another time zone than the job, or the job hung; the accounting (`sacct -o Start,End`) tells which.",
        )
    return Before(
        "hang",
        f"The last step ({last}) was {span(still)} before: the job hung, made no progress, and was ended only then.",
    )


def _may_be_zone(facts: Facts, end: LogLine, last: LogLine) -> bool:
    """Is the end a whole number of hours after the last step, by a stamp of Slurm's own, with no other line between?"""
    if end.program != "slurm" or end.time is None or last.time is None or (end.time - last.time) > MOST_ZONE:
        return False
    between = [
        line.time
        for file in facts.log.files
        for line in file.lines
        if line.time and line is not end and line.program != "slurm" and line.time > last.time + ON_THE_HOUR
    ]
    off = (end.time - last.time) % timedelta(hours=1)
    return not between and min(off, timedelta(hours=1) - off) <= ON_THE_HOUR
