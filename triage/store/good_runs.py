"""Runs that went well, in brief: the last few of each kind of job, to compare later ones with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select

from triage.domain import JobPrint
from triage.store import clean, engine, rule_rows
from triage.store.base import Store, insert_or_not, insert_row
from triage.store.rule_tables import GoodRun, JobKind
from triage.store.tables import Incident

KEPT = 3  # of a kind of job
MOST = 200  # that are looked at together


@dataclass(frozen=True, slots=True)
class StoredRun:
    incident: int
    at: datetime
    profile: Mapping[str, Any]


class GoodRunStore(Store):
    """Errors of each method: StoreError when the database fails."""

    def add(self, job: JobPrint, incident: int, profile: Mapping[str, Any]) -> None:
        """Keeps the run of this incident; older ones of its kind beyond the last few go."""
        now = self._clock()
        row = rule_rows.job_kind(job) | {"first_seen": now}
        text = clean.dump(clean.tree(profile))
        with engine.writing(self._engine) as connection:
            connection.execute(insert_or_not(connection)(JobKind).values(**row).on_conflict_do_nothing())
            held = select(JobKind.id).where(JobKind.key == row["key"]).with_for_update()
            kind = connection.execute(held).scalar_one()
            connection.execute(delete(GoodRun).where(GoodRun.incident_id == incident))
            insert_row(connection, GoodRun, {"job_kind_id": kind, "incident_id": incident, "at": now, "profile": text})
            newest = select(GoodRun.id).where(GoodRun.job_kind_id == kind).order_by(GoodRun.id.desc())
            old = list(connection.scalars(newest.offset(KEPT)))
            if old:
                connection.execute(delete(GoodRun).where(GoodRun.id.in_(old)))

    def jobs(self) -> tuple[JobPrint, ...]:
        """The kinds of job of which a run is kept."""
        known = select(JobKind.key, JobKind.features).where(JobKind.id.in_(select(GoodRun.job_kind_id)))
        with engine.reading(self._engine) as connection:
            return tuple(JobPrint(key, tuple(json.loads(features))) for key, features in connection.execute(known))

    def last(self, keys: Sequence[str]) -> StoredRun | None:
        """The newest run of these kinds of job that is still held for healthy."""
        wanted = (
            select(GoodRun.incident_id, GoodRun.at, GoodRun.profile)
            .join_from(GoodRun, JobKind)
            .join(Incident, Incident.id == GoodRun.incident_id)
            .where(JobKind.key.in_(keys), Incident.outcome == "healthy")
            .order_by(GoodRun.id.desc())
            .limit(1)
        )
        with engine.reading(self._engine) as connection:
            row = connection.execute(wanted).first()
        return StoredRun(row.incident_id, row.at, json.loads(row.profile)) if row else None

    def all(self, limit: int = MOST) -> tuple[StoredRun, ...]:
        """The newest runs of any kind of job that are still held for healthy."""
        kept = (
            select(GoodRun.incident_id, GoodRun.at, GoodRun.profile)
            .join_from(GoodRun, Incident)
            .where(Incident.outcome == "healthy")
            .order_by(GoodRun.id.desc())
            .limit(limit)
        )
        with engine.reading(self._engine) as connection:
            return tuple(
                StoredRun(row.incident_id, row.at, json.loads(row.profile)) for row in connection.execute(kept)
            )
