"""What hangs below a diagnosis."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from triage.store.columns import Base, Big, Key, parent


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


class ModelCall(Base):
    """One call of a model; `error`: the kind of error that it ended with, "" for none."""

    __tablename__ = "model_call"
    __table_args__ = (UniqueConstraint("diagnosis_id", "position"),)
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis", index=False)
    position: Mapped[int]
    model: Mapped[str]
    error: Mapped[str]
    seconds: Mapped[float]
    tokens_in: Mapped[Big]
    tokens_out: Mapped[Big]


class Feedback(Base):
    """A thumb, up or down, about what was shown: similar, step or hypothesis, of which `ref` is the position."""

    __tablename__ = "feedback"
    id: Mapped[Key]
    diagnosis_id: Mapped[int] = parent("diagnosis")
    about: Mapped[str]
    ref: Mapped[str]
    thumb: Mapped[str]
    note: Mapped[str]
    who: Mapped[str]
    via: Mapped[str]
    at: Mapped[datetime]


PARTS: dict[str, type[Base]] = {
    t.__tablename__: t for t in (Evidence, Hypothesis, Suspect, SimilarShown, RemediationStep, PromptUsed, ModelCall)
}
