"""Which rules a rollback moves, and where to. What an incident retired is held: it hid what someone had to see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from triage.store.tables import Rule, RuleChange, RuleEvent

_UNBORN = "retired"  # the state of a rule at a time when there was no such rule


@dataclass(frozen=True, slots=True)
class Move:
    rule: int
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """held: rules that stay as they are; undoes: the change that is taken back, if it is one."""

    moves: tuple[Move, ...]
    held: tuple[int, ...]
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class _Event:
    rule: int
    change: int
    at: datetime
    what: str
    who: str
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
    events = _events(connection)
    wanted = {e.rule: e.before or _UNBORN for e in events if e.change == change.id}
    return _plan(connection, wanted, events, reason, change.id)


def back_to(connection: Connection, to: datetime) -> Plan:
    """Every rule as it was at that time."""
    events = _events(connection)
    wanted = {e.rule: _UNBORN for e in events} | {e.rule: e.after for e in events if e.at <= to}
    return _plan(connection, wanted, events, f"back to the rules of {to:%Y-%m-%d %H:%M} UTC", None)


def _plan(
    connection: Connection, wanted: dict[int, str], events: Sequence[_Event], reason: str, undoes: int | None
) -> Plan:
    barred = {e.rule: e.what == "incident" for e in events}  # by the latest event of each
    moves: list[Move] = []
    held: list[int] = []
    for rule, state in _states(connection, wanted):
        if wanted[rule] == state:
            continue
        if barred[rule]:
            held.append(rule)
        else:
            moves.append(Move(rule, state, wanted[rule], reason))
    return Plan(tuple(moves), tuple(held), undoes)


def _states(connection: Connection, rules: Iterable[int]) -> Sequence[tuple[int, str]]:
    """The rules with the states they are in, held for this transaction."""
    chosen = select(Rule.id, Rule.state).where(Rule.id.in_(list(rules))).order_by(Rule.id).with_for_update()
    return [(rule, state) for rule, state in connection.execute(chosen)]


def _events(connection: Connection) -> list[_Event]:
    """All there are, oldest first."""
    columns = (
        RuleEvent.rule_id.label("rule"),
        RuleChange.id.label("change"),
        RuleChange.at,
        RuleChange.what,
        RuleChange.who,
        RuleEvent.before,
        RuleEvent.after,
    )
    found = connection.execute(select(*columns).join_from(RuleEvent, RuleChange).order_by(RuleEvent.id))
    return [_Event(**row) for row in found.mappings()]
