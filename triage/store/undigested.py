"""Logs that an older triage recorded without a digest, by which they would be known again: known by what was cited."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from triage.domain import Diagnosis
from triage.store import clean, tables
from triage.store.tables import Attempt, Evidence, Incident, Job

_TELLS_TIME = re.compile(r"\d\d:\d\d:\d\d")
_COMPARED = 8  # cited lines, the cause's first
_MOST = 50  # readings that begin alike, of which the newest are looked at
_NO_DIGEST = and_(Attempt.digest == "", Attempt.inputs == "[]")


_Line = tuple[str, int, str]  # file, number, text


def find(connection: Connection, d: Diagnosis, base: str, not_another: ColumnElement[bool]) -> tuple[int, int] | None:
    """Incident and attempt of the reading that cites what this diagnosis cites; None for none.

    base: number of its job, "" where that is not known. The newer rules may cite other lines besides, but none may speak
    against it; where the lines tell no time, the log must be as long.
    """
    if (
        not (d.evidence and d.inputs)
        or connection.execute(select(Attempt.id).where(_NO_DIGEST).limit(1)).first() is None
    ):
        return None
    lines = [(PurePath(e.file).name, e.line, clean.text(e.text)) for e in d.evidence]
    likely = [Incident.failure_type == d.failure_type, Incident.fingerprint == d.fingerprint]
    likely += [Job.external_id == base] if base else []
    wanted = (
        select(Attempt.incident_id, Attempt.number, Attempt.external_id, tables.Diagnosis.id, tables.Diagnosis.result)
        .join_from(Attempt, Incident)
        .join(Job, Job.id == Incident.job_id, isouter=True)
        .join(
            tables.Diagnosis,
            and_(tables.Diagnosis.incident_id == Incident.id, tables.Diagnosis.attempt == Attempt.number),
        )
        .join(Evidence, Evidence.diagnosis_id == tables.Diagnosis.id)
        .where(_NO_DIGEST, not_another, or_(*likely))
        .where(or_(*(and_(Evidence.line == line, Evidence.text == text) for _, line, text in lines[:_COMPARED])))
        .order_by(tables.Diagnosis.id.desc())
        .limit(_MOST)
    )
    for row in connection.execute(wanted):
        if _is_it(row, _cited(connection, row.id), d, lines, base):
            return row.incident_id, row.number
    return None


def _cited(connection: Connection, diagnosis: int) -> Sequence[_Line]:
    of = select(Evidence.file, Evidence.line, Evidence.text).where(Evidence.diagnosis_id == diagnosis)
    return [(PurePath(e.file).name, e.line, e.text) for e in connection.execute(of)]


def _is_it(row: Any, cited: Sequence[_Line], d: Diagnosis, now: Sequence[_Line], base: str) -> bool:
    texts = {(file, line): text for file, line, text in now}
    if any(texts.get((file, line), text) != text for file, line, text in cited):
        return False
    both = {(line, text) for _, line, text in cited} & {(line, text) for _, line, text in now}
    if any(_TELLS_TIME.search(text) for _, text in both):
        return True
    size = json.loads(row.result).get("compression", {}).get("bytes_in", 0)
    return size == d.compression.bytes_in if size else bool(base and row.external_id)
