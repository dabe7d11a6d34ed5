"""A status as one JSON object, and as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from triage.redact import redact
from triage.watching.loop import Told
from triage.watching.values import Status, Suspect
from triage.watching.words import span

SCHEMA = "triage.watch/1"


def with_diagnosis(status: Status, diagnosis: dict[str, Any] | None) -> Status:
    """Where the processes blame nobody, whom the diagnosis of what was collected blames."""
    if status.suspects or not diagnosis:
        return status
    told = diagnosis["suspects"]
    node = told["nodes"][0] if len(told["nodes"]) == 1 else ""
    if told["ranks"]:
        found = [Suspect("stacks", f"rank {rank}, by what was collected", rank, node) for rank in told["ranks"]]
    else:
        found = [Suspect("stacks", f"node {name}, by what was collected", None, name) for name in told["nodes"]]
    return replace(status, suspects=tuple(found))


def as_json(
    target: str,
    told: Told,
    collected: str = "",
    diagnosis: dict[str, Any] | None = None,
    problems: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The object of docs/watch.md; collected, diagnosis: of the hang."""
    status = told.status
    return {
        "schema": SCHEMA,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": target,
        "state": status.state,
        "news": told.news,
        "words": [redact(word) for word in (*status.words, *problems)],
        "suspects": [_suspect(suspect) for suspect in status.suspects],
        "quiet_seconds": round(status.quiet, 1),
        "limit_seconds": round(status.limit, 1),
        "phase": status.phase or None,
        "step": status.step,
        "collected": collected or None,
        "diagnosis": diagnosis,
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    return {
        "rank": suspect.rank,
        "node": suspect.node or None,
        "pid": suspect.pid,
        "cause": suspect.cause,
        "why": redact(suspect.why),
    }


def as_text(document: dict[str, Any]) -> str:
    """Of such an object, its lines for a person."""
    clock = document["time"][11:19]
    first, *more = document["words"] or [_plain(document)]
    step = f" (step {document['step']})" if document["step"] is not None else ""
    hung = document["state"] == "hung"
    lines = [f"{clock} {document['target']}: {'HUNG' if hung else document['state']}{step}: {first}"]
    lines += [f"         {word}" for word in more]
    lines += [f"         suspect: {suspect['why']}" for suspect in document["suspects"]]
    if hung and not document["suspects"]:
        lines.append("         no rank stands out by its process state: stacks will tell")
    if diagnosis := document["diagnosis"]:
        lines.append(
            f"         diagnosis ({diagnosis['status']}, {diagnosis['failure_type']}): {diagnosis['root_cause']}"
        )
    if document["collected"]:
        lines.append(f"         next: triage hang {document['collected']}")
    return "\n".join(lines)


def _plain(document: dict[str, Any]) -> str:
    quiet = document["quiet_seconds"]
    return f"nothing moved for {span(quiet)}" if quiet else "no sign of progress yet"
