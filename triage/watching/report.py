"""A status as one JSON object, and as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from triage.redact import redact
from triage.watching.loop import Told
from triage.watching.values import Status, Suspect
from triage.watching.words import span

SCHEMA = "triage.watch/1"


def as_json(target: str, told: Told, when: datetime | None = None) -> dict[str, Any]:
    status = told.status
    return {
        "schema": SCHEMA,
        "time": (when or datetime.now(UTC)).isoformat(timespec="seconds"),
        "target": target,
        "state": status.state,
        "news": told.news,
        "words": [redact(word) for word in status.words],
        "suspects": [_suspect(suspect) for suspect in status.suspects],
        "quiet_seconds": round(status.quiet, 1),
        "limit_seconds": round(status.limit, 1),
        "phase": status.phase or None,
        "step": status.step,
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    return {
        "rank": suspect.rank,
        "node": suspect.node or None,
        "pid": suspect.pid,
        "cause": suspect.cause,
        "why": redact(suspect.why),
    }


def as_text(target: str, told: Told, when: datetime | None = None) -> str:
    status = told.status
    clock = (when or datetime.now(UTC)).strftime("%H:%M:%S")
    first, *more = [redact(word) for word in status.words] or [_plain(status)]
    step = f" (step {status.step})" if status.step is not None else ""
    lines = [f"{clock} {target}: {'HUNG' if status.state == 'hung' else status.state}{step}: {first}"]
    lines += [f"         {word}" for word in more]
    lines += [f"         suspect: {redact(suspect.why)}" for suspect in status.suspects]
    if status.state == "hung" and not status.suspects:
        lines.append("         no rank stands out by its process state: their stacks will tell (py-spy)")
    return "\n".join(lines)


def _plain(status: Status) -> str:
    return f"nothing moved for {span(status.quiet)}" if status.quiet else "no sign of progress yet"
