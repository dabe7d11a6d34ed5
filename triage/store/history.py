"""What earlier incidents say to a new one: the same failure before, and the nodes that were suspected before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, and_, func

from triage.domain import History, PastFailure
from triage.store import clean, details, engine, query, tables
from triage.store.base import Store
from triage.store.values import Filters, IncidentSummary

MOST = 20  # earlier incidents that are looked at


class HistoryReader(Store):
    """Reads only. Errors of each method: StoreError when the database fails."""

    def history(self, fingerprint: str, nodes: Iterable[str] = (), job: str = "", digest: str = "") -> History:
        """Earlier attempts of this fingerprint, newest first, and those in which each node was a suspect.

        What a person rejected does not count. job: the scheduler's id of this one; digest: of its log, not counted in `seen`.
        """
        with engine.reading(self._engine) as connection:
            same = _same(connection, fingerprint, digest) if fingerprint else ()
            suspected = {node: found for node in nodes if (found := _suspected(connection, node))}
            seen = details.seen(connection, fingerprint, job=job, but=digest)
        return History(same, suspected, seen)


def _same(connection: Connection, fingerprint: str, digest: str) -> tuple[PastFailure, ...]:
    chosen = query.choose(Filters()).where(tables.Incident.fingerprint == fingerprint).limit(MOST)
    found = [
        past(summary.id, summary, result, known == digest if known and digest else None)
        for summary, result, known in _attempts(connection, chosen)
        if result.get("fingerprint", fingerprint) == fingerprint
    ]
    return tuple(found[:MOST])


def _suspected(connection: Connection, node: str) -> tuple[int, ...]:
    """An incident as often as it has attempts in which the node was a suspect."""
    chosen = query.choose(Filters(node=node)).limit(MOST)
    name = clean.name(node)
    found = _attempts(connection, chosen)
    return tuple(s.id for s, result, _ in found if name in result.get("suspects", {}).get("nodes", []))


def _attempts(connection: Connection, chosen: query.Chosen) -> Iterator[tuple[IncidentSummary, dict[str, Any], str]]:
    """Each attempt as its latest diagnosis tells it, with the digest of its log, newest first."""
    for summary in query.summaries(connection, chosen):
        if summary.verdict != "rejected":
            for result, digest in connection.execute(_with_digest(details.latest_of_attempts(summary.id))):
                yield summary, json.loads(result), digest


def _with_digest(results: query.Chosen) -> query.Chosen:
    of = (tables.Attempt.incident_id == tables.Diagnosis.incident_id, tables.Attempt.number == tables.Diagnosis.attempt)
    return results.outerjoin(tables.Attempt, and_(*of)).add_columns(func.coalesce(tables.Attempt.digest, ""))


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
        same_log=same_log,
        cited=tuple(e["text"] for e in cited),
    )
