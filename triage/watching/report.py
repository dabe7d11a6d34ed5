"""A status as one JSON object, and as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from triage.redact import redact
from triage.watching.loop import Told
from triage.watching.values import Status, Suspect
from triage.watching.words import span

SCHEMA = "triage.watch/1"
_SAID = {"hung": "HUNG", "failed": "FAILED"}


def with_diagnosis(status: Status, diagnosis: dict[str, Any] | None) -> Status:
    """Where the processes blame nobody, whom the diagnosis of what was collected blames."""
    if status.suspects or not diagnosis:
        return status
    told = diagnosis["suspects"]
    node = told["nodes"][0] if len(told["nodes"]) == 1 else ""
    by = "by what was collected"
    if told["ranks"]:
        found = [Suspect("stacks", f"rank {rank}, {by}", rank, node) for rank in told["ranks"]]
    elif told.get("pids"):
        found = [Suspect("stacks", f"pid {pid}, {by}", None, node, pid) for pid in told["pids"]]
    else:
        found = [Suspect("stacks", f"node {name}, {by}", None, name) for name in told["nodes"]]
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
    since = told.at - timedelta(seconds=status.quiet) if status.state == "hung" else None
    return {
        "schema": SCHEMA,
        "time": told.at.isoformat(timespec="seconds"),
        "target": target,
        "state": status.state,
        "news": told.news,
        "words": [redact(word) for word in status.words],
        "problems": [redact(problem) for problem in problems],
        "suspects": [_suspect(suspect) for suspect in status.suspects],
        "since": since.isoformat(timespec="seconds") if since else None,
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


def as_text(document: dict[str, Any], collecting: str = "") -> str:
    """Of such an object, with `next`, its lines for a person. collecting: the folder that something is being collected into."""
    clock = document["time"][11:19]
    hung, of_cause = document["state"] == "hung", document["news"] == "cause"
    first, *more = document["words"] or [_plain(document)]
    step = f" (step {document['step']})" if document["step"] is not None else ""
    since = f" since {document['since'][11:19]}" if document["since"] else ""
    said = _SAID.get(document["state"], document["state"])
    if of_cause:
        lines = [f"{clock} {document['target']}: {said}{since}{step}, looked into:"]
    else:
        lines = [f"{clock} {document['target']}: {said}{since}{step}: {first}", *(f"         {word}" for word in more)]
    lines += [f"         suspect: {suspect['why']}" for suspect in document["suspects"]]
    lines += [f"         {problem}" for problem in document["problems"]]
    if diagnosis := document["diagnosis"]:
        lines.append(
            f"         diagnosis ({diagnosis['status']}, {diagnosis['failure_type']}): {diagnosis['root_cause']}"
        )
        if document["suspects"] and not any(_blames(diagnosis, suspect) for suspect in document["suspects"]):
            lines.append("         the diagnosis names none of the suspects: look at them before you act on it")
    if collecting:
        lines.append(f"         collecting stacks and states into {collecting}; more follows")
    elif hung and not document["suspects"] and not document["diagnosis"]:
        lines.append("         no process stands out by its state: the stacks tell more")
    if document["next"]:
        lines.append(f"         next: {document['next']}")
    return "\n".join(lines)


def _blames(diagnosis: dict[str, Any], suspect: dict[str, Any]) -> bool:
    told = diagnosis["suspects"]
    by_node = suspect["rank"] is None and suspect["pid"] is None and suspect["node"] in told["nodes"]
    return suspect["rank"] in told["ranks"] or suspect["pid"] in told.get("pids", ()) or by_node


def _plain(document: dict[str, Any]) -> str:
    quiet = document["quiet_seconds"]
    return f"nothing moved for {span(quiet)}" if quiet else "nothing seen yet"
