"""An incident beside its result: what was said of it, as text, markdown and JSON. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from triage.cli.resolving import outcome_json
from triage.store.values import StoredIncident, Verdict
from triage.text import printable


def as_json(found: StoredIncident) -> dict[str, Any]:
    """The stored result, and under `record` what the database knows besides."""
    return {**found.result, "record": {"outcomes": [outcome_json(v) for v in found.verdicts]}}


def heading(found: StoredIncident, markdown: bool) -> str:
    """Which incident this is; the result itself says what it was."""
    s, job = found.summary, found.job
    parts = [f"Incident {s.id}", f"recorded {s.created_at:%Y-%m-%d %H:%M} UTC by triage {found.tool_version}"]
    if job:
        parts.append("job " + printable(" ".join(p for p in (job.external_id, job.name and f"({job.name})") if p)))
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
