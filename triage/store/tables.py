"""The tables. Migrations create them; a test holds both equal."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from triage.store.columns import Base, Big, Key, parent
from triage.store.rule_tables import (
    GoodRun,
    JobKind,
    LearnedSignature,
    Rule,
    RuleChange,
    RuleEvent,
    SignatureEvent,
    SignatureOutcome,
)

__all__ = [
    "PARTS",
    "Base",
    "Diagnosis",
    "Evidence",
    "GoodRun",
    "Hypothesis",
    "Incident",
    "IncidentNode",
    "Job",
    "JobKind",
    "LearnedSignature",
    "Outcome",
    "PromptUsed",
    "RemediationStep",
    "Rule",
    "RuleChange",
    "RuleEvent",
    "SignatureEvent",
    "SignatureOutcome",
    "SimilarShown",
    "Suspect",
]


class Job(Base):
    """A job of a scheduler; `fingerprint` is of what it runs."""

    __tablename__ = "job"
    __table_args__ = (UniqueConstraint("scheduler", "external_id", "name", "fingerprint"),)
    id: Mapped[Key]
    scheduler: Mapped[str]
    external_id: Mapped[str]
    name: Mapped[str]
    fingerprint: Mapped[str]
    first_seen: Mapped[datetime]


class Incident(Base):
    """One failed (or hung, interrupted, healthy) run; the labels are those of its latest diagnosis."""

    __tablename__ = "incident"
    # Without AUTOINCREMENT, SQLite gives the id of a deleted incident to the next one, and old links would lie.
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - read by SQLAlchemy
    id: Mapped[Key]
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id", ondelete="SET NULL"), index=True)
    created_at: Mapped[datetime] = mapped_column(index=True)
    title: Mapped[str]
    outcome: Mapped[str]
    failure_type: Mapped[str] = mapped_column(index=True)
    category: Mapped[str]
    root_cause_class: Mapped[str]
    status: Mapped[str]
    action: Mapped[str]
    fingerprint: Mapped[str] = mapped_column(index=True)
    gpu_hours: Mapped[float | None]


class IncidentNode(Base):
    """The nodes of an incident, in order: the suspects, then the others it ran on or that its evidence names."""

    __tablename__ = "incident_node"
    __table_args__ = (UniqueConstraint("incident_id", "node"), Index(None, "node"))
    id: Mapped[Key]
    incident_id: Mapped[int] = parent("incident", index=False)
    node: Mapped[str]
    suspect: Mapped[bool]


class Diagnosis(Base):
    """One reading of an incident; a later one is a new version. `result`: the whole `triage.diagnosis/1` object."""

    __tablename__ = "diagnosis"
    __table_args__ = (UniqueConstraint("incident_id", "version"),)
    id: Mapped[Key]
    incident_id: Mapped[int] = parent("incident", index=False)
    version: Mapped[int]
    created_at: Mapped[datetime]
    produced_by: Mapped[str]
    tool_version: Mapped[str]
    outcome: Mapped[str]
    failure_type: Mapped[str]
    root_cause_class: Mapped[str]
    status: Mapped[str]
    root_cause: Mapped[str]
    action: Mapped[str]
    result: Mapped[str]
    timing: Mapped[str]  # JSON: seconds per stage
    usage: Mapped[str]  # JSON: model calls, tokens in and out
    settings: Mapped[str]  # JSON, without secrets


class Evidence(Base):
    """One cited line; `ref` is the id it has in the result ("E1")."""

    __tablename__ = "evidence"
    __table_args__ = (UniqueConstraint("diagnosis_id", "ref"),)
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    ref: Mapped[str]
    file: Mapped[str]
    line: Mapped[Big]
    text: Mapped[str]
    role: Mapped[str]
    failure_type: Mapped[str]
    title: Mapped[str]
    signature: Mapped[str] = mapped_column(index=True)
    rank: Mapped[Big | None]
    node: Mapped[str | None]
    gpu: Mapped[str | None]
    time: Mapped[datetime | None]
    repeats: Mapped[Big]


class Hypothesis(Base):
    __tablename__ = "hypothesis"
    __table_args__ = (UniqueConstraint("diagnosis_id", "position"),)
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    position: Mapped[int]
    failure_type: Mapped[str]
    root_cause_class: Mapped[str]
    root_cause: Mapped[str]
    status: Mapped[str]
    supporting: Mapped[str]  # JSON list of evidence refs
    against: Mapped[str]
    check: Mapped[str]


class Suspect(Base):
    """kind: node, rank or gpu; a rank is kept as its number in text."""

    __tablename__ = "suspect"
    __table_args__ = (UniqueConstraint("diagnosis_id", "kind", "name"), Index(None, "kind", "name"))
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    kind: Mapped[str]
    name: Mapped[str]


class SimilarShown(Base):
    """A past incident shown beside the diagnosis; `incident` is an id of the knowledge base or of this database."""

    __tablename__ = "similar_shown"
    __table_args__ = (UniqueConstraint("diagnosis_id", "position"),)
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    position: Mapped[int]
    incident: Mapped[str]
    title: Mapped[str]
    score: Mapped[float]
    why: Mapped[str]
    outcome: Mapped[str]


class RemediationStep(Base):
    __tablename__ = "remediation_step"
    __table_args__ = (UniqueConstraint("diagnosis_id", "position"),)
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    position: Mapped[int]
    step: Mapped[str]
    command: Mapped[str]
    why: Mapped[str]
    risk: Mapped[str]
    evidence: Mapped[str]  # JSON list of evidence refs
    incidents: Mapped[str]  # JSON list


class PromptUsed(Base):
    __tablename__ = "prompt_used"
    __table_args__ = (UniqueConstraint("diagnosis_id", "position"),)
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    position: Mapped[int]
    name: Mapped[str]
    version: Mapped[str]
    sha256: Mapped[str]


class Outcome(Base):
    """What turned out: verdict confirmed|corrected|rejected, worked yes|no|unknown. Never changed, only added to.

    failure_type, root_cause_class: what it truly was, as far as that is known; version: of the diagnosis it is said of.
    """

    __tablename__ = "outcome"
    id: Mapped[Key]
    incident_id: Mapped[int] = parent("incident")
    verdict: Mapped[str]
    cause: Mapped[str]
    fix: Mapped[str]
    worked: Mapped[str]
    note: Mapped[str]
    who: Mapped[str]
    at: Mapped[datetime]
    via: Mapped[str]
    failure_type: Mapped[str | None]
    root_cause_class: Mapped[str | None]
    version: Mapped[int] = mapped_column(server_default="1")


PARTS: dict[str, type[Base]] = {
    t.__tablename__: t for t in (Evidence, Hypothesis, Suspect, SimilarShown, RemediationStep, PromptUsed)
}
