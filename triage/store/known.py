"""Recorded incidents as past ones that a new failure is compared with: read in SQL, never all at once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from triage import domain
from triage.domain import Family, KnownIncident, Misled, Recorded, key_of
from triage.store import attempts, clean, engine, rows
from triage.store.base import Store, possible
from triage.store.history import past
from triage.store.query import Chosen
from triage.store.tables import Diagnosis, Evidence, Incident, Outcome, SimilarShown
from triage.store.values import JobRef
from triage.text import without_consequences

_LINES, _BESIDE = 6, 3  # of the cause, and of failures shown beside it, that stand for the incident
_SHOWN = 200  # past incidents shown beside the same failure, that are looked at
_FAILED = Incident.outcome != "healthy"
_VERSIONS = (
    select(Diagnosis.incident_id, func.max(Diagnosis.version), Incident.created_at)
    .join_from(Diagnosis, Incident)
    .where(_FAILED)
    .group_by(Diagnosis.incident_id, Incident.created_at)
)


class KnownReader(Store):
    """Reads only. Errors of each method: StoreError when the database fails."""

    def count(self) -> int:
        with engine.reading(self._engine) as connection:
            return connection.scalar(select(func.count()).select_from(Incident).where(_FAILED)) or 0

    def keys(self, newest: int | None = None) -> tuple[str, ...]:
        """What the vector index has to hold: of all incidents, or of the newest so many readings, be they of old incidents."""
        with engine.reading(self._engine) as connection:
            wanted = _VERSIONS
            if newest is not None:
                read = select(Diagnosis.incident_id).join_from(Diagnosis, Incident).where(_FAILED)
                last = read.order_by(Diagnosis.id.desc()).limit(newest)
                wanted = wanted.where(Diagnosis.incident_id.in_(list(connection.scalars(last))))
            return tuple(key_of(*row) for row in connection.execute(wanted))

    def read(self, incidents: Collection[int]) -> tuple[Recorded, ...]:
        """Those of them that are there, each as its latest diagnosis and verdict tell it; one that went well is none."""
        ids = [incident for incident in incidents if possible(incident)]
        with engine.reading(self._engine) as connection:
            return _read(connection, _INCIDENTS.where(Incident.id.in_(ids))) if ids else ()

    def after(self, incident: int, most: int) -> tuple[Recorded, ...]:
        """The next so many, by number."""
        chosen = _INCIDENTS.where(Incident.id > incident).order_by(Incident.id).limit(most)
        with engine.reading(self._engine) as connection:
            return _read(connection, chosen)

    def own(self, diagnosis: domain.Diagnosis, job: JobRef | None, window: timedelta) -> int | None:
        """The incident that this diagnosis belongs to, as IncidentStore.file would find it; None for a new one."""
        owner = clean.name(clean.text(job.owner)) if job and job.owner else None
        labels = {**rows.labels(diagnosis), "owner": owner}
        with engine.reading(self._engine) as connection:
            run, since = attempts.run_of(diagnosis), self._clock() - window
            known = attempts.find(connection, diagnosis, run, job, labels, since)
        return known.incident if known else None

    def like(self, fingerprint: str, failure_type: str, signatures: Collection[str], most: int) -> tuple[int, ...]:
        """Incidents that failed in the same way or under the same labels: of each kind the newest `most`, and as many of
        which it is known what they turned out to be."""
        found: dict[int, None] = {}
        with engine.reading(self._engine) as connection:
            if fingerprint:
                for chosen in _newest_and_resolved(Incident.fingerprint == fingerprint, most):
                    found |= dict.fromkeys(connection.scalars(chosen))
            for chosen in _of_signature(signatures, most):
                found |= dict.fromkeys(connection.scalars(chosen))
            if failure_type not in ("", "unknown"):
                for chosen in _newest_and_resolved(Incident.failure_type == failure_type, most):
                    found |= dict.fromkeys(connection.scalars(chosen))
                turned_out = select(Outcome.incident_id).where(Outcome.failure_type == failure_type)
                found |= dict.fromkeys(connection.scalars(turned_out.order_by(Outcome.id.desc()).limit(most)))
        return tuple(found)

    def families(self, fingerprints: Collection[str]) -> Mapping[str, Family]:
        """How often, and when last, there was a failure of each fingerprint."""
        wanted = (
            select(Incident.fingerprint, func.count(), func.max(Incident.id))
            .where(Incident.fingerprint.in_(fingerprints), _FAILED)
            .group_by(Incident.fingerprint)
        )
        with engine.reading(self._engine) as connection:
            counted = connection.execute(wanted).all() if fingerprints else []
            last = select(Incident.id, Incident.created_at).where(Incident.id.in_([row[2] for row in counted]))
            at = {incident: day for incident, day in connection.execute(last)} if counted else {}  # noqa: C416 - rows
        return {name: Family(times, at[newest]) for name, times, newest in counted if newest in at}

    def misled(self, fingerprint: str) -> Mapping[str, Misled]:
        """Past incidents that were shown beside a failure of this fingerprint of which the diagnosis turned out wrong; by
        the latest such failure that has a verdict."""
        if not fingerprint:
            return {}
        latest = select(func.max(Outcome.id)).where(Outcome.incident_id == Incident.id).correlate(Incident)
        wanted = (
            select(SimilarShown.incident, Incident.id, Outcome.verdict, Outcome.failure_type)
            .join_from(SimilarShown, Diagnosis)
            .join(Incident, Incident.id == Diagnosis.incident_id)
            .join(Outcome, Outcome.id == latest.scalar_subquery())
            .where(Incident.fingerprint == fingerprint)
            .order_by(Incident.id.desc())
            .limit(_SHOWN)
        )
        found: dict[str, Misled | None] = {}
        with engine.reading(self._engine) as connection:
            for shown, incident, verdict, true_type in connection.execute(wanted):
                found.setdefault(shown, None if verdict == "confirmed" else Misled(incident, true_type or ""))
        return {shown: misled for shown, misled in found.items() if misled is not None}


_INCIDENTS = select(
    Incident.id,
    Incident.created_at,
    Incident.title,
    Incident.failure_type,
    Incident.root_cause_class,
    Incident.fingerprint,
).where(_FAILED)


def _newest_and_resolved(same: Any, most: int) -> Iterable[Chosen]:
    """By number, which grows with time and needs no sorting."""
    yield select(Incident.id).where(same, _FAILED).order_by(Incident.id.desc()).limit(most)
    told = select(Outcome.incident_id).join_from(Outcome, Incident).where(same, _FAILED)
    yield told.order_by(Outcome.id.desc()).limit(most)


def _of_signature(signatures: Collection[str], most: int) -> Iterable[Chosen]:
    for signature in signatures:
        cited = select(Evidence.diagnosis_id).where(Evidence.signature == signature, Evidence.role == "root")
        newest = cited.order_by(Evidence.id.desc()).limit(most).subquery()
        of = select(Diagnosis.incident_id).join_from(Diagnosis, Incident)
        yield of.where(Diagnosis.id.in_(select(newest.c.diagnosis_id)), _FAILED)


@dataclass(frozen=True, slots=True)
class _Summary:
    created_at: datetime
    verdict: str


def _read(connection: Connection, chosen: Chosen) -> tuple[Recorded, ...]:
    rows = connection.execute(chosen).all()
    ids = [row.id for row in rows]
    # Of several rows of one incident the last one stands.
    readings = {row.incident_id: row for row in connection.execute(_readings(ids))} if ids else {}
    told = defaultdict[int, list[Any]](list)
    for row in connection.execute(_verdicts(ids)) if ids else ():
        told[row.incident_id].append(row)
    return tuple(_recorded(row, readings[row.id], told[row.id]) for row in rows if row.id in readings)


def _readings(ids: Sequence[int]) -> Chosen:
    wanted = select(Diagnosis.incident_id, Diagnosis.version, Diagnosis.result)
    return wanted.where(Diagnosis.incident_id.in_(ids)).order_by(Diagnosis.version)


def _verdicts(ids: Sequence[int]) -> Chosen:
    return select(Outcome.__table__).where(Outcome.incident_id.in_(ids)).order_by(Outcome.id)


def _recorded(row: Any, reading: Any, verdicts: Sequence[Any]) -> Recorded:
    """verdicts: oldest first."""
    result = json.loads(reading.result)
    cited = _of_the_cause(result)
    told = verdicts[-1] if verdicts else None
    verdict = told.verdict if told else "none"
    worked = told.worked if told else "unknown"
    fix = told.fix if told else ""
    story = _story(row, result, cited, told)
    return Recorded(
        past=past(row.id, _Summary(row.created_at, verdict), result),
        story=story,
        fingerprint=row.fingerprint,
        version=reading.version,
        signatures=tuple(dict.fromkeys(e["signature"] for e in cited if e.get("signature") and e["role"] == "root")),
        said_type=row.failure_type if story.failure_type != row.failure_type else "",
        cause=told.cause if told else "",
        fix=fix,
        worked=worked,
        note=told.note if told else "",
        told_at=told.at if told else None,
        in_vain=tuple(dict.fromkeys(v.fix for v in verdicts if v.worked == "no" and v.fix not in ("", fix))),
    )


def _story(row: Any, result: Mapping[str, Any], cited: Sequence[Mapping[str, Any]], told: Any) -> KnownIncident:
    """Without where this user's logs lie: that is no likeness."""
    cause = without_consequences(result.get("root_cause", ""))
    for e in cited:
        cause = cause.replace(f"{e['file']}:{e['line']}", "")
    if told and told.cause:
        cause = f"{told.cause}\n{cause}" if told.verdict == "confirmed" else told.cause
    return KnownIncident(
        id=str(row.id),
        org="",
        date=row.created_at.date().isoformat(),
        title=row.title,
        failure_type=(told.failure_type if told else "") or row.failure_type,
        root_cause_class=_true_class(row, told),
        components=(),
        symptoms="\n".join(dict.fromkeys(e["title"] for e in cited if e.get("title"))),
        error_strings=tuple(dict.fromkeys(e["text"] for e in cited)),
        root_cause=cause,
        remediation=(told.fix,) if told and told.fix and told.worked == "yes" else (),
        outcome=told.verdict if told else "none",
    )


def _true_class(row: Any, told: Any) -> str:
    """Where the type turned out another and no class was told, what was said of the class says nothing."""
    if told and told.root_cause_class:
        return str(told.root_cause_class)
    other = told and told.failure_type and told.failure_type != row.failure_type
    return "" if other else str(row.root_cause_class)


def _of_the_cause(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    cited = [e for e in result.get("evidence", ()) if e.get("role") != "benign"]
    found = ([e for e in cited if e.get("role") == "root"] or cited)[:_LINES]
    beside = [e for e in cited if e.get("role") == "context" and e.get("failure_type") not in ("", "unknown", None)]
    return [*found, *[e for e in beside if e not in found][:_BESIDE]]
