"""Which incident a diagnosis belongs to: the same log read again, a further run of the same job, or something new."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, true

from triage.domain import Diagnosis
from triage.jobids import base_and_task
from triage.store import clean, undigested
from triage.store.tables import Attempt, Incident, Job, Outcome
from triage.store.tables import Diagnosis as Read
from triage.store.values import JobRef

_LOOKED_AT = 20  # readings of the same failure
_PACKED = (".gz", ".xz", ".bz2", ".zst", ".zstd", ".lzma")
_BAD = ("failed", "hung", "interrupted")


@dataclass(frozen=True, slots=True)
class Run:
    """What tells one run from another. digest: of the whole input; begins: of its place, beginning and last run; "" where unknown."""

    digest: str
    begins: str
    inputs: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Known:
    """attempt: that of which this is a further reading; None for a further attempt."""

    incident: int
    attempt: int | None


def run_of(d: Diagnosis) -> Run:
    files = sorted(d.inputs, key=lambda f: f.name)
    known = bool(files) and all(f.digest or f.path == "" for f in files)
    told = [f.digest or _told(d) for f in files]
    start = [r.first_line for r in d.runs[-1:]]
    begins = [(f.path, f.head) for f in files if f.head]
    inputs = clean.dump(clean.tree([asdict(f) for f in files]))
    return Run(
        _sha256(sorted(told)) if known and all(told) else "",
        _sha256([begins, start]) if begins else "",
        inputs,
        sum(f.size for f in files),
    )


def find(
    connection: Connection, d: Diagnosis, run: Run, job: JobRef | None, values: Mapping[str, Any], since: datetime
) -> Known | None:
    """values: the labels of the incident and its owner; since: older ones are another story."""
    return (
        _read_again(connection, run, job)
        or _cited_before(connection, d, job)
        or _wrapped_otherwise(connection, d, run, job, values["fingerprint"])
        or _grown(connection, run, job, values["fingerprint"], since)
        or _further(connection, job, values, since)
    )


def row(run: Run, job: JobRef | None, d: Diagnosis) -> dict[str, Any]:
    """Of the attempt, without its incident and number."""
    external = clean.name(job.external_id) if job else ""
    return {
        "external_id": external,
        "task": base_and_task(external)[1],
        "digest": run.digest,
        "begins": run.begins,
        "inputs": run.inputs,
        "last_step": clean.whole(d.progress.last_step),
        "gpu_hours": job.gpu_hours if job else None,
    }


_EACH = select(Attempt.incident_id, Attempt.number, Attempt.inputs).join_from(Attempt, Incident)


def _read_again(connection: Connection, run: Run, job: JobRef | None) -> Known | None:
    """Byte for byte the same, at any time; logs of two jobs may be alike, and are two."""
    if not run.digest:
        return None
    same = _EACH.where(Attempt.digest == run.digest, _not_another(job)).order_by(Attempt.id.desc()).limit(1)
    found = connection.execute(same).first()
    return Known(found.incident_id, found.number) if found else None


def _wrapped_otherwise(connection: Connection, d: Diagnosis, run: Run, job: JobRef | None, alike: str) -> Known | None:
    """The same log, compressed since or come through a pipe: its file is another, what it says the same to the byte counted."""
    if not (alike and d.evidence):
        return None
    of_attempt = and_(Read.incident_id == Attempt.incident_id, Read.attempt == Attempt.number)
    wanted = _EACH.join(Read, of_attempt).add_columns(Read.result).where(Incident.fingerprint == alike)
    same = [d.compression.bytes_in, d.compression.lines_in, [(e.line, clean.text(e.text)) for e in d.evidence]]
    for row in connection.execute(wanted.where(_not_another(job)).order_by(Read.id.desc()).limit(_LOOKED_AT)):
        if _other_wrapping(json.loads(row.inputs), json.loads(run.inputs)) and _said(json.loads(row.result)) == same:
            return Known(row.incident_id, row.number)
    return None


def _other_wrapping(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Whether what was read may be the same text though not the same files."""
    names, others = ([PurePath(f["name"]).name for f in files] for files in (one, other))
    piped = len(one) == len(other) == 1 and not (one[0]["path"] and other[0]["path"])
    return piped or (names != others and [*map(_unpacked, names)] == [*map(_unpacked, others)])


def _unpacked(name: str) -> str:
    return name.removesuffix(PurePath(name).suffix) if name.endswith(_PACKED) else name


def _said(result: Mapping[str, Any]) -> Sequence[Any]:
    account = result.get("compression", {})
    cited = [(e["line"], e["text"]) for e in result.get("evidence", ())]
    return [account.get("bytes_in"), account.get("lines_in"), cited]


def _cited_before(connection: Connection, d: Diagnosis, job: JobRef | None) -> Known | None:
    base = base_and_task(clean.name(job.external_id))[0] if job else ""
    found = undigested.find(connection, d, base, _not_another(job))
    return Known(*found) if found else None


def _grown(connection: Connection, run: Run, job: JobRef | None, fingerprint: str, since: datetime) -> Known | None:
    """The log of a run that was diagnosed before it was over: it begins alike, is longer, and fails alike or is known by its job."""
    if not run.begins:
        return None
    alike: list[ColumnElement[bool]] = [Incident.fingerprint == fingerprint] if fingerprint else []
    alike += [Attempt.external_id == clean.name(job.external_id)] if job and job.external_id else []
    if not alike:
        return None
    begun = _EACH.where(Attempt.begins == run.begins, Attempt.recorded_at >= since, _not_another(job), or_(*alike))
    found = connection.execute(begun.order_by(Attempt.id.desc()).limit(1)).first()
    if found is None or sum(f["size"] for f in json.loads(found.inputs)) > run.bytes:
        return None
    return Known(found.incident_id, found.number)


def _further(connection: Connection, job: JobRef | None, values: Mapping[str, Any], since: datetime) -> Known | None:
    """Failed in the same way not long ago, and nobody has said yet how that turned out."""
    same_job = _same_job(job, values["owner"])
    if same_job is None or not values["fingerprint"] or values["outcome"] not in _BAD:
        return None
    last = select(func.max(Attempt.recorded_at)).where(Attempt.incident_id == Incident.id).correlate(Incident)
    resolved = select(Outcome.id).where(Outcome.incident_id == Incident.id).exists()
    wanted = (
        select(Incident.id)
        .join_from(Incident, Job)
        .where(Incident.fingerprint == values["fingerprint"], Incident.outcome.in_(_BAD), same_job, ~resolved)
        .where(last.scalar_subquery() >= since)
        .order_by(Incident.id.desc())
        .limit(1)
    )
    found = connection.execute(wanted).first()
    return Known(found.id, None) if found else None


def _same_job(job: JobRef | None, owner: str | None) -> ColumnElement[bool] | None:
    """The same id, array tasks and restarts included; or submitted anew under the same name by the same user."""
    if job is None:
        return None
    base, _ = base_and_task(clean.name(job.external_id))
    ways: list[ColumnElement[bool]] = [Job.external_id == base] if base else []
    if job.name and owner:
        named = (Job.name == clean.name(clean.text(job.name)), Job.fingerprint == clean.name(job.fingerprint))
        ways.append(and_(*named, Incident.owner == owner))
    return and_(Job.scheduler == clean.name(job.scheduler), or_(*ways)) if ways else None


def _not_another(job: JobRef | None) -> ColumnElement[bool]:
    if job is None or not job.external_id:
        return true()
    name = clean.name(job.external_id)
    return Attempt.external_id.in_(("", name, base_and_task(name)[0]))  # older readings knew no tasks


def _told(d: Diagnosis) -> str:
    """Of a stream, which cannot be read again: its size and the lines cited; "" when that tells too little."""
    if not d.evidence:
        return ""
    account = d.compression
    return _sha256([account.bytes_in, account.lines_in, [(e.line, e.text) for e in d.evidence]])


def _sha256(parts: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode("utf-8", "surrogatepass")).hexdigest()
