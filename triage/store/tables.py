"""The tables of incidents. Migrations create them; a test holds both equal."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from triage.store.columns import Base, Big, Key, parent
from triage.store.part_tables import (
    PARTS,
    Evidence,
    Feedback,
    Hypothesis,
    ModelCall,
    PromptUsed,
    RemediationStep,
    SimilarShown,
    Suspect,
)

__all__ = [
    "PARTS",
    "Attempt",
    "Base",
    "Diagnosis",
    "Evidence",
    "Feedback",
    "Hypothesis",
    "Incident",
    "IncidentNode",
    "Job",
    "ModelCall",
    "Outcome",
    "PromptUsed",
    "RemediationStep",
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
    """A run that failed, hung, was interrupted or went well, and those after it that failed the same way.

    The labels are those of its latest diagnosis; owner: whose job it is, where that is known.
    """

    __tablename__ = "incident"
    # Without AUTOINCREMENT, SQLite gives the id of a deleted incident to the next one, and old links would lie.
    __table_args__ = (
        Index("ix_incident_labels", "root_cause_class", "failure_type", "outcome", "created_at", "gpu_hours"),
        Index("ix_incident_owners", "owner", "outcome", "created_at", "gpu_hours"),
        {"sqlite_autoincrement": True},
    )
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
    owner: Mapped[str | None]


class Attempt(Base):
    """A run of the incident's job: a restart or a task of its array that failed the same way; the first is number 1.

    digest: of its whole input, "" where it cannot be known; begins: of its beginning and place; inputs: JSON, file by file.
    """

    __tablename__ = "attempt"
    __table_args__ = (UniqueConstraint("incident_id", "number"),)
    id: Mapped[Key]
    incident_id: Mapped[int] = parent("incident", index=False)
    number: Mapped[int]
    recorded_at: Mapped[datetime]
    external_id: Mapped[str]
    task: Mapped[str]
    digest: Mapped[str] = mapped_column(index=True)
    begins: Mapped[str] = mapped_column(index=True)
    inputs: Mapped[str]
    last_step: Mapped[Big | None]
    gpu_hours: Mapped[float | None]


class IncidentNode(Base):
    """The nodes of an incident, in order: the suspects, then the others it ran on or that its evidence names."""

    __tablename__ = "incident_node"
    __table_args__ = (UniqueConstraint("incident_id", "node"), Index(None, "node", "incident_id", "suspect"))
    id: Mapped[Key]
    incident_id: Mapped[int] = parent("incident", index=False)
    node: Mapped[str]
    suspect: Mapped[bool]


class Diagnosis(Base):
    """One reading of an incident; a later one is a new version. `result`: the whole `triage.diagnosis/1` object."""

    __tablename__ = "diagnosis"
    __table_args__ = (UniqueConstraint("incident_id", "version"), Index(None, "seconds", "incident_id"))
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
    attempt: Mapped[int] = mapped_column(server_default="1")
    kb_version: Mapped[str | None]  # digest of the knowledge base
    learned_rules: Mapped[str | None]  # JSON list of their ids
    seconds: Mapped[float | None]  # that it took
    recorded_by: Mapped[str | None]  # who ran triage


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
