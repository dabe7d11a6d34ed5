"""The clocks of a job's files against each other: time zones and skew, estimated from events that several files tell. Pure.

The clock of the main log of the job stays as it is; all others are brought to it. An offset of whole quarter hours on
which shared events agree is a time zone; what is left over is skew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median, median_low

from triage.domain import ClockNote, JobLog, LogFile
from triage.evidence import zones
from triage.evidence.marks import Mark, marks
from triage.text import how_many

QUARTER = 900.0
HALF = 1800.0
WIDEST = 26 * 3600.0  # between the first zone of the day and the last
CLOSE = 5.0  # seconds: a mark within which both files print one event
LOOSE = 20.0  # seconds: beyond it only half hours can be told
DRIFT = 60.0  # seconds that a clock may be off beside its zone
LEAST_SKEW = 1.0  # many stamps count whole seconds
LINES, FEWEST = 8_000, 12  # lines looked at in all files and at least in each, at either end
ENOUGH = 3  # marks that speak for a skew when none of them is exact
_ZONED = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?UTC| ?[+-]\d\d:?\d\d)(?![\w:])|^<?\d{0,3}>?\[?\d{10}\.\d{3}")
_LOOKED_AT = 40


@dataclass(frozen=True, slots=True)
class Aligned:
    """The log with all times on the clock of its main file, and what was found, in words. offsets: seconds ahead, by file."""

    log: JobLog
    notes: tuple[ClockNote, ...] = ()
    offsets: Mapping[str, float] | None = None
    guessed: Mapping[str, str] = field(default_factory=dict)  # files whose zone is only a guess, and what is said of it


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a clock is ahead, in seconds. events: how many shared ones say so."""

    zone: float
    skew: float
    events: int

    @property
    def total(self) -> float:
        return self.zone + self.skew


def align(log: JobLog) -> Aligned:
    """Brings the times of all files to the clock of the main one, as far as shared events tell; else a node's by whole hours."""
    told = {f.name: found for f in log.files if (found := marks(f, max(FEWEST, LINES // len(log.files))))}
    main = _main(log.files, told)
    if main is None or len(log.files) < 2:
        return Aligned(log)
    files = {f.name: f for f in log.files}
    main, offsets = _usual(main, _offsets(main.name, told), files)
    moved = {name: o for name, o in offsets.items() if o.total}
    guesses = _guesses(log.files, main, offsets)
    by = {name: o.total for name, o in moved.items()} | {name: g.ahead for name, g in guesses.items()}
    shifted = tuple(_moved(f, by[f.name]) if f.name in by else f for f in log.files)
    notes = (*_notes(main, moved, files), *guesses.values())
    return Aligned(replace(log, files=shifted), notes, by, {name: g.said for name, g in guesses.items()})


def _guesses(files: Sequence[LogFile], main: LogFile, known: Mapping[str, Offset]) -> dict[str, ClockNote]:
    job = [f for f in files if f.kind == "job"]
    return {
        f.name: zones.note(f, describe(f), main.name, hours)
        for f in files
        if f.kind in ("kernel", "fabric") and f.name not in known and not (names_zone(f) and names_zone(main))
        if (hours := zones.guessed(f, job))
    }


def _usual(
    main: LogFile, offsets: dict[str, Offset], files: Mapping[str, LogFile]
) -> tuple[LogFile, dict[str, Offset]]:
    """Where most of the job's files go alike and the main one does not, it is the main one that is off."""
    own = [o for name, o in offsets.items() if files[name].kind == "job" and not o.zone]
    skew = median_low([o.skew for o in own])
    like = [name for name, o in offsets.items() if abs(o.skew - skew) < LEAST_SKEW and files[name].kind == "job"]
    if abs(skew) < LEAST_SKEW or len(like) * 2 <= len(own) or main.name in like:
        return main, offsets
    events = max(o.events for o in own)
    brought = {n: Offset(o.zone, _large(o.skew - skew), o.events or events) for n, o in offsets.items()}
    return files[like[0]], brought


def _large(skew: float) -> float:
    return round(skew, 1) if abs(skew) >= LEAST_SKEW else 0.0


def _notes(main: LogFile, moved: Mapping[str, Offset], files: Mapping[str, LogFile]) -> tuple[ClockNote, ...]:
    """One for all files whose clocks are off alike."""
    alike: dict[tuple[float, int], list[str]] = {}
    for name, offset in moved.items():
        alike.setdefault((offset.zone, round(offset.skew)), []).append(name)
    return tuple(_note([files[n] for n in names], main, moved[names[0]]) for names in alike.values())


def _main(files: Sequence[LogFile], told: Mapping[str, object]) -> LogFile | None:
    """The file whose clock all times are told in: the job's own with the most lines."""
    return max((f for f in files if f.kind == "job" and f.name in told), key=lambda f: f.lines_in, default=None)


def _offsets(main: str, told: Mapping[str, Sequence[Mark]]) -> dict[str, Offset]:
    """Of each file that shares events with the main one, or with one that does."""
    known: dict[str, list[tuple[datetime, float]]] = {}
    found = {main: Offset(0.0, 0.0, 0)}
    _add(known, told[main], 0.0)
    left = [name for name in told if name != main]
    while left:
        placed = [(name, o) for name in left if (o := estimate(told[name], known)) is not None]
        if not placed:
            break
        for name, offset in placed:
            found[name] = offset
            _add(known, told[name], offset.total)
        left = [name for name in left if name not in found]
    return found


def _add(known: dict[str, list[tuple[datetime, float]]], found: Iterable[Mark], offset: float) -> None:
    for mark in found:
        known.setdefault(mark.event, []).append((mark.time - timedelta(seconds=offset), mark.within))


def estimate(found: Sequence[Mark], known: Mapping[str, Sequence[tuple[datetime, float]]]) -> Offset | None:
    """How far these marks are ahead of the known ones; None when they share no event."""
    shared = [
        (
            median((m.time - at).total_seconds() for at, _ in known[m.event]),
            max(m.within, *(w for _, w in known[m.event])),
        )
        for m in found
        if m.event in known
    ]
    if not shared:
        return None
    zone = _zone(shared)
    near = [(ahead - zone, within) for ahead, within in shared if abs(ahead - zone) <= max(within, DRIFT)]
    return Offset(zone, _skew(near), len(near) or len(shared))


def _zone(shared: Sequence[tuple[float, float]]) -> float:
    """The whole quarter hours that most events are apart by; events told loosely speak only together, or for whole hours."""
    votes: Counter[float] = Counter()
    for ahead, within in shared:
        step = QUARTER if within <= LOOSE else HALF
        steps = round(ahead / step) * step
        if abs(ahead - steps) <= within + DRIFT and abs(steps) <= WIDEST:
            votes[steps] += 1
    if not votes:
        return 0.0
    zone, agree = votes.most_common(1)[0]
    exact = any(within <= CLOSE and abs(ahead - zone) <= DRIFT for ahead, within in shared)
    alone = agree == 1 and not exact and zone % (2 * HALF)
    return 0.0 if alone or agree * 2 <= len(shared) else zone


def _skew(near: Sequence[tuple[float, float]]) -> float:
    """The robust middle of what events printed at one moment are apart by; 0 where they do not agree."""
    exact = [ahead for ahead, within in near if within <= 1.0]
    close = exact or [ahead for ahead, within in near if within <= DRIFT]
    if len(close) < (1 if exact else ENOUGH):
        return 0.0
    middle = median(close)
    spread = median(abs(ahead - middle) for ahead in close)
    return round(middle, 1) if abs(middle) >= LEAST_SKEW and spread <= max(0.5, abs(middle) / 3) else 0.0


def _moved(file: LogFile, ahead: float) -> LogFile:
    shift = timedelta(seconds=ahead)
    lines = tuple(replace(line, time=line.time - shift) if line.time else line for line in file.lines)
    return replace(file, lines=lines)


def names_zone(file: LogFile) -> bool:
    """Do the stamps of most lines say their zone?"""
    timed = [line for line in file.lines if line.time][:_LOOKED_AT]
    return sum(bool(_ZONED.search(line.text[:120])) for line in timed) * 2 > len(timed)


def _note(found: Sequence[LogFile], main: LogFile, offset: Offset) -> ClockNote:
    file, more = found[0], len(found) - 1
    events = f"{how_many(offset.events, 'event')} that both tell"
    lie, agree = ("lies", "agrees") if offset.events == 1 else ("lie", "agree")
    what = describe(file) + (f" (and alike of {how_many(more, 'other file')})" if more else "")
    parts = []
    if offset.zone:
        apart = _span(offset.zone)
        if names_zone(main) and not names_zone(file):
            parts.append(
                f"{what} names no time zone and is read as {_utc(offset.zone)}, because {events} {lie} {apart} apart"
            )
        elif names_zone(file) and not names_zone(main):
            parts.append(
                f"{what} names its time zone, {main.name} does not and is read as {_utc(-offset.zone)}, because {events} {lie} {apart} apart"
            )
        else:
            parts.append(
                f"{what} is {apart} {_side(offset.zone)} {main.name}: another time zone, because {events} {agree} on it"
            )
    if offset.skew:
        by = "" if parts else f" (by {events})"
        parts.append(
            f"{'its clock' if parts else f'the clock of {what}'} is {abs(offset.skew):.1f} s {_side(offset.skew)} that of {main.name}{by}"
        )
    return ClockNote(tuple(f.name for f in found), "; ".join(parts), offset.total, offset.zone)


def describe(file: LogFile) -> str:
    """`kernel log of gpu-07 (dmesg.txt)`, or the name of the file."""
    words = {"kernel": "kernel log", "slurm": "Slurm log", "sacct": "accounting", "fabric": "fabric log"}.get(
        file.kind, ""
    )
    node = node_of_file(file)
    if not words and not node:
        return file.name
    return f"the {words or 'log'}{f' of {node}' if node else ''} ({file.name})"


def node_of_file(file: LogFile) -> str | None:
    """The node that a file is of: by its name, or since all lines of a kernel log name it."""
    if file.node or file.kind != "kernel":
        return file.node
    named = {line.node for line in file.lines if line.node}
    return named.pop() if len(named) == 1 else None


def _utc(seconds: float) -> str:
    minutes = round(abs(seconds) / 60)
    part = f":{minutes % 60:02d}" if minutes % 60 else ""
    return f"UTC{'+' if seconds >= 0 else '-'}{minutes // 60}{part}" if minutes else "UTC"


def _span(seconds: float) -> str:
    hours, minutes = divmod(round(abs(seconds) / 60), 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)


def _side(seconds: float) -> str:
    return "ahead of" if seconds > 0 else "behind"
