"""What the tables know of one incident besides its latest diagnosis: attempts, versions, thumbs, how often it was seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, false, func, or_, select

from triage.domain import InputFile, Seen
from triage.jobids import base_and_task
from triage.store import clean, tables
from triage.store.query import Chosen
from triage.store.tables import Attempt, Diagnosis, Incident, Job
from triage.store.values import Feedback, JobRef, StoredAttempt, Version


def last_attempt(incident: int) -> Chosen:
    return select(func.max(Attempt.number)).where(Attempt.incident_id == incident)


def attempts(connection: Connection, incident: int) -> tuple[StoredAttempt, ...]:
    found = connection.execute(
        select(Attempt.__table__).where(Attempt.incident_id == incident).order_by(Attempt.number)
    )
    return tuple(
        StoredAttempt(
            number=row.number,
            recorded_at=row.recorded_at,
            external_id=row.external_id,
            task=row.task,
            last_step=row.last_step,
            gpu_hours=row.gpu_hours,
            files=tuple(InputFile(**file) for file in json.loads(row.inputs)),
        )
        for row in found
    )


def versions(connection: Connection, incident: int) -> tuple[Version, ...]:
    columns = (
        Diagnosis.version,
        Diagnosis.attempt,
        Diagnosis.created_at.label("at"),
        Diagnosis.produced_by,
        Diagnosis.tool_version,
        Diagnosis.failure_type,
        Diagnosis.root_cause_class,
        Diagnosis.status,
        func.coalesce(Diagnosis.recorded_by, "").label("recorded_by"),
    )
    of_incident = select(*columns).where(Diagnosis.incident_id == incident).order_by(Diagnosis.version)
    return tuple(Version(**row) for row in connection.execute(of_incident).mappings())


def feedback(connection: Connection, incident: int) -> tuple[Feedback, ...]:
    thumbs = tables.Feedback
    wanted = select(thumbs.__table__, Diagnosis.version).join_from(thumbs, Diagnosis)
    found = connection.execute(wanted.where(Diagnosis.incident_id == incident).order_by(thumbs.id))
    return tuple(
        Feedback(row.about, int(row.ref), row.thumb, row.who, row.via, row.note, row.at, row.version) for row in found
    )


def shown(incident: int, about: Feedback) -> Chosen:
    """The latest diagnosis, if it shows what the thumb is about."""
    parts = {"similar": tables.SimilarShown, "step": tables.RemediationStep, "hypothesis": tables.Hypothesis}
    part: Any = parts[about.about]
    newest = select(func.max(Diagnosis.version)).where(Diagnosis.incident_id == incident).scalar_subquery()
    wanted = select(Diagnosis.id).join_from(Diagnosis, part, part.diagnosis_id == Diagnosis.id)
    return wanted.where(Diagnosis.incident_id == incident, Diagnosis.version == newest, part.position == about.ref)


def seen(
    connection: Connection,
    fingerprint: str,
    incident: int | None = None,
    job: JobRef | None = None,
    but: str = "",
    before: datetime | None = None,
) -> Seen | None:
    """All attempts that failed this way: those of the job of the incident, or of this job, and those of others; None for none.

    but: digest of a log that does not count; before: only what was recorded until then.
    """
    if not fingerprint:
        return None
    times = select(func.count(), func.min(Attempt.recorded_at), func.max(Attempt.recorded_at))
    times = times.join_from(Attempt, Incident).where(Incident.fingerprint == fingerprint)
    if but:
        times = times.where(Attempt.digest != but)
    if before is not None:
        times = times.where(Attempt.recorded_at <= before)
    total, first, last = connection.execute(times).one()
    if not total:
        return None
    if incident is not None:
        own = select(Job.external_id, Job.name, func.coalesce(Incident.owner, "").label("owner"))
        found = connection.execute(own.join_from(Incident, Job).where(Incident.id == incident)).first()
        job = JobRef(found.external_id, found.name, owner=found.owner) if found else None
    mine = [Incident.id == incident] if incident is not None else []
    same = connection.execute(times.where(or_(false(), *mine, *_of_job(job)))).one()[0]
    return Seen(first, last, same, total - same)


def _of_job(job: JobRef | None) -> Iterator[ColumnElement[bool]]:
    """By its number, or submitted anew under its name by its user."""
    if job and (base := base_and_task(clean.name(job.external_id))[0]):
        yield Incident.job_id.in_(select(Job.id).where(Job.external_id == base))
    if job and job.name and job.owner:
        named = select(Job.id).where(Job.name == clean.name(clean.text(job.name)))
        yield and_(Incident.owner == clean.name(clean.text(job.owner)), Incident.job_id.in_(named))


def latest_of_attempts(incident: int) -> Chosen:
    """The result of the last reading of each attempt, the newest attempt first."""
    last = select(func.max(Diagnosis.version)).where(Diagnosis.incident_id == incident).group_by(Diagnosis.attempt)
    wanted = select(Diagnosis.result).where(Diagnosis.incident_id == incident, Diagnosis.version.in_(last))
    return wanted.order_by(Diagnosis.attempt.desc())
