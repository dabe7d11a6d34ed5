"""What earlier incidents say to a new one: the same failure before, and the nodes that were suspected before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, func, select

from triage.domain import History, PastFailure
from triage.store import clean, details, engine, query, tables
from triage.store.base import Store
from triage.store.values import Filters, IncidentSummary, JobRef

MOST = 20  # earlier incidents, and attempts of each, that are looked at


class HistoryReader(Store):
    """Reads only. Errors of each method: StoreError when the database fails."""

    def history(
        self, fingerprint: str, nodes: Iterable[str] = (), job: JobRef | None = None, digest: str = ""
    ) -> History:
        """Other attempts of this fingerprint, newest first, and those in which each node was a suspect.

        What a person rejected does not count. job: of this one; digest: of its log: `seen` and the nodes
        are told as of when that was read first.
        """
        with engine.reading(self._engine) as connection:
            same = _same(connection, fingerprint, digest) if fingerprint else ()
            read = _first_read(connection, digest)
            suspected = {node: found for node in nodes if (found := _suspected(connection, node, read))}
            seen = details.seen(connection, fingerprint, job=job, but=digest, before=read)
        return History(same, suspected, seen)


def _same(connection: Connection, fingerprint: str, digest: str) -> tuple[PastFailure, ...]:
    chosen = query.choose(Filters()).where(tables.Incident.fingerprint == fingerprint).limit(MOST)
    found = [
        replace(
            past(summary.id, summary, result, row.digest == digest if row.digest and digest else None),
            at=row.recorded_at or summary.created_at,
            places=frozenset(file["path"] for file in json.loads(row.inputs) if file["path"]),
        )
        for summary, result, row in _attempts(connection, chosen)
        if result.get("fingerprint", fingerprint) == fingerprint
    ]
    return tuple(found[:MOST])


def _first_read(connection: Connection, digest: str) -> datetime | None:
    """When the log of this digest was recorded; None where it was not."""
    if not digest:
        return None
    return connection.scalar(select(func.min(tables.Attempt.recorded_at)).where(tables.Attempt.digest == digest))


def _suspected(connection: Connection, node: str, before: datetime | None) -> tuple[int, ...]:
    """An incident as often as it has attempts in which the node was a suspect. before: of those recorded until then."""
    chosen = query.choose(Filters(node=node)).limit(MOST)
    name = clean.name(node)
    found = _attempts(connection, chosen)
    earlier = ((s, result) for s, result, row in found if before is None or row.recorded_at <= before)
    return tuple(s.id for s, result in earlier if name in result.get("suspects", {}).get("nodes", []))


def _attempts(connection: Connection, chosen: query.Chosen) -> Iterator[tuple[IncidentSummary, dict[str, Any], Any]]:
    """Each attempt as its latest diagnosis tells it, with its digest, inputs and recorded_at, newest first; of an array of
    thousands of tasks the newest."""
    for summary in query.summaries(connection, chosen):
        if summary.verdict != "rejected":
            for row in connection.execute(_with_attempt(details.latest_of_attempts(summary.id)).limit(MOST)):
                yield summary, json.loads(row.result), row


def _with_attempt(results: query.Chosen) -> query.Chosen:
    of = (tables.Attempt.incident_id == tables.Diagnosis.incident_id, tables.Attempt.number == tables.Diagnosis.attempt)
    return results.outerjoin(tables.Attempt, and_(*of)).add_columns(
        func.coalesce(tables.Attempt.digest, "").label("digest"),
        func.coalesce(tables.Attempt.inputs, "[]").label("inputs"),
        tables.Attempt.recorded_at,
    )


def past(incident: int, summary: Any, result: Mapping[str, Any], same_log: bool | None = None) -> PastFailure:
    """summary: has created_at and verdict; result: its `triage.diagnosis/1` object; same_log: as that of the one at hand."""
    reached, cited = result.get("progress", {}), result.get("evidence", [])
    return PastFailure(
        incident=incident,
        at=summary.created_at,
        nodes=tuple(result.get("suspects", {}).get("nodes", [])),
        last_step=reached.get("last_step"),
        world_size=reached.get("world_size"),
        first_line=cited[0]["text"] if cited else "",
        bytes_in=result.get("compression", {}).get("bytes_in", 0),
        verdict=summary.verdict,
        job=result.get("job", ""),
        job_name=result.get("job_name", ""),
        job_user=result.get("job_user", ""),
        same_log=same_log,
        cited=tuple(e["text"] for e in cited),
        failed_at=datetime.fromisoformat(cited[0]["time"]) if cited and cited[0].get("time") else None,
    )
