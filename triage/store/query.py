"""The questions asked of the tables, and their rows as values."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, Select, func, or_, select

from triage.store import clean
from triage.store.tables import Diagnosis, Evidence, Incident, IncidentNode, Job, Outcome
from triage.store.values import IncidentSummary, JobRef, Verdict

_LATEST = select(func.max(Outcome.id)).where(Outcome.incident_id == Incident.id).correlate(Incident).scalar_subquery()
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
_BASE = select(
    *_COLUMNS,
    func.coalesce(func.nullif(Job.external_id, ""), Job.name, "").label("job"),
    func.coalesce(Outcome.verdict, "none").label("verdict"),
    func.coalesce(Outcome.failure_type, "").label("true_type"),
    func.coalesce(Outcome.root_cause_class, "").label("true_class"),
)
_BASE = _BASE.join_from(Incident, Job, isouter=True).join(Outcome, Outcome.id == _LATEST, isouter=True)
Chosen: TypeAlias = "Select[*tuple[Any, ...]]"


def one(incident: int) -> Chosen:
    return _BASE.where(Incident.id == incident)


def choose(
    *, outcome: str | None, failure_type: str | None, node: str | None, since: datetime | None, text: str | None
) -> Chosen:
    """Newest first; a filter that is None takes all."""
    chosen = _BASE.order_by(Incident.created_at.desc(), Incident.id.desc())
    if outcome is not None:
        chosen = chosen.where(Incident.outcome == outcome)
    if failure_type is not None:
        chosen = chosen.where(Incident.failure_type == failure_type)
    if since is not None:
        chosen = chosen.where(Incident.created_at >= since)
    if node is not None:
        has_node = select(IncidentNode.incident_id).where(IncidentNode.node == clean.name(node))
        chosen = chosen.where(Incident.id.in_(has_node))
    if text is not None:
        text = clean.storable(text)
        chosen = chosen.where(or_(Incident.title.icontains(text, autoescape=True), Incident.id.in_(_mentions(text))))
    return chosen


def _mentions(text: str) -> Chosen:
    cited = select(Evidence.diagnosis_id).where(Evidence.text.icontains(text, autoescape=True))
    return select(Diagnosis.incident_id).where(
        or_(Diagnosis.root_cause.icontains(text, autoescape=True), Diagnosis.id.in_(cited))
    )


def summaries(connection: Connection, chosen: Chosen) -> tuple[IncidentSummary, ...]:
    found = connection.execute(chosen).mappings().all()
    nodes: defaultdict[int, list[str]] = defaultdict(list)
    ids = [row["id"] for row in found]
    by_incident = (
        select(IncidentNode.incident_id, IncidentNode.node)
        .where(IncidentNode.incident_id.in_(ids))
        .order_by(IncidentNode.id)
    )
    for incident, node in connection.execute(by_incident) if ids else ():
        nodes[incident].append(node)
    return tuple(IncidentSummary(**row, nodes=tuple(nodes[row["id"]])) for row in found)


def diagnosis(incident: int, version: int | None) -> Chosen:
    wanted = select(
        Diagnosis.result, Diagnosis.version, Diagnosis.created_at, Diagnosis.tool_version, Diagnosis.settings
    )
    wanted = wanted.where(Diagnosis.incident_id == incident)
    return (
        wanted.where(Diagnosis.version == version)
        if version is not None
        else wanted.order_by(Diagnosis.version.desc()).limit(1)
    )


def labels(incident: int) -> Chosen:
    """Version, type and class of the latest diagnosis."""
    said = select(Diagnosis.version, Diagnosis.failure_type, Diagnosis.root_cause_class)
    return said.where(Diagnosis.incident_id == incident).order_by(Diagnosis.version.desc()).limit(1)


def job(connection: Connection, summary: IncidentSummary) -> JobRef | None:
    of_job = (
        select(Job.scheduler, Job.external_id, Job.name, Job.fingerprint)
        .join_from(Incident, Job)
        .where(Incident.id == summary.id)
    )
    row = connection.execute(of_job).mappings().first()
    return JobRef(**row, nodes=summary.nodes, gpu_hours=summary.gpu_hours) if row else None


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
