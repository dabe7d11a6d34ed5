"""Questions about all incidents: the list, the counts, which are open. From the database, through the store."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from triage.chat.said import names, say
from triage.chat.values import Event
from triage.clock import parse_time
from triage.domain import Outcome, Status
from triage.errors import UsageError
from triage.store.values import Filters, IncidentSummary, VerdictKind
from triage.taxonomy import Taxonomy
from triage.text import how_many

if TYPE_CHECKING:
    from triage.store.incidents import IncidentStore
    from triage.store.stats import Group, NodeCount

SHOWN = 15
_TOP = 5
NONE = "No incident is recorded yet; `triage diagnose PATH...` records one."
_NAMES = {"type": "failure_type", "user": "owner"}
_KNOWN = tuple(f.name for f in fields(Filters))
_AGO = re.compile(
    r"(?i)\b(?:last|past|this) (?:(\d{1,3}) )?(hour|day|night|week|month)s?\b|\b(today|tonight|yesterday)\b"
)
_HOURS = {"hour": 1, "day": 24, "night": 12, "week": 168, "month": 720, "today": 24, "tonight": 12, "yesterday": 48}


def filters(text: str, labels: Taxonomy) -> Filters:
    """Of `type=ecc-error node=gpu-1 since=7d words`. Errors: UsageError for what can match nothing."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    found: dict[str, Any] = {}
    rest: list[str] = []
    now = datetime.now(UTC)
    for word in words:
        name, sign, value = word.lstrip("-").partition("=")
        field = _NAMES.get(name, name)
        if not sign:
            rest.append(word)
        elif field not in _KNOWN:
            raise UsageError(f"there is no filter {name!r}", f"use {', '.join((*_NAMES, *_KNOWN[2:]))} as name=value")
        elif field in ("since", "until"):
            found[field] = parse_time(value, now, field)
        else:
            _check(field, value, labels)
            found[field] = value
    if rest:
        found["text"] = " ".join(rest)
    return Filters(**found)


def _check(field: str, value: str, labels: Taxonomy) -> None:
    known: dict[str, tuple[str, ...]] = {
        "outcome": get_args(Outcome),
        "verdict": (*get_args(VerdictKind), "none"),
        "status": get_args(Status),
        "failure_type": tuple(labels.types),
    }
    if field in known and value not in known[field]:
        raise UsageError(f"{field} {value!r} is not known", f"such as {', '.join(known[field][:8])}")


def incidents(store: IncidentStore | None, chosen: Filters) -> Iterator[Event]:
    found = store.list(chosen, limit=SHOWN + 1) if store else ()
    for s in found[:SHOWN]:
        yield say(row(s))
    if not found:
        yield say(NONE if chosen == Filters() else "No incident fits.")
    elif len(found) > SHOWN:
        yield say("... and more; narrow it: /incidents type=ecc-error node=gpu-017 since=7d verdict=none")
    else:
        yield say("/open ID talks about one.")


def row(s: IncidentSummary) -> str:
    return f"{s.id:>5}  {told(s)}"


def told(s: IncidentSummary) -> str:
    """A line of it, without its number."""
    verdict = "" if s.verdict == "none" else f" ({s.verdict})"
    nodes = f" on {names(s.nodes, 2)}" if s.nodes else ""
    kind = s.true_type or s.failure_type
    return f"{s.created_at:%Y-%m-%d %H:%M}  {s.outcome}, {kind}{verdict}{nodes}: {s.title}"


def stats(store: IncidentStore | None, chosen: Filters) -> Iterator[Event]:
    if store is None or not (s := store.stats(chosen)).jobs:
        yield say(NONE)
        return
    bad = sum(g.incidents for g in s.outcomes if g.name != "healthy")
    hours = [g.gpu_hours for g in s.types if g.gpu_hours is not None]
    yield say(
        f"{how_many(bad, 'incident')} among {s.jobs:,} diagnosed jobs"
        + (f", {sum(hours):,.1f} GPU-hours lost." if hours else "; how many GPU-hours they cost, no log tells.")
    )
    for title, groups in (("By outcome", s.outcomes), ("By type", s.types), ("By class", s.classes)):
        yield say(f"{title}: {_groups(groups)}.")
    yield from _nodes(s.nodes)
    yield from _right(s.confirmed.k, s.confirmed.n)


def _groups(groups: tuple[Group, ...]) -> str:
    return ", ".join(f"{g.name} {g.incidents}" for g in groups[:_TOP]) + (" ..." if len(groups) > _TOP else "")


def _nodes(nodes: tuple[NodeCount, ...]) -> Iterator[Event]:
    accused = sorted((n for n in nodes if n.failures), key=lambda n: -n.failures)
    if accused:
        listed = ", ".join(f"{n.node} {n.failures} (of {how_many(n.jobs, 'job')})" for n in accused[:_TOP])
        yield say(f"Suspect nodes: {listed}.")


def _right(k: int, n: int) -> Iterator[Event]:
    yield say(
        f"Of {how_many(n, 'incident')} with a verdict {k} {'was' if k == 1 else 'were'} confirmed."
        if n
        else "Nobody has recorded how any turned out."
    )


def answer(store: IncidentStore | None, intent: str, said: str) -> Iterator[Event]:
    """intent: of intents.of_history."""
    if store is None:
        yield say(NONE)
        return
    chosen = _within(said)
    match intent:
        case "open":
            yield say("Without an outcome yet:")
            yield from incidents(store, replace(chosen, verdict="none"))
        case "nodes":
            s = store.stats(chosen)
            if not any(n.failures for n in s.nodes):
                yield say("No recorded incident blames a node.")
            yield from _nodes(s.nodes)
        case "cost":
            known = [g for g in store.stats(chosen).types if g.gpu_hours]
            listed = ", ".join(
                f"{g.name} {g.gpu_hours:,.1f}" for g in sorted(known, key=lambda g: -(g.gpu_hours or 0))[:_TOP]
            )
            yield say(
                f"GPU-hours lost by type: {listed}." if known else "Unknown: no recorded log tells what was lost."
            )
        case "right":
            s = store.stats(chosen)
            yield from _right(s.confirmed.k, s.confirmed.n)
        case "types":
            yield from stats(store, chosen)
        case _:
            yield from incidents(store, chosen)


def _within(said: str) -> Filters:
    """The time that a question names, in hours before now."""
    found = _AGO.search(said)
    if found is None:
        return Filters()
    hours = _HOURS[(found[2] or found[3]).lower()] * int(found[1] or 1)
    return Filters(since=parse_time(f"{min(hours, 9999)}h", datetime.now(UTC)))
