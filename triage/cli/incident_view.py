"""An incident beside its result: what was said of it, as text, markdown and JSON. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from triage.cli.resolving import outcome_json
from triage.domain import Seen
from triage.store.values import StoredIncident, Verdict
from triage.text import how_many, printable

_FIRST, _LAST = 3, 7  # attempts, or readings, that are listed


def as_json(found: StoredIncident) -> dict[str, Any]:
    """The stored result, and under `record` what the database knows besides."""
    s = found.summary
    record = {
        "version": found.version,
        "first_seen": _time(s.created_at),
        "last_seen": _time(s.last_seen or s.created_at),
        "owner": s.owner,
        "kb_version": found.kb_version,
        "same_failure": _seen(found.seen),
        "attempts": [{**asdict(a), "recorded_at": _time(a.recorded_at)} for a in found.attempts],
        "versions": [{**asdict(v), "at": _time(v.at)} for v in found.versions],
        "outcomes": [outcome_json(v) for v in found.verdicts],
        "feedback": [{**asdict(f), "at": _time(f.at)} for f in found.feedback],
    }
    return {**found.result, "record": record}


def _seen(seen: Seen | None) -> dict[str, Any] | None:
    return {**asdict(seen), "first": _time(seen.first), "last": _time(seen.last)} if seen else None


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def heading(found: StoredIncident, markdown: bool) -> str:
    """Which incident this is; the result itself says what it was."""
    s, job = found.summary, found.job
    by = next((f"{printable(v.recorded_by)} with " for v in found.versions[:1] if v.recorded_by), "")
    parts = [f"Incident {s.id}", f"recorded {s.created_at:%Y-%m-%d %H:%M} UTC by {by}triage {found.tool_version}"]
    if job:
        names = (job.external_id, job.name and f"({job.name})", s.owner and f"of {s.owner}")
        parts.append("job " + printable(" ".join(filter(None, names))))
    if found.version > 1:
        parts.append(f"diagnosis {found.version}")
    parts += [f"{v.verdict} by {printable(v.who)}" for v in found.verdicts[-1:]]
    return f"_{', '.join(parts)}_\n\n" if markdown else f"{', '.join(parts)}\n\n"


def outcomes(found: StoredIncident, width: int, markdown: bool) -> str:
    """What turned out, oldest first; "" where nobody said it."""
    if not found.verdicts:
        return ""
    lines = ["## What turned out", ""] if markdown else ["What turned out"]
    for verdict in found.verdicts:
        first, *rest = _lines(verdict)
        if markdown:
            lines += [f"- {_escaped(first)}", *(f"  - {_escaped(line)}" for line in rest)]
        else:
            lines += textwrap.wrap(first, width, initial_indent="  ", subsequent_indent="    ")
            for line in rest:
                lines += textwrap.wrap(line, width, initial_indent="    ", subsequent_indent="      ")
    return "\n".join(lines) + "\n\n"


def history(found: StoredIncident, width: int, markdown: bool) -> str:
    """Its attempts, its readings and how often the same failure was seen, as far as there is more than this one."""
    told = list(_history(found))
    if not told:
        return ""
    if markdown:
        return "\n".join(["## Seen", "", *(f"- {_escaped(line)}" for line in told)]) + "\n\n"
    wrapped = [
        part for line in told for part in textwrap.wrap(line, width, initial_indent="  ", subsequent_indent="    ")
    ]
    return "\n".join(["Seen", *wrapped]) + "\n\n"


def _history(found: StoredIncident) -> Iterator[str]:
    if len(found.attempts) > 1:
        yield from _shortened(list(_attempts(found)))
    if len(found.versions) > len(found.attempts):
        yield from _shortened(list(_readings(found)))
    seen = found.seen
    if seen and seen.same_job + seen.other_jobs > len(found.attempts):
        times = f"{how_many(seen.same_job, 'time')} in this job, {how_many(seen.other_jobs, 'time')} in others"
        yield f"the same failure: {times}, first {seen.first:%Y-%m-%d}, last {seen.last:%Y-%m-%d}"


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    """An array may have thousands of tasks, and the diagnosis comes after them."""
    left_out = len(lines) - _FIRST - _LAST
    if left_out <= 1:
        yield from lines
        return
    yield from lines[:_FIRST]
    yield f"... {left_out:,} more (--format json has all)"
    yield from lines[-_LAST:]


def _attempts(found: StoredIncident) -> Iterator[str]:
    for a in found.attempts:
        job = f", job {printable(a.external_id)}" if a.external_id else ""
        step = f", last step {a.last_step}" if a.last_step is not None else ""
        yield f"attempt {a.number}: {a.recorded_at:%Y-%m-%d %H:%M} UTC{job}{step}"


def _readings(found: StoredIncident) -> Iterator[str]:
    for v in found.versions:
        yield f"diagnosis {v.version} of attempt {v.attempt}: {v.at:%Y-%m-%d %H:%M} UTC, {v.failure_type} ({v.status}) by {printable(v.produced_by)}"


def _lines(v: Verdict) -> Iterator[str]:
    of = f" of diagnosis {v.version}" if v.version > 1 else ""
    yield f"{v.at:%Y-%m-%d %H:%M} UTC: {v.verdict}{of} by {printable(v.who)} ({printable(v.via)})"
    labels = ", ".join(filter(None, (v.failure_type, v.root_cause_class)))
    if labels and v.verdict != "confirmed":
        yield f"it was: {labels}"
    if v.cause:
        yield f"cause: {_one_line(v.cause)}"
    if v.fix:
        worked = {"yes": "worked", "no": "did not work"}.get(v.worked, "not known whether it worked")
        yield f"fix ({worked}): {_one_line(v.fix)}"
    if v.note:
        yield f"note: {_one_line(v.note)}"


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _escaped(text: str) -> str:
    return "".join("\\" + char if char in "\\`*_[]<>" else char for char in text)
