"""What a model is told of all incidents, and the tools by which it looks among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triage.agents.tools.kit import Found, Tool, ToolError, tool
from triage.chat import on_history
from triage.chat.ground import Ground
from triage.chat.told import CHARS_PER_TOKEN, blocks
from triage.chat.turn import Brief
from triage.chat.values import Event, Text
from triage.domain import LogLine
from triage.errors import TriageError
from triage.store.chat_values import StoredTurn
from triage.store.values import Filters, IncidentSummary
from triage.taxonomy import Taxonomy

if TYPE_CHECKING:
    from triage.store.incidents import IncidentStore

PLACE = "incident"  # stands where the name of a file does: an incident is cited as incident:12
_NEWEST, _FOUND = 20, 30
_SHARES = {"counts": 0.2, "incidents": 0.3, "known": 0.2, "conversation": 0.2}


@dataclass(frozen=True, slots=True)
class HistoryDesk:
    """What is looked into."""

    incidents: IncidentStore
    labels: Taxonomy


def brief_of_history(desk: HistoryDesk, said: str, turns: Sequence[StoredTurn], known: Sequence[Event]) -> Brief:
    """Errors: StoreError."""
    newest = desk.incidents.list(limit=_NEWEST)
    counts = "".join(e.text for e in on_history.stats(desk.incidents, Filters()) if isinstance(e, Text))
    ground = Ground(well=True)
    ground.show(map(_as_line, newest), [counts, *(e.text for e in known if isinstance(e, Text))])
    ground.asked.add(said)
    told = {
        "counts": counts,
        "incidents": "\n".join(f"{PLACE}:{s.id} {on_history.told(s)}" for s in newest),
        "known": "".join(e.text for e in known if isinstance(e, Text)),
    }
    return Brief(
        "chat-history",
        "chat-history-question",
        lambda room: blocks(told, said, turns, int(room * CHARS_PER_TOKEN), _SHARES),
        ground,
        known,
        list(_tools(desk)),
        nothing="no incident",
    )


def _as_line(s: IncidentSummary) -> LogLine:
    return LogLine(PLACE, s.id, on_history.told(s))


def _tools(desk: HistoryDesk) -> Iterator[Tool]:
    text = "string"
    filters = "such as: type=ecc-error node=gpu-017 user=ada job=4711 outcome=hung verdict=none since=7d until=2026-01-31 WORDS"

    def of(run: Callable[[Filters], Found]) -> Callable[[Mapping[str, Any]], Found]:
        def found(asked: Mapping[str, Any]) -> Found:
            try:
                return run(on_history.filters(asked.get("filters", ""), desk.labels))
            except TriageError as error:
                raise ToolError(str(error)) from None

        return found

    def find(chosen: Filters) -> Found:
        found = desk.incidents.list(chosen, limit=_FOUND + 1)
        more = f"the newest {_FOUND}; there are more" if len(found) > _FOUND else "" if found else "none"
        return Found(more, [_as_line(s) for s in found[:_FOUND]])

    def count(chosen: Filters) -> Found:
        told = "".join(e.text for e in on_history.stats(desk.incidents, chosen) if isinstance(e, Text))
        return Found(told, names=[told])

    def show(asked: Mapping[str, Any]) -> Found:
        found = desk.incidents.get(asked["number"])
        r = found.result
        told = [
            r["root_cause"],
            *(f"{v.who}: {v.verdict} {v.cause} fix: {v.fix} (worked: {v.worked})" for v in found.verdicts),
        ]
        told += [s["step"] for s in r.get("remediation", ())[:5]]
        return Found("\n".join(told), [_as_line(found.summary)], names=told)

    yield tool(
        "find_incidents",
        f"Incidents, the newest first. {filters}",
        of(find),
        filters=(text, "filters and words", False),
    )
    yield tool(
        "count_incidents", f"Counts over incidents. {filters}", of(count), filters=(text, "filters and words", False)
    )
    yield tool(
        "show_incident",
        "The cause, the outcomes and the steps of an incident.",
        show,
        number=("integer", "its number", True),
    )
