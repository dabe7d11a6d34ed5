"""A recovery plan as text, markdown and JSON. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triage.chat.said import refuted
from triage.recover.step import Plan, Step
from triage.recovering.steps import Done
from triage.redact import redact
from triage.store.actions import Action
from triage.store.values import StoredIncident
from triage.text import excerpt, printable

SCHEMA = "triage.recovery/1"
WIDTH = 110


def render(of: StoredIncident, made: Plan, earlier: Sequence[Action], done: Sequence[Done] | None, chosen: str) -> str:
    """earlier: what triage did for the incident so far; done: what became of each step, None where nothing was run."""
    if chosen == "json":
        return json.dumps(_document(of, made, earlier, done), ensure_ascii=False)
    lines = _lines(of, made, earlier, done, chosen == "markdown")
    return "\n".join(lines)


def _document(of: StoredIncident, made: Plan, earlier: Sequence[Action], done: Sequence[Done] | None) -> dict[str, Any]:
    became = {id(one.step): one for one in done or ()}
    return {
        "schema": SCHEMA,
        "incident": of.id,
        "failure_type": of.result.get("failure_type"),
        "cited": [{name: e.get(name) for name in ("id", "file", "line", "text")} for e in _cited(of, made)],
        "dry_run": done is None,
        "verdict": made.verdict,
        "restart": made.restart,
        "steps": [_step(step, became.get(id(step))) for step in made.steps],
        "notes": list(made.notes),
        "actions": [_action(action) for action in earlier],
    }


def _step(step: Step, became: Done | None) -> dict[str, Any]:
    told = {
        "kind": step.kind,
        "what": step.what,
        "why": step.why,
        "risk": step.risk,
        "command": list(step.argv) or None,
        "undo": step.undo or None,
        "evidence": list(step.evidence),
        "incidents": list(step.incidents),
    }
    return told | ({"state": became.state, "exit_code": became.code, "output": redact(became.output)} if became else {})


def _action(action: Action) -> dict[str, Any]:
    return {
        "kind": action.kind,
        "what": action.what,
        "command": list(action.argv),
        "risk": action.risk,
        "who": action.who,
        "at": action.started_at.isoformat() if action.started_at else None,
        "ended": action.ended_at.isoformat() if action.ended_at else None,
        "exit_code": action.exit_code,
    }


def _cited(of: StoredIncident, made: Plan) -> list[Mapping[str, Any]]:
    """The lines that the steps rest on."""
    ids = {name for step in made.steps for name in step.evidence}
    return [e for e in of.result.get("evidence", []) if e.get("id") in ids]


def _lines(
    of: StoredIncident, made: Plan, earlier: Sequence[Action], done: Sequence[Done] | None, markdown: bool
) -> list[str]:
    title = f"Recovery of incident {of.id}"
    lines = [f"# {title}", "", made.verdict, ""] if markdown else [title, *_wrapped(made.verdict, "  "), ""]
    lines += _failed(of, made, markdown)
    became = {id(one.step): one for one in done or ()}
    for number, step in enumerate(made.steps, 1):
        lines += _of_step(number, step, became.get(id(step)), markdown)
    if made.notes:
        lines += ["", "## Notes" if markdown else "Notes"]
        lines += [
            part
            for note in made.notes
            for part in (_wrapped(note, "- ", "  ") if markdown else _wrapped(note, "  - ", "    "))
        ]
    if earlier and done is None:
        lines += [
            "",
            "## Done before" if markdown else "Done before",
            *(f"  - {_brief(action)}" for action in earlier[-10:]),
        ]
    return lines


def _failed(of: StoredIncident, made: Plan, markdown: bool) -> Iterator[str]:
    """What the plan is made against, and by which lines that is known."""
    told = f"{'triage said ' if refuted(of) else ''}{of.summary.outcome}: {of.summary.failure_type} ({of.summary.status}), {of.summary.title}"
    yield from _wrapped(printable(told), "" if markdown else "  ")
    for e in _cited(of, made):
        place, text = (
            printable(f"{e.get('id')} {e.get('file')}:{e.get('line')}"),
            excerpt(printable(str(e.get("text"))), None, 240),
        )
        yield from (["", f"- {place}", "", f"      {text}"] if markdown else [f"  {place}", *_wrapped(text, "     | ")])
    yield ""


def _of_step(number: int, step: Step, became: Done | None, markdown: bool) -> Iterator[str]:
    cited = f" [{', '.join(step.evidence)}]" if step.evidence else ""
    before = f" (incidents {', '.join(step.incidents)})" if step.incidents else ""
    state = f"{became.state.upper()}: " if became else ""
    head = f"{number}. {state}{printable(step.what)} ({step.risk})"
    yield from ([head] if markdown else _wrapped(head, "", "   "))
    if step.argv:
        yield f"   `{printable(step.command)}`" if markdown else f"   $ {printable(step.command)}"
    yield from _wrapped(f"why: {printable(step.why)}{cited}{before}", "   ", "        ")
    if step.undo:
        yield from _wrapped(f"undo: {printable(step.undo)}", "   ", "         ")
    if became and became.state in ("done", "failed", "held back"):
        if became.state != "held back":
            yield f"   exit code {became.code}" if became.code is not None else "   it did not end by itself"
        yield from (f"   | {printable(line)}" for line in redact(became.output).splitlines()[-8:])


def _brief(action: Action) -> str:
    at = f"{action.started_at:%Y-%m-%d %H:%M} UTC" if action.started_at else ""
    ended = (
        "exit code " + str(action.exit_code)
        if action.exit_code is not None
        else "no exit code"
        if action.ended_at
        else "not ended"
    )
    undo = f"; undo: {action.undo}" if action.undo and action.exit_code == 0 else ""
    return printable(f"{at} {action.what} by {action.who}: {ended}{undo}")


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    """Commands in a text stay in one piece."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]
