"""Counts over all incidents, made by the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Subquery, and_, case, func, or_, select

from triage.store.query import LATEST, Chosen, conditions
from triage.store.tables import Attempt, Diagnosis, Incident, IncidentNode, Outcome
from triage.store.values import Filters

SHARES = (0.5, 0.95)  # of the diagnoses, of which the longest is said
Timed: TypeAlias = "tuple[int, float | None, float | None]"  # how many, and the seconds of each share
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
    chosen = _chosen(filters)
    everything = filters == Filters()
    labels = _counted(connection, chosen, chosen.c.outcome, chosen.c.type, chosen.c["class"])
    failed = [row for row in labels if row[0] != "healthy"]
    bad = chosen.c.outcome != "healthy"
    times, attempts = select(Diagnosis.seconds).where(Diagnosis.seconds.is_not(None)), select(func.count(Attempt.id))
    if not everything:
        ids = select(chosen.c.id)
        times, attempts = times.where(Diagnosis.incident_id.in_(ids)), attempts.where(Attempt.incident_id.in_(ids))
    named, well_named = _named(connection, filters)
    timed, median, most = (_timed if everything else _timed_of_some)(connection, times)
    return Stats(
        jobs=sum(row[-2] for row in labels),
        attempts=connection.scalar(attempts) or 0,
        outcomes=_folded(labels, 0),
        types=_folded(failed, 1),
        classes=_folded(failed, 2),
        owners=_folded(_counted(connection, chosen, chosen.c.owner, where=bad), 0),
        weeks=_weeks(_counted(connection, chosen, _day(connection, chosen), where=bad)),
        nodes=_nodes(connection, chosen, filters),
        named=named,
        well_named=well_named,
        median=median,
        most=most,
        timed=timed,
        **_outcomes(connection, chosen),
    )


def _chosen(filters: Filters) -> Subquery:
    """Each incident with what it truly was."""
    wanted = select(
        Incident.id,
        Incident.created_at,
        Incident.outcome,
        Incident.gpu_hours,
        func.coalesce(Incident.owner, "").label("owner"),
        func.coalesce(Outcome.failure_type, Incident.failure_type).label("type"),
        func.coalesce(Outcome.root_cause_class, Incident.root_cause_class).label("class"),
        *(column.label(column.key) for column in (Outcome.verdict, Outcome.worked, Outcome.via, Outcome.version)),
        Outcome.failure_type.label("true_type"),
        Outcome.root_cause_class.label("true_class"),
    )
    wanted = wanted.join_from(Incident, Outcome, Outcome.id == LATEST, isouter=True)
    for condition in conditions(filters):
        wanted = wanted.where(condition)
    return wanted.subquery("chosen")


def _counted(
    connection: Connection, chosen: Subquery, *by: ColumnElement[Any], where: ColumnElement[bool] | None = None
) -> list[Sequence[Any]]:
    """Rows of: what it is counted by, incidents, GPU-hours or None."""
    counted = select(*(c.label(f"by{i}") for i, c in enumerate(by)), func.count(), func.sum(chosen.c.gpu_hours))
    counted = counted.group_by(*by)
    return list(connection.execute(counted if where is None else counted.where(where)))


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


def _day(connection: Connection, chosen: Subquery) -> ColumnElement[Any]:
    """The day in UTC as 2026-03-01, however the database keeps time."""
    if connection.dialect.name == "sqlite":
        return func.substr(chosen.c.created_at, 1, 10)
    return func.to_char(func.timezone("UTC", chosen.c.created_at), "YYYY-MM-DD")


def _exposure(filters: Filters) -> Filters:
    """Which jobs count as run: those of the same time and people, whatever became of them."""
    return Filters(since=filters.since, until=filters.until, owner=filters.owner, job=filters.job)


def _nodes(connection: Connection, chosen: Subquery, filters: Filters) -> tuple[NodeCount, ...]:
    """Those that were a suspect, or ran a job: the most suspected first."""
    node, within = IncidentNode.node, _exposure(filters)
    ran = select(node, func.count().label("jobs")).group_by(node)
    if within != Filters():
        ran = ran.where(IncidentNode.incident_id.in_(select(_chosen(within).c.id)))
    jobs = {name: n for name, n in connection.execute(ran)}  # noqa: C416 - rows are no pairs of older SQLAlchemy
    bad = select(chosen.c.id).where(chosen.c.outcome != "healthy")
    suspected = select(node, func.count()).where(IncidentNode.suspect, IncidentNode.incident_id.in_(bad)).group_by(node)
    failures = {name: n for name, n in connection.execute(suspected)}  # noqa: C416
    found = [NodeCount(name, failures.get(name, 0), n) for name, n in jobs.items()]
    return tuple(sorted(found, key=lambda c: (-c.failures, c.jobs, c.node)))


def _named(connection: Connection, filters: Filters) -> tuple[int, int]:
    """Jobs of the exposure that name a node, and those of them that went well."""
    within = _chosen(_exposure(filters))
    has = within.c.id.in_(select(IncidentNode.incident_id))
    well = func.coalesce(func.sum(case((within.c.outcome == "healthy", 1), else_=0)), 0)
    named, well_named = connection.execute(select(func.count(), well).select_from(within).where(has)).one()
    return named, well_named


def _timed(connection: Connection, times: Chosen) -> Timed:
    """All times are in an index, in order: to fetch them would take longer than all else."""
    n = connection.scalar(select(func.count()).select_from(times.subquery())) or 0
    ordered = times.order_by(Diagnosis.seconds)
    places = [_place(n, share) for share in SHARES] if n else []
    return n, *([float(connection.scalar(ordered.offset(place).limit(1)) or 0) for place in places] or (None, None))


def _timed_of_some(connection: Connection, times: Chosen) -> Timed:
    """Which they are is asked once."""
    ordered = [float(seconds) for seconds in connection.scalars(times.order_by(Diagnosis.seconds))]
    return len(ordered), *([ordered[_place(len(ordered), share)] for share in SHARES] if ordered else (None, None))


def _place(n: int, share: float) -> int:
    return min(int(n * share), n - 1)


def _outcomes(connection: Connection, chosen: Subquery) -> dict[str, Any]:
    """How right the diagnoses were of which somebody said it, each judged as it stood then.

    One that was rejected is wrong in all; a class that a correction leaves open is not counted.
    """
    # To be right that it is not known is not to be right about it.
    same_type = and_(chosen.c.true_type == Diagnosis.failure_type, Diagnosis.failure_type != "unknown")
    same_class = and_(chosen.c.true_class == Diagnosis.root_cause_class, Diagnosis.root_cause_class != "unknown")
    of_version = and_(Diagnosis.incident_id == chosen.c.id, Diagnosis.version == chosen.c.version)
    counted = (
        select(
            Diagnosis.status,
            func.count().label("n"),
            _times(chosen.c.verdict == "confirmed").label("confirmed"),
            _times(same_type).label("type"),
            _times(same_class).label("class"),
            _times(or_(chosen.c.true_class.is_not(None), chosen.c.verdict == "rejected")).label("class_told"),
            _times(chosen.c.worked == "yes").label("worked"),
            _times(and_(chosen.c.worked == "yes", chosen.c.via.not_in(PEOPLE))).label("alone"),
        )
        .join_from(chosen, Diagnosis, of_version)
        .where(chosen.c.verdict.is_not(None))
        .group_by(Diagnosis.status)
    )
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
