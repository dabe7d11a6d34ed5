"""What ran out when the job ended: its time, whatever its launcher calls that, or what it logged in with. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from triage.domain import JobLog, LogFile
from triage.evidence.match import Best

_GUESSES = frozenset({"slurm.told-preempted", "slurm.requeued"})
_SAID = frozenset({"slurm.preempted", "slurm.state-preempted"})  # Slurm's own word
_ASKED = re.compile(r"^#SBATCH\s.{0,200}?(?:--time[= ]|-t ?)([\d:-]{1,20})(?:\s|$)")
_TIME = re.compile(r"(?:(?P<days>\d{1,4})-)?(?P<parts>\d{1,6}(?::\d{1,2}){0,2})")
_CLOSE = 0.02  # of the limit, or
_LEAD = timedelta(minutes=5)  # signals are sent before it
_REFUSES = frozenset({"storage-error", "permission-error", "dataset-loading-error"})
_SOON = timedelta(minutes=30)  # the first access after the end is refused, within the pace of reads or checkpoints
_ENDED = 88  # weight
_AT_LIMIT: dict[str, Any] = {
    "title": "the job was told to end at its time limit",
    "failure_type": "time-limit",
    "remedy": "Restart from the last checkpoint with a longer --time; the job had run for as long as it had asked for.",
    "check": "sacct -j JOB --format=State,Elapsed,Timelimit",
}


def weigh(best: Best, log: JobLog) -> None:
    """Launchers that got a signal call it a preemption; at the limit, and without Slurm's own word for it, it is none."""
    _logged_in_too_long(best)
    if any(f.signature.id in _SAID for f in best.values()):
        return
    guesses = [key for key, f in best.items() if f.signature.id in _GUESSES]
    if not guesses or not any(_reached(ran, limit) for ran, limit in _spans(best, guesses, log)):
        return
    for key in guesses:
        best[key] = replace(best[key], signature=replace(best[key].signature, **_AT_LIMIT))


def _logged_in_too_long(best: Best) -> None:
    """A session's end is the cause where storage refuses the job right after it: the errors seldom say so."""
    refused = [
        f.line.time for f in best.values() if f.signature.failure_type in _REFUSES and f.signature.role != "context"
    ]
    for key, f in best.items():
        end = f.signature.id == "cloud.session-ends" and _instant(f.groups.get("until", ""))
        if end and any(at and end <= _utc(at) <= end + _SOON for at in refused):
            best[key] = replace(f, signature=replace(f.signature, role="root", weight=_ENDED))


def _instant(text: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(text))
    except ValueError:
        return None


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _reached(ran: timedelta, limit: timedelta) -> bool:
    return bool(limit) and limit - ran <= max(_LEAD, limit * _CLOSE)


def _spans(best: Best, guesses: list[tuple[str, int]], log: JobLog) -> Iterator[tuple[timedelta, timedelta]]:
    """(time that the job had run, its limit): by the accounting, and by what the log shows."""
    for file in log.files:
        if file.kind == "sacct":
            yield from _accounted(file)
    asked = [found[1] for f in log.files for line in f.lines[:200] if (found := _ASKED.match(line.text))]
    limit = duration(asked[0]) if asked else None
    begun = [line.time for f in log.files if f.kind == "job" for line in f.lines if line.time]
    ended = [at for key in guesses if (at := best[key].line.time)]
    if limit and begun and ended:
        yield max(ended) - min(begun), limit


def _accounted(file: LogFile) -> Iterator[tuple[timedelta, timedelta]]:
    rows = [line.text.split("|") for line in file.lines if "|" in line.text]
    names = next((row for row in rows if "Elapsed" in row and "Timelimit" in row), None)
    for row in rows if names else ():
        told = dict(zip(names or (), row, strict=False))
        ran, limit = duration(told.get("Elapsed", "")), duration(told.get("Timelimit", ""))
        if ran and limit:
            yield ran, limit


def duration(text: str) -> timedelta | None:
    """Slurm's ways to write a time: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    parts = [int(part) for part in found["parts"].split(":")]
    if found["days"]:
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return timedelta(days=int(found["days"]), hours=hours, minutes=minutes, seconds=seconds)
    if len(parts) == 3:
        return timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
    return timedelta(minutes=parts[0], seconds=parts[1] if len(parts) == 2 else 0)
