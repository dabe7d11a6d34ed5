"""A list of incidents as text that fits a terminal, as markdown, as JSON. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from triage.store.values import IncidentSummary
from triage.text import printable

SCHEMA = "triage.incidents/1"
HEAD = ("ID", "RECORDED (UTC)", "OUTCOME", "TYPE", "CAUSE")
SHORTEST_CAUSE = 12


def as_json(found: Sequence[IncidentSummary]) -> dict[str, Any]:
    return {"schema": SCHEMA, "incidents": [_object(s) for s in found]}


def _object(summary: IncidentSummary) -> dict[str, Any]:
    last = summary.last_seen or summary.created_at
    times = {"created_at": summary.created_at.isoformat(), "last_seen": last.isoformat()}
    return {**dataclasses.asdict(summary), **times, "nodes": list(summary.nodes)}


def as_text(found: Sequence[IncidentSummary], width: int | None) -> str:
    """One line an incident; the last column takes what is left of the width, or all that it needs where that is None."""
    rows = [HEAD, *map(_cells, found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD) - 1)]
    left = None if width is None else max(width - sum(widths) - 2 * len(widths), SHORTEST_CAUSE)
    return "".join(_line(row, widths, left) + "\n" for row in rows)


def _line(row: tuple[str, ...], widths: Sequence[int], left: int | None) -> str:
    number, *middle, cause = row
    cells = [number.rjust(widths[0]), *(cell.ljust(w) for cell, w in zip(middle, widths[1:], strict=True))]
    return "  ".join([*cells, cause if left is None or len(cause) <= left else cause[: left - 3] + "..."]).rstrip()


def as_markdown(found: Sequence[IncidentSummary]) -> str:
    rows = [tuple(name.capitalize() for name in HEAD[2:]), *(_cells(s)[2:] for s in found)]
    head = ("Incident", "Recorded (UTC)", *rows[0])
    lines = [head, ("---",) * len(head), *(_cells(s)[:2] + row for s, row in zip(found, rows[1:], strict=True))]
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in lines)


def _cell(text: str) -> str:
    """Nothing in a title acts as markup or ends the cell."""
    return "".join("\\" + char if char in "\\|`*_[]<>" else char for char in text)


def _cells(s: IncidentSummary) -> tuple[str, ...]:
    kind = s.true_type or s.failure_type
    mark = {"confirmed": "", "none": ""}.get(s.verdict, f" ({s.verdict})")
    times = f" x{s.attempts}" if s.attempts > 1 else ""
    return (str(s.id), f"{s.created_at:%Y-%m-%d %H:%M}", s.outcome, kind + mark, printable(s.title) + times)
