"""Writes what a diagnosis adds to its incident, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, update

from triage.store import clean, rows
from triage.store.base import insert_row, insert_rows
from triage.store.tables import PARTS, Attempt, Diagnosis, Incident, IncidentNode


def further(connection: Connection, incident: int, attempt: Mapping[str, Any]) -> int:
    """A new attempt; its number."""
    last = connection.scalar(select(func.max(Attempt.number)).where(Attempt.incident_id == incident)) or 0
    insert_row(connection, Attempt, {**attempt, "incident_id": incident, "number": last + 1})
    _add_up(connection, incident)
    return last + 1


def again(connection: Connection, incident: int, number: int, attempt: Mapping[str, Any]) -> None:
    """The attempt as its log is now; when it was recorded first, and hours that are not known this time, stay."""
    known = {k: v for k, v in attempt.items() if k != "recorded_at" and (k != "gpu_hours" or v is not None)}
    this = (Attempt.incident_id == incident, Attempt.number == number)
    connection.execute(update(Attempt).where(*this).values(known))
    _add_up(connection, incident)


def add_nodes(connection: Connection, incident: int, nodes: Sequence[rows.Row]) -> None:
    """Those it has already stay; one that was a suspect once is one."""
    of_incident = select(IncidentNode.node, IncidentNode.suspect).where(IncidentNode.incident_id == incident)
    known = {row.node: row.suspect for row in connection.execute(of_incident)}
    insert_rows(connection, IncidentNode, [n for n in nodes if n["node"] not in known], incident_id=incident)
    named = [n["node"] for n in nodes if n["suspect"] and known.get(n["node"]) is False]
    if named:
        these = (IncidentNode.incident_id == incident, IncidentNode.node.in_(named))
        connection.execute(update(IncidentNode).where(*these).values(suspect=True))


def add_reading(connection: Connection, incident: int, attempt: int, reading: rows.Reading, now: datetime) -> int:
    """A diagnosis and all below it; its version. The result learns the incident's number."""
    of_incident = Diagnosis.incident_id == incident
    version = (connection.scalar(select(func.max(Diagnosis.version)).where(of_incident)) or 0) + 1
    result = clean.dump({**reading.result, "incident": incident, **({"attempt": attempt} if attempt > 1 else {})})
    keys = {"incident_id": incident, "version": version, "attempt": attempt, "created_at": now, "result": result}
    diagnosis = insert_row(connection, Diagnosis, {**reading.row, **keys})
    for table, found in reading.parts:
        insert_rows(connection, PARTS[table], found, diagnosis_id=diagnosis)
    return version


def relabel(connection: Connection, incident: int, labels: Mapping[str, Any]) -> None:
    connection.execute(update(Incident).where(Incident.id == incident).values(labels))


def _add_up(connection: Connection, incident: int) -> None:
    """The hours of all attempts; None while none is known."""
    hours = select(func.sum(Attempt.gpu_hours)).where(Attempt.incident_id == incident).scalar_subquery()
    connection.execute(update(Incident).where(Incident.id == incident).values(gpu_hours=hours))
