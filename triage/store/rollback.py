"""Which rules and learned signatures a rollback moves, and where to.

What an incident retired is held: a rule that hid what someone had to see, a signature that an outcome contradicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from triage.store import rule_rows, signature_rows
from triage.store.base import insert_row
from triage.store.rule_tables import LearnedSignature, Rule, RuleChange, RuleEvent, SignatureEvent

_UNBORN = "retired"  # the state of a rule at a time when there was no such rule


@dataclass(frozen=True, slots=True)
class Ledger:
    """One kind of thing that has states, and the events in which it came to them.

    key: the column of events that names the thing; name: the id that people see.
    """

    things: Any
    events: Any
    key: str
    name: Callable[[int], str]


RULES = Ledger(Rule, RuleEvent, "rule_id", rule_rows.rule_id)
SIGNATURES = Ledger(LearnedSignature, SignatureEvent, "signature_id", signature_rows.signature_id)


@dataclass(frozen=True, slots=True)
class Move:
    ledger: Ledger
    thing: int
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """held: what stays as it is; undoes: the change that is taken back, if it is one."""

    moves: tuple[Move, ...]
    held: tuple[tuple[Ledger, int], ...]
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class _Event:
    thing: int
    change: int
    at: datetime
    what: str
    before: str
    after: str


def undo(connection: Connection) -> Plan:
    """Takes back the last change that is not taken back yet."""
    done = {change for change in connection.scalars(select(RuleChange.undoes)) if change is not None}
    last = (
        select(RuleChange.id, RuleChange.what, RuleChange.who, RuleChange.at)
        .where(RuleChange.undoes.is_(None), RuleChange.what != "incident", RuleChange.id.not_in(done))
        .order_by(RuleChange.id.desc())
        .limit(1)
    )
    change = connection.execute(last).first()
    if change is None:
        return Plan((), ())
    reason = f"{change.what} by {change.who} of {change.at:%Y-%m-%d %H:%M} UTC was taken back"

    def before_it(events: Sequence[_Event]) -> dict[int, str]:
        return {e.thing: e.before or _UNBORN for e in events if e.change == change.id}

    return _plan(connection, before_it, reason, change.id)


def back_to(connection: Connection, to: datetime) -> Plan:
    """Everything as it was at that time."""

    def then(events: Sequence[_Event]) -> dict[int, str]:
        return {e.thing: _UNBORN for e in events} | {e.thing: e.after for e in events if e.at <= to}

    return _plan(connection, then, f"back to the rules of {to:%Y-%m-%d %H:%M} UTC")


def do(connection: Connection, move: Move, change: int) -> None:
    """The move, as a part of this change."""
    values = {"state": move.after, "reason": move.reason} | ({"approved_by": ""} if move.after == "candidate" else {})
    table = move.ledger.things
    connection.execute(update(table).where(table.id == move.thing).values(values))
    event = {"change_id": change, move.ledger.key: move.thing, "before": move.before}
    insert_row(connection, move.ledger.events, event | {"after": move.after, "reason": move.reason})


def _plan(
    connection: Connection,
    wanted: Callable[[Sequence[_Event]], dict[int, str]],
    reason: str,
    undoes: int | None = None,
) -> Plan:
    """wanted: the states that things are to have, by all events of their ledger."""
    moves: list[Move] = []
    held: list[tuple[Ledger, int]] = []
    for ledger in (RULES, SIGNATURES):
        events = _events(connection, ledger)
        states = wanted(events)
        barred = {e.thing: e.what == "incident" for e in events}  # by the latest event of each
        for thing, state in _states(connection, ledger, states):
            if states[thing] == state:
                continue
            if barred[thing]:
                held.append((ledger, thing))
            else:
                moves.append(Move(ledger, thing, state, states[thing], reason))
    return Plan(tuple(moves), tuple(held), undoes)


def _states(connection: Connection, ledger: Ledger, things: Iterable[int]) -> Sequence[tuple[int, str]]:
    """The things with the states they are in, held for this transaction."""
    table = ledger.things
    chosen = select(table.id, table.state).where(table.id.in_(list(things))).order_by(table.id).with_for_update()
    return [(thing, state) for thing, state in connection.execute(chosen)]


def _events(connection: Connection, ledger: Ledger) -> list[_Event]:
    """All there are, oldest first."""
    table = ledger.events
    columns = (
        getattr(table, ledger.key).label("thing"),
        RuleChange.id.label("change"),
        RuleChange.at,
        RuleChange.what,
        table.before,
        table.after,
    )
    found = connection.execute(select(*columns).join_from(table, RuleChange).order_by(table.id))
    return [_Event(**row) for row in found.mappings()]
