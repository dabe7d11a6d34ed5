"""Counts over all incidents, made by the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import fsum
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from triage.store.query import LAST, Chosen
from triage.store.scope import Scope
from triage.store.tables import Attempt, Diagnosis, Incident, IncidentNode, Outcome
from triage.store.values import Filters

SHARES = (0.5, 0.95)  # of the diagnoses, of which the longest is said
Timed: TypeAlias = "tuple[int, float | None, float | None]"  # how many, and the seconds of each share
Labels: TypeAlias = tuple[str, str, str]  # outcome, failure type, class of the cause
PEOPLE = ("cli", "chat", "web", "api", "mcp", "slack")  # ways by which a person says how it turned out


@dataclass(frozen=True, slots=True)
class Group:
    """gpu_hours: lost, None where none is known."""

    name: str
    incidents: int
    gpu_hours: float | None


@dataclass(frozen=True, slots=True)
class Share:
    k: int
    n: int


@dataclass(frozen=True, slots=True)
class NodeCount:
    """failures: incidents in which it is a suspect; jobs: recorded ones that ran on it, whatever became of them."""

    node: str
    failures: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Of jobs that went well only `jobs`, `outcomes` and the exposure of nodes tell. Types and classes are those that
    turned out to be true, where that is known. median, most: seconds of a diagnosis (of half, of 95 %), of `timed` diagnoses.
    """

    jobs: int
    attempts: int
    outcomes: tuple[Group, ...]
    types: tuple[Group, ...]
    classes: tuple[Group, ...]
    owners: tuple[Group, ...]
    weeks: tuple[Group, ...]  # by their Monday
    nodes: tuple[NodeCount, ...]
    named: int  # jobs that name their nodes
    well_named: int  # and went well
    median: float | None
    most: float | None
    timed: int
    confirmed: Share
    type_right: Share
    class_right: Share
    by_status: dict[str, Share]  # confirmed, by how sure the diagnosis was
    no_human: Share


def count(connection: Connection, filters: Filters) -> Stats:
    chosen, exposed = Scope(connection, filters), Scope(connection, _exposure(filters))
    labels = _labels(connection, chosen)
    named, well_named = _named(connection, exposed)
    failed = [row for row in labels if row[0] != "healthy"]
    timed, median, most = (_timed_of_some if chosen.narrow else _timed)(connection, chosen)
    return Stats(
        jobs=sum(row[-2] for row in labels),
        attempts=connection.scalar(chosen.below(select(func.count(Attempt.id)), Attempt.incident_id)) or 0,
        outcomes=_folded(labels, 0),
        types=_folded(failed, 1),
        classes=_folded(failed, 2),
        owners=_folded(_failed(connection, chosen, Incident.owner), 0),
        weeks=_weeks(_failed(connection, chosen, _day(connection))),
        nodes=_nodes(connection, chosen, exposed),
        named=named,
        well_named=well_named,
        median=median,
        most=most,
        timed=timed,
        **_outcomes(connection, chosen),
    )


def _labels(connection: Connection, chosen: Scope) -> list[Sequence[Any]]:
    """Rows of: outcome, type, class, incidents, GPU-hours or None; by what it turned out to be, where somebody said so.

    All are counted by what was diagnosed, which an index tells; then those that were something else change places.
    """
    counts, known, hours = Counter[Labels](), Counter[Labels](), defaultdict[Labels, list[float]](list)

    def count(key: Labels, sign: int, n: int, with_hours: int, lost: float | None) -> None:
        counts[key] += sign * n
        known[key] += sign * with_hours
        hours[key].append(sign * (lost or 0.0))

    said = (Incident.outcome, Incident.failure_type, Incident.root_cause_class)
    counted = (func.count(), func.count(Incident.gpu_hours), func.sum(Incident.gpu_hours))
    for outcome, kind, cause, *numbers in connection.execute(chosen.of(select(*said, *counted)).group_by(*said)):
        count((outcome, kind, cause), 1, *numbers)
    truly = (func.coalesce(Outcome.failure_type, said[1]), func.coalesce(Outcome.root_cause_class, said[2]))
    moved = (
        select(*said, *truly, *counted)
        .join_from(Outcome, Incident)
        .where(LAST, or_(truly[0] != said[1], truly[1] != said[2]))
    )
    for outcome, kind, cause, true_kind, true_cause, *numbers in connection.execute(
        chosen.below(moved, Outcome.incident_id).group_by(*said, *truly)
    ):
        count((outcome, kind, cause), -1, *numbers)
        count((outcome, true_kind, true_cause), 1, *numbers)
    return [(*key, n, round(fsum(hours[key]), 6) if known[key] else None) for key, n in counts.items() if n]


def _failed(
    connection: Connection, chosen: Scope, by: ColumnElement[Any] | InstrumentedAttribute[Any]
) -> list[Sequence[Any]]:
    """Rows of: what they are counted by ("" for nothing), incidents, GPU-hours or None; without what went well."""
    counted = select(by, func.count(), func.sum(Incident.gpu_hours)).where(Incident.outcome != "healthy")
    return [(name or "", n, lost) for name, n, lost in connection.execute(chosen.of(counted).group_by(by))]


def _folded(rows: Iterable[Sequence[Any]], by: int) -> tuple[Group, ...]:
    """The most frequent first."""
    return tuple(
        sorted(_groups((str(row[by]), row[-2], row[-1]) for row in rows), key=lambda g: (-g.incidents, g.name))
    )


def _weeks(rows: Iterable[Sequence[Any]]) -> tuple[Group, ...]:
    """In order."""
    return tuple(sorted(_groups((_monday(row[0]), row[-2], row[-1]) for row in rows), key=lambda g: g.name))


def _monday(day: str) -> str:
    at = date.fromisoformat(day)
    return (at - timedelta(days=at.weekday())).isoformat()


def _groups(rows: Iterable[tuple[str, int, float | None]]) -> Iterator[Group]:
    counts: Counter[str] = Counter()
    hours: dict[str, float] = {}
    for name, n, lost in rows:
        counts[name] += n
        if lost is not None:
            hours[name] = hours.get(name, 0.0) + lost
    return (Group(name, n, hours.get(name)) for name, n in counts.items())


def _day(connection: Connection) -> ColumnElement[Any]:
    """The day in UTC as 2026-03-01, however the database keeps time."""
    if connection.dialect.name == "sqlite":
        return func.substr(Incident.created_at, 1, 10)
    return func.to_char(func.timezone("UTC", Incident.created_at), "YYYY-MM-DD")


def _exposure(filters: Filters) -> Filters:
    """Which jobs count as run: those of the same time and people, whatever became of them."""
    return Filters(since=filters.since, until=filters.until, owner=filters.owner, job=filters.job)


def _nodes(connection: Connection, chosen: Scope, exposed: Scope) -> tuple[NodeCount, ...]:
    """Those that were a suspect, or ran a job: the most suspected first."""
    node, incident = IncidentNode.node, IncidentNode.incident_id
    counted = select(node, func.count()).group_by(node)
    jobs = _pairs(connection, exposed.below(counted, incident))
    bad = chosen.below(counted.where(IncidentNode.suspect), incident, Incident.outcome != "healthy")
    failures = _pairs(connection, bad)
    found = [NodeCount(name, failures.get(name, 0), n) for name, n in jobs.items()]
    return tuple(sorted(found, key=lambda c: (-c.failures, c.jobs, c.node)))


def _named(connection: Connection, exposed: Scope) -> tuple[int, int]:
    """Jobs that name a node, and those of them that went well."""
    counted = select(func.count(), func.coalesce(_times(Incident.outcome == "healthy"), 0))
    naming = select(IncidentNode.incident_id)
    if (
        connection.dialect.name == "sqlite"
    ):  # it finds the distinct ones in an index, and would ask of each job whether it is one
        jobs = naming.distinct().subquery("naming")
        counted = counted.join_from(jobs, Incident, Incident.id == jobs.c.incident_id)
    else:
        counted = counted.where(Incident.id.in_(naming))
    n, went_well = connection.execute(exposed.of(counted)).one()
    return n, went_well


def _pairs(connection: Connection, counted: Chosen) -> dict[str, int]:
    return {name: n for name, n in connection.execute(counted)}  # noqa: C416 - rows are no pairs of older SQLAlchemy


def _timed(connection: Connection, _chosen: Scope) -> Timed:
    """All times are in an index, in order: to fetch them would take longer than all else."""
    times = select(Diagnosis.seconds).where(Diagnosis.seconds.is_not(None))
    n = connection.scalar(select(func.count()).select_from(times.subquery())) or 0
    ordered = times.order_by(Diagnosis.seconds)
    places = [_place(n, share) for share in SHARES] if n else []
    return n, *([float(connection.scalar(ordered.offset(place).limit(1)) or 0) for place in places] or (None, None))


def _timed_of_some(connection: Connection, chosen: Scope) -> Timed:
    """Which they are is asked once."""
    times = select(Diagnosis.seconds).where(Diagnosis.seconds.is_not(None)).order_by(Diagnosis.seconds)
    ordered = list(connection.scalars(chosen.below(times, Diagnosis.incident_id)))
    return len(ordered), *([ordered[_place(len(ordered), share)] for share in SHARES] if ordered else (None, None))


def _place(n: int, share: float) -> int:
    return min(int(n * share), n - 1)


def _outcomes(connection: Connection, chosen: Scope) -> dict[str, Any]:
    """How right the diagnoses were of which somebody said it, each judged as it stood then.

    One that was rejected is wrong in all; a class that a correction leaves open is not counted.
    """
    # To be right that it is not known is not to be right about it.
    same_type = and_(Outcome.failure_type == Diagnosis.failure_type, Diagnosis.failure_type != "unknown")
    same_class = and_(Outcome.root_cause_class == Diagnosis.root_cause_class, Diagnosis.root_cause_class != "unknown")
    of_version = and_(Diagnosis.incident_id == Outcome.incident_id, Diagnosis.version == Outcome.version)
    counted = (
        select(
            Diagnosis.status,
            func.count().label("n"),
            _times(Outcome.verdict == "confirmed").label("confirmed"),
            _times(same_type).label("type"),
            _times(same_class).label("class"),
            _times(or_(Outcome.root_cause_class.is_not(None), Outcome.verdict == "rejected")).label("class_told"),
            _times(Outcome.worked == "yes").label("worked"),
            _times(and_(Outcome.worked == "yes", Outcome.via.not_in(PEOPLE))).label("alone"),
        )
        .join_from(Outcome, Diagnosis, of_version)
        .where(LAST)
        .group_by(Diagnosis.status)
    )
    counted = chosen.below(counted, Outcome.incident_id)
    rows = connection.execute(counted).mappings().all()
    total = {
        name: sum(int(row[name]) for row in rows)
        for name in ("n", "confirmed", "type", "class", "class_told", "worked", "alone")
    }
    return {
        "confirmed": Share(total["confirmed"], total["n"]),
        "type_right": Share(total["type"], total["n"]),
        "class_right": Share(total["class"], total["class_told"]),
        "by_status": {row["status"]: Share(int(row["confirmed"]), row["n"]) for row in rows},
        "no_human": Share(total["alone"], total["worked"]),
    }


def _times(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.sum(case((condition, 1), else_=0))
