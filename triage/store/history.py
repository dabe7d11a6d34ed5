"""What earlier incidents say to a new one: the same failure before, and the nodes that were suspected before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from triage.domain import History, PastFailure
from triage.store import clean, engine, query, tables
from triage.store.base import Store

MOST = 20  # earlier incidents that are looked at


class HistoryReader(Store):
    """Reads only. Errors of each method: StoreError when the database fails."""

    def history(self, fingerprint: str, nodes: Iterable[str] = ()) -> History:
        """Earlier incidents of this fingerprint, newest first, and those in which each node was a suspect.

        What a person rejected does not count.
        """
        with engine.reading(self._engine) as connection:
            same = self._same(connection, fingerprint) if fingerprint else ()
            suspected = {node: found for node in nodes if (found := _suspected(connection, node))}
        return History(same, suspected)

    def _same(self, connection: Connection, fingerprint: str) -> tuple[PastFailure, ...]:
        chosen = _newest().where(tables.Incident.fingerprint == fingerprint).limit(MOST)
        found = [s for s in query.summaries(connection, chosen) if s.verdict != "rejected"]
        return tuple(past(s.id, s, _result(connection, s.id)) for s in found)


def _newest() -> query.Chosen:
    return query.choose(outcome=None, failure_type=None, node=None, since=None, text=None)


def _suspected(connection: Connection, node: str) -> tuple[int, ...]:
    chosen = query.choose(outcome=None, failure_type=None, node=node, since=None, text=None).limit(MOST)
    found = [s.id for s in query.summaries(connection, chosen) if s.verdict != "rejected"]
    name = clean.name(node)
    return tuple(i for i in found if name in _result(connection, i).get("suspects", {}).get("nodes", []))


def _result(connection: Connection, incident: int) -> dict[str, Any]:
    stored = connection.execute(query.diagnosis(incident, None)).mappings().first()
    found: dict[str, Any] = json.loads(stored["result"]) if stored else {}
    return found


def past(incident: int, summary: Any, result: Mapping[str, Any]) -> PastFailure:
    """summary: has created_at and verdict; result: its `triage.diagnosis/1` object."""
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
    )
