"""Learned signatures as text for a terminal, and as JSON. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from triage.cli.kb_view import wrapped
from triage.cli.rules_view import cut, iso, stamp
from triage.domain import LearnedSignature
from triage.store.values import RuleEvent
from triage.text import how_many, printable

if TYPE_CHECKING:
    from triage.cli.signatures import Learnt

HEAD = ("SIGNATURE", "STATE", "INCIDENT", "CONFIRMED", "TYPE", "PATTERN")
_NUMBERS = (2, 3)  # columns
_SHORTEST_PATTERN = 16
NOTHING = "no signature was learned"


def as_list(found: Sequence[LearnedSignature], width: int) -> str:
    """One line a signature; the last column takes what is left of the width."""
    rows = [HEAD, *map(_cells, found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD) - 1)]
    left = max(width - sum(widths) - 2 * len(widths), _SHORTEST_PATTERN)
    return "".join(_line(row, widths, left) + "\n" for row in rows)


def _cells(learned: LearnedSignature) -> tuple[str, ...]:
    return (
        learned.id,
        learned.state,
        str(learned.incident or "-"),
        str(learned.confirmed),
        learned.signature.failure_type,
        printable(learned.pattern),
    )


def _line(row: tuple[str, ...], widths: Sequence[int], left: int) -> str:
    cells = [
        cell.rjust(w) if at in _NUMBERS else cell.ljust(w)
        for at, (cell, w) in enumerate(zip(row, widths, strict=False))
    ]
    return "  ".join([*cells, cut(row[-1], left)]).rstrip()


def as_text(
    learned: LearnedSignature, history: Sequence[RuleEvent], incidents: Sequence[tuple[int, str]], width: int
) -> str:
    """Everything that is known of a signature. incidents: those whose outcome spoke of it, with what each said."""
    return "\n".join(_text(learned, history, incidents, width)) + "\n"


def _text(
    learned: LearnedSignature, history: Sequence[RuleEvent], incidents: Sequence[tuple[int, str]], width: int
) -> Iterator[str]:
    signature, origin = learned.signature, learned.origin
    yield f"{learned.id}  {learned.state}"
    yield from wrapped(printable(signature.title), width, "")
    yield from ("", "Pattern:", f"  {printable(learned.pattern)}", "")
    yield f"Type: {signature.failure_type} ({signature.root_cause_class})"
    if signature.remedy:
        yield from wrapped(f"Remedy: {printable(signature.remedy)}", width, "", "  ")
    if learned.reason:
        yield from wrapped(f"Why {learned.state}: {printable(learned.reason)}", width, "", "  ")
    said = ", ".join(f"incident {incident} {verdict}" for incident, verdict in incidents)
    yield from wrapped(f"Outcomes: {said or 'none'}", width, "", "  ")
    if learned.expires:
        yield f"Expires: {stamp(learned.expires)}"
    of = f"incident {learned.incident}" if learned.incident else "an incident that was forgotten"
    model = f" {origin.model}" if origin.model else ""
    on = f" on {stamp(learned.created)}" if learned.created else ""
    by = f", as {learned.who} said what it was" if learned.who else ""
    yield from wrapped(printable(f"Learned from: {of}{on}{by}; pattern {_written(origin.by)}{model}"), width, "", "  ")
    for prompt in origin.prompts:
        yield from wrapped(f"Prompt: {prompt.name} {prompt.version} ({prompt.sha256[:12]})", width, "", "  ")
    if learned.approved_by:
        yield f"Approved by: {printable(learned.approved_by)}"
    yield from ("", "Meant for:", *(f"  {printable(line)}" for line in origin.lines))
    yield from ("", "History:")
    for event in history:
        change = f"{event.before} -> {event.after}" if event.before else event.after
        why = f"; {event.reason}" if event.reason else ""
        yield from wrapped(
            printable(f"{stamp(event.at)}, {event.what} by {event.who}: {change}{why}"), width, "  ", "      "
        )


def _written(by: str) -> str:
    return {"model": "written by the model", "user": "given by a person"}.get(by, "made from the line")


def summary(learned: LearnedSignature) -> dict[str, Any]:
    signature = learned.signature
    return {
        "id": learned.id,
        "state": learned.state,
        "pattern": learned.pattern,
        "title": signature.title,
        "failure_type": signature.failure_type,
        "root_cause_class": signature.root_cause_class,
        "role": signature.role,
        "remedy": signature.remedy,
        "reason": learned.reason,
        "incident": learned.incident,
        "confirmed": learned.confirmed,
        "contradicted": learned.contradicted,
        "created": iso(learned.created),
        "expires": iso(learned.expires),
        "approved_by": learned.approved_by,
        "source": learned.origin.by,
    }


def document(
    learned: LearnedSignature, history: Sequence[RuleEvent], incidents: Sequence[tuple[int, str]]
) -> dict[str, Any]:
    """A signature with all that is known of it."""
    return {
        **summary(learned),
        "who": learned.who,
        "outcomes": [{"incident": incident, "verdict": verdict} for incident, verdict in incidents],
        "origin": dataclasses.asdict(learned.origin),
        "history": [dataclasses.asdict(event) | {"at": event.at.isoformat()} for event in history],
    }


def told(learnt: Learnt, needed: int) -> list[str]:
    """What came of an outcome, in lines. needed: confirmed incidents that put a signature in force."""
    said = [f"{moved.id} is {moved.state}: {printable(moved.reason)}" for moved in learnt.moved]
    found = learnt.signature
    if found is None:
        reason = f"{NOTHING} ({learnt.check.check}): {printable(learnt.check.reason)}"
        return said if learnt.covered and said else [*said, reason]
    pattern = printable(found.pattern)
    if not found.id:
        return [*said, f"it would be a candidate: {pattern}"]
    if found.state != "candidate":
        return [*said, f"{found.id} is {found.state}: {printable(found.reason)}"]
    if found.origin.by == "model":
        return [
            *said,
            f"{found.id} is a candidate that the model wrote, in force by triage rules approve {found.id}: {pattern}",
        ]
    more = how_many(needed - found.confirmed, "more confirmed incident")
    return [*said, f"{found.id} is a candidate, in force after {more} or by triage rules approve {found.id}: {pattern}"]


def learnt_json(learnt: Learnt) -> dict[str, Any]:
    return {
        "signature": summary(learnt.signature) if learnt.signature else None,
        "verification": dataclasses.asdict(learnt.check),
        "covered": learnt.covered,
        "moved": [summary(moved) for moved in learnt.moved],
    }
