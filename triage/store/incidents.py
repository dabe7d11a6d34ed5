"""The record of incidents. One object, safe for threads; SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, select

from triage.domain import Diagnosis, Filed
from triage.errors import NotFoundError
from triage.store import attempts, clean, details, engine, filing, query, rows, stats, tables, verdicts
from triage.store.base import Store, insert_or_not, insert_row, possible
from triage.store.rule_tables import LearnedSignature
from triage.store.signature_rows import signature_id
from triage.store.stats import Stats
from triage.store.values import Feedback, Filters, IncidentSummary, JobRef, Sort, StoredIncident, Verdict

_ADVISORY_LOCK = 0x7472_6961_6766


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
        """A new incident, whatever there is already; returns its id, which the stored result carries too."""
        return self.file(diagnosis, result_json, job, settings, new=True).incident

    def file(
        self,
        diagnosis: Diagnosis,
        result_json: Mapping[str, Any],
        job: JobRef | None = None,
        settings: Mapping[str, object] | None = None,
        *,
        kb_version: str = "",
        window: timedelta = timedelta(),
        new: bool = False,
    ) -> Filed:
        """Records it where it belongs: the same log read again is a further diagnosis of its incident; a restart or a
        task of the same job that failed alike within `window` of the last one is a further attempt; else it is a new incident.

        new: it is one in any case. The incident takes over the labels of this diagnosis.
        """
        reading = rows.reading(diagnosis, result_json, settings)
        reading.row["kb_version"] = kb_version or None
        reading.row["recorded_by"] = clean.name(clean.text(job.recorded_by)) if job and job.recorded_by else None
        run, now = attempts.run_of(diagnosis), self._clock()
        owner = clean.name(clean.text(job.owner)) if job and job.owner else None
        labels = {**reading.labels, "owner": owner}
        with engine.writing(self._engine) as connection:
            _one_at_a_time(connection)
            known = None if new else attempts.find(connection, diagnosis, run, job, labels, now - window)
            attempt = {**attempts.row(run, job, diagnosis), "recorded_at": now}
            if known is None:
                job_id = _job(connection, job, now) if job and (job.label or job.fingerprint) else None
                incident = insert_row(connection, tables.Incident, {**labels, "created_at": now, "job_id": job_id})
                number = filing.further(connection, incident, attempt)
            elif known.attempt is None:
                incident = known.incident
                number = filing.further(connection, incident, attempt)
            else:
                incident, number = known.incident, known.attempt
                filing.again(connection, incident, number, attempt)
                if number == 1 and job and job.label:  # an older reading may have known less of it
                    filing.relabel(connection, incident, {"job_id": _job(connection, job, now)})
            filing.add_nodes(connection, incident, rows.nodes(diagnosis, job))
            version = filing.add_reading(connection, incident, number, reading, now)
            filing.relabel(connection, incident, labels if owner else reading.labels)
        return Filed(incident, number, version)

    def revise(
        self,
        incident: int,
        diagnosis: Diagnosis,
        result_json: Mapping[str, Any],
        settings: Mapping[str, object] | None = None,
    ) -> int:
        """A later reading of its last attempt; returns its version. The incident takes over its labels. Errors: NotFoundError."""
        reading = rows.reading(diagnosis, result_json, settings)
        with engine.writing(self._engine) as connection:
            _lock(connection, incident)
            number = connection.scalar(details.last_attempt(incident)) or 1
            version = filing.add_reading(connection, incident, number, reading, self._clock())
            filing.relabel(connection, incident, reading.labels)
        return version

    def resolve(self, incident: int, verdict: Verdict) -> Verdict:
        """Adds what turned out of the diagnosis it is said of, and returns it as kept; earlier verdicts stay.

        Errors: NotFoundError, UsageError for a verdict that contradicts itself.
        """
        with engine.writing(self._engine) as connection:
            _lock(connection, incident)
            said = connection.execute(query.labels(incident, verdict.version)).one_or_none()
            if said is None:
                raise NotFoundError(f"incident {incident} has no diagnosis {verdict.version}")
            kept = verdicts.complete(verdict, said.failure_type, said.root_cause_class, said.root_cause)
            kept = replace(kept, at=self._clock(), version=said.version)
            insert_row(connection, tables.Outcome, {"incident_id": incident, **rows.verdict(kept), "at": kept.at})
        return kept

    def give(self, incident: int, feedback: Feedback) -> None:
        """Adds a thumb about something that the latest diagnosis shows. Errors: NotFoundError, also for what it does not show."""
        with engine.writing(self._engine) as connection:
            _lock(connection, incident)
            shown = connection.execute(details.shown(incident, feedback)).first()
            if shown is None:
                raise NotFoundError(f"incident {incident} shows no {feedback.about} {feedback.ref}")
            values = rows.feedback(feedback)
            insert_row(connection, tables.Feedback, {**values, "diagnosis_id": shown.id, "at": self._clock()})

    def forget(self, incident: int) -> tuple[str, ...]:
        """Deletes it with all that hangs on it; the ids of signatures that were learned from it, which stay. Errors: NotFoundError."""
        with engine.writing(self._engine) as connection:
            _lock(connection, incident)
            if connection.dialect.name == "sqlite":  # which else leaves the bytes of a deleted row where they are
                connection.exec_driver_sql("PRAGMA secure_delete=ON")
            job = connection.scalar(select(tables.Incident.job_id).where(tables.Incident.id == incident))
            gave = select(LearnedSignature.id).where(LearnedSignature.incident_id == incident)
            stay = tuple(map(signature_id, connection.scalars(gave.order_by(LearnedSignature.id))))
            connection.execute(delete(tables.Incident).where(tables.Incident.id == incident))
            others = select(tables.Incident.id).where(tables.Incident.job_id == job).exists()
            connection.execute(delete(tables.Job).where(tables.Job.id == job, ~others))
        return stay

    # -------------------------------------------------------------------------------------------- read
    def get(self, incident: int, version: int | None = None) -> StoredIncident:
        """The incident with its latest diagnosis, or the one of that version. Errors: NotFoundError."""
        with engine.reading(self._engine) as connection:
            known = query.summaries(connection, query.one(incident)) if possible(incident) else ()
            summary = next(iter(known), None)
            if summary is None:
                raise NotFoundError(f"no incident {incident}", "see: triage incidents list")
            kept = version is None or possible(version)
            stored = connection.execute(query.diagnosis(incident, version)).mappings().first() if kept else None
            if stored is None:
                raise NotFoundError(
                    f"incident {incident} has no diagnosis {version}", f"see: triage incidents show {incident}"
                )
            return StoredIncident(
                summary=summary,
                result=json.loads(stored["result"]),
                version=stored["version"],
                diagnosed_at=stored["created_at"],
                tool_version=stored["tool_version"],
                settings=json.loads(stored["settings"]),
                job=query.job(connection, summary),
                verdicts=query.verdicts(connection, incident),
                attempts=details.attempts(connection, incident),
                versions=details.versions(connection, incident),
                feedback=details.feedback(connection, incident),
                seen=details.seen(connection, summary.fingerprint, incident),
                kb_version=stored["kb_version"] or "",
            )

    def list(
        self, filters: Filters | None = None, *, sort: Sort = "created", limit: int = 50, offset: int = 0
    ) -> tuple[IncidentSummary, ...]:
        """Newest first, or the most of what is sorted by first."""
        chosen = query.choose(filters or Filters(), sort)
        with engine.reading(self._engine) as connection:
            return query.summaries(connection, chosen.limit(limit).offset(offset))

    def stats(self, filters: Filters | None = None) -> Stats:
        with engine.reading(self._engine) as connection:
            return stats.count(connection, filters or Filters())

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


def _one_at_a_time(connection: Connection) -> None:
    """Two tasks of an array must find each other; SQLite lets one write at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")


def _lock(connection: Connection, incident: int) -> None:
    """The incident's row, for this transaction: two revisions at once get two versions."""
    if (
        not possible(incident)
        or connection.scalar(select(tables.Incident.id).where(tables.Incident.id == incident).with_for_update()) is None
    ):
        raise NotFoundError(f"no incident {incident}", "see: triage incidents list")
