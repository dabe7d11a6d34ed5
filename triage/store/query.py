"""The questions asked of the tables, and their rows as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, exists, func, or_, select
from sqlalchemy.orm import aliased

from triage.jobids import base_and_task
from triage.store import clean
from triage.store.tables import Attempt, Diagnosis, Evidence, Incident, IncidentNode, Job, Outcome
from triage.store.values import Filters, IncidentSummary, JobRef, Sort, Verdict

_LATEST = select(func.max(Outcome.id)).where(Outcome.incident_id == Incident.id).correlate(Incident).scalar_subquery()
_LATER = aliased(Outcome)
LAST = ~exists().where(
    _LATER.incident_id == Outcome.incident_id, _LATER.id > Outcome.id
)  # of outcomes, of their incident
_COLUMNS = (
    Incident.id,
    Incident.created_at,
    Incident.title,
    Incident.outcome,
    Incident.failure_type,
    Incident.category,
    Incident.root_cause_class,
    Incident.status,
    Incident.action,
    Incident.fingerprint,
    Incident.gpu_hours,
)
_VERDICT = func.coalesce(Outcome.verdict, "none")
_OF_INCIDENT = Attempt.incident_id == Incident.id
_ATTEMPTS = select(func.count()).where(_OF_INCIDENT).correlate(Incident).scalar_subquery()
_LAST_SEEN = select(func.max(Attempt.recorded_at)).where(_OF_INCIDENT).correlate(Incident).scalar_subquery()
_RUNS = (
    select(Attempt.incident_id, func.count().label("n"), func.max(Attempt.recorded_at).label("last"))
    .group_by(Attempt.incident_id)
    .subquery("runs")
)
_ORDERS: dict[Sort, tuple[Any, ...]] = {
    "created": (Incident.created_at.desc(),),
    "last-seen": (_RUNS.c.last.desc(),),
    "attempts": (_RUNS.c.n.desc(),),
    "gpu-hours": (func.coalesce(Incident.gpu_hours, -1).desc(),),
    "type": (Incident.failure_type,),
}
_BASE = select(
    *_COLUMNS,
    func.coalesce(func.nullif(Job.external_id, ""), Job.name, "").label("job"),
    _VERDICT.label("verdict"),
    func.coalesce(Outcome.failure_type, "").label("true_type"),
    func.coalesce(Outcome.root_cause_class, "").label("true_class"),
    func.coalesce(Incident.owner, "").label("owner"),
    _ATTEMPTS.label("attempts"),
    _LAST_SEEN.label("last_seen"),
)
_BASE = _BASE.join_from(Incident, Job, isouter=True).join(Outcome, Outcome.id == _LATEST, isouter=True)
_PAGE = 5000  # databases take so many numbers in one question
Chosen: TypeAlias = "Select[*tuple[Any, ...]]"


def one(incident: int) -> Chosen:
    return select(Incident.id).where(Incident.id == incident)


def choose(filters: Filters, sort: Sort = "created") -> Chosen:
    """The numbers of incidents, in order."""
    chosen = select(Incident.id)
    if sort in ("last-seen", "attempts"):  # counted at once, not one by one
        chosen = chosen.join(_RUNS, _RUNS.c.incident_id == Incident.id)
    for condition in conditions(filters):
        chosen = chosen.where(condition)
    return chosen.order_by(*_ORDERS[sort], Incident.id.desc())


def conditions(f: Filters) -> Iterator[ColumnElement[bool]]:
    """Of a query of incidents."""
    for column, value in (
        (Incident.outcome, f.outcome),
        (Incident.failure_type, f.failure_type),
        (Incident.owner, f.owner),
        (Incident.status, f.status),
    ):
        if value is not None:
            yield column == clean.name(value)
    if f.since is not None:
        yield Incident.created_at >= f.since
    if f.until is not None:
        yield Incident.created_at < f.until
    if f.node is not None:
        yield Incident.id.in_(select(IncidentNode.incident_id).where(IncidentNode.node == clean.name(f.node)))
    if f.job is not None:
        yield _of_job(clean.name(f.job))
    if f.verdict is not None:
        yield _turned_out(f.verdict)
    if f.text is not None:
        text = clean.storable(f.text)
        yield or_(Incident.title.icontains(text, autoescape=True), Incident.id.in_(_mentions(text)))


def _turned_out(verdict: str) -> ColumnElement[bool]:
    if verdict == "none":
        return ~exists().where(Outcome.incident_id == Incident.id)
    return Incident.id.in_(select(Outcome.incident_id).where(LAST, Outcome.verdict == verdict))


def _of_job(job: str) -> ColumnElement[bool]:
    """By id or name, of any of its attempts: a job submitted anew has another id. By the task of an array, that task alone."""
    run = select(Attempt.incident_id).where(Attempt.external_id == job)
    if base_and_task(job)[1]:
        return Incident.id.in_(run)
    task = select(Attempt.incident_id).where(Attempt.external_id.startswith(f"{job}_", autoescape=True))
    named = Incident.job_id.in_(select(Job.id).where(or_(Job.external_id == job, Job.name == job)))
    return or_(named, Incident.id.in_(run), Incident.id.in_(task))


def _mentions(text: str) -> Chosen:
    cited = select(Evidence.diagnosis_id).where(Evidence.text.icontains(text, autoescape=True))
    return select(Diagnosis.incident_id).where(
        or_(Diagnosis.root_cause.icontains(text, autoescape=True), Diagnosis.id.in_(cited))
    )


def summaries(connection: Connection, chosen: Chosen) -> tuple[IncidentSummary, ...]:
    """In the order of the numbers chosen."""
    ids = list(connection.scalars(chosen))
    pages = (ids[at : at + _PAGE] for at in range(0, len(ids), _PAGE))
    return tuple(summary for page in pages for summary in _page(connection, page))


def _page(connection: Connection, ids: Sequence[int]) -> Iterator[IncidentSummary]:
    rows = {row["id"]: row for row in connection.execute(_BASE.where(Incident.id.in_(ids))).mappings()}
    nodes: defaultdict[int, list[str]] = defaultdict(list)
    by_incident = (
        select(IncidentNode.incident_id, IncidentNode.node)
        .where(IncidentNode.incident_id.in_(ids))
        .order_by(IncidentNode.id)
    )
    for incident, node in connection.execute(by_incident):
        nodes[incident].append(node)
    return (IncidentSummary(**rows[i], nodes=tuple(nodes[i])) for i in ids if i in rows)


def diagnosis(incident: int, version: int | None) -> Chosen:
    wanted = select(
        Diagnosis.result,
        Diagnosis.version,
        Diagnosis.created_at,
        Diagnosis.tool_version,
        Diagnosis.settings,
        Diagnosis.kb_version,
    )
    wanted = wanted.where(Diagnosis.incident_id == incident)
    return (
        wanted.where(Diagnosis.version == version)
        if version is not None
        else wanted.order_by(Diagnosis.version.desc()).limit(1)
    )


def labels(incident: int, version: int) -> Chosen:
    """Version, type, class and cause of this diagnosis, of the latest for 0."""
    said = select(Diagnosis.version, Diagnosis.failure_type, Diagnosis.root_cause_class, Diagnosis.root_cause)
    said = said.where(Diagnosis.incident_id == incident).order_by(Diagnosis.version.desc()).limit(1)
    return said.where(Diagnosis.version == version) if version else said


def job(connection: Connection, summary: IncidentSummary) -> JobRef | None:
    of_job = (
        select(Job.scheduler, Job.external_id, Job.name, Job.fingerprint)
        .join_from(Incident, Job)
        .where(Incident.id == summary.id)
    )
    row = connection.execute(of_job).mappings().first()
    return JobRef(**row, nodes=summary.nodes, gpu_hours=summary.gpu_hours, owner=summary.owner) if row else None


def verdicts(connection: Connection, incident: int) -> tuple[Verdict, ...]:
    columns = (
        Outcome.verdict,
        Outcome.who,
        Outcome.via,
        Outcome.cause,
        Outcome.fix,
        Outcome.worked,
        Outcome.note,
        Outcome.at,
        func.coalesce(Outcome.failure_type, "").label("failure_type"),
        func.coalesce(Outcome.root_cause_class, "").label("root_cause_class"),
        Outcome.version,
    )
    of_incident = select(*columns).where(Outcome.incident_id == incident).order_by(Outcome.id)
    return tuple(Verdict(**row) for row in connection.execute(of_incident).mappings())
