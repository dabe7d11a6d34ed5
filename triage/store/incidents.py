"""The record of incidents. One object, safe for threads; SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, update

from triage.domain import Diagnosis
from triage.errors import NotFoundError
from triage.store import clean, engine, query, rows, tables, verdicts
from triage.store.base import Store, insert_or_not, insert_row, insert_rows, possible
from triage.store.values import IncidentSummary, JobRef, StoredIncident, Verdict


class IncidentStore(Store):
    """Incidents, their diagnoses, and what turned out. Errors of each method: StoreError when the database fails."""

    # -------------------------------------------------------------------------------------------- write
    def record(
        self,
        diagnosis: Diagnosis,
        result_json: Mapping[str, Any],
        job: JobRef | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> int:
        """A new incident; returns its id, which the stored result carries too."""
        reading = rows.reading(diagnosis, result_json, settings)
        nodes = rows.nodes(diagnosis, job)
        now = self._clock()
        with engine.writing(self._engine) as connection:
            values = {
                **reading.labels,
                "created_at": now,
                "job_id": _job(connection, job, now) if job else None,
                "gpu_hours": job.gpu_hours if job else None,
            }
            incident = insert_row(connection, tables.Incident, values)
            insert_rows(connection, tables.IncidentNode, nodes, incident_id=incident)
            _add(connection, reading, {"incident_id": incident, "version": 1, "created_at": now})
        return incident

    def revise(
        self,
        incident: int,
        diagnosis: Diagnosis,
        result_json: Mapping[str, Any],
        settings: Mapping[str, object] | None = None,
    ) -> int:
        """A later reading; returns its version. The incident takes over its labels. Errors: NotFoundError."""
        reading = rows.reading(diagnosis, result_json, settings)
        with engine.writing(self._engine) as connection:
            _lock(connection, incident)
            of_incident = tables.Diagnosis.incident_id == incident
            version = (connection.scalar(select(func.max(tables.Diagnosis.version)).where(of_incident)) or 0) + 1
            _add(connection, reading, {"incident_id": incident, "version": version, "created_at": self._clock()})
            connection.execute(update(tables.Incident).where(tables.Incident.id == incident).values(reading.labels))
        return version

    def resolve(self, incident: int, verdict: Verdict) -> Verdict:
        """Adds what turned out of the latest diagnosis, and returns it as kept; earlier verdicts stay.

        Errors: NotFoundError, UsageError for a verdict that contradicts itself.
        """
        with engine.writing(self._engine) as connection:
            _lock(connection, incident)
            said = connection.execute(query.labels(incident)).one()
            kept = verdicts.complete(verdict, said.failure_type, said.root_cause_class)
            kept = replace(kept, at=self._clock(), version=said.version)
            insert_row(connection, tables.Outcome, {"incident_id": incident, **rows.verdict(kept), "at": kept.at})
        return kept

    # -------------------------------------------------------------------------------------------- read
    def get(self, incident: int, version: int | None = None) -> StoredIncident:
        """The incident with its latest diagnosis, or the one of that version. Errors: NotFoundError."""
        with engine.reading(self._engine) as connection:
            known = query.summaries(connection, query.one(incident)) if possible(incident) else ()
            summary = next(iter(known), None)
            stored = connection.execute(query.diagnosis(incident, version)).mappings().first() if summary else None
            if summary is None or stored is None:
                what = (
                    f"no incident {incident}"
                    if version is None or summary is None
                    else f"incident {incident} has no version {version}"
                )
                raise NotFoundError(what, "see: triage incidents list")
            return StoredIncident(
                summary=summary,
                result=json.loads(stored["result"]),
                version=stored["version"],
                diagnosed_at=stored["created_at"],
                tool_version=stored["tool_version"],
                settings=json.loads(stored["settings"]),
                job=query.job(connection, summary),
                verdicts=query.verdicts(connection, incident),
            )

    def list(
        self,
        *,
        outcome: str | None = None,
        failure_type: str | None = None,
        node: str | None = None,
        since: datetime | None = None,
        text: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[IncidentSummary, ...]:
        """Newest first. since: aware; text: found anywhere in title, cause or cited lines, whatever its case."""
        chosen = query.choose(outcome=outcome, failure_type=failure_type, node=node, since=since, text=text)
        with engine.reading(self._engine) as connection:
            return query.summaries(connection, chosen.limit(limit).offset(offset))

    def count_fingerprint(self, fingerprint: str) -> int:
        """How many incidents failed the same way; 0 for an empty fingerprint."""
        if not fingerprint:
            return 0
        same = select(func.count()).select_from(tables.Incident).where(tables.Incident.fingerprint == fingerprint)
        with engine.reading(self._engine) as connection:
            return connection.scalar(same) or 0


def _job(connection: Connection, job: JobRef, now: datetime) -> int:
    """The id of the job's row, which two processes may try to make at once."""
    values = rows.job(job)
    known_or_new = insert_or_not(connection)(tables.Job).values(**values, first_seen=now).on_conflict_do_nothing()
    connection.execute(known_or_new)
    return connection.execute(select(tables.Job.id).filter_by(**values)).scalar_one()


def _add(connection: Connection, reading: rows.Reading, keys: Mapping[str, Any]) -> None:
    """A diagnosis and all below it; the result learns the incident's id."""
    result = clean.dump({**reading.result, "incident": keys["incident_id"]})
    diagnosis = insert_row(connection, tables.Diagnosis, {**reading.row, **keys, "result": result})
    for table, found in reading.parts:
        insert_rows(connection, tables.PARTS[table], found, diagnosis_id=diagnosis)


def _lock(connection: Connection, incident: int) -> None:
    """The incident's row, for this transaction: two revisions at once get two versions."""
    if (
        not possible(incident)
        or connection.scalar(select(tables.Incident.id).where(tables.Incident.id == incident).with_for_update()) is None
    ):
        raise NotFoundError(f"no incident {incident}", "see: triage incidents list")
