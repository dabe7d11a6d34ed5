"""The tables of what was learned: filter rules of kinds of job, signatures, what became of both, and good runs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from triage.store.columns import Base, Big, Key, parent


class JobKind(Base):
    """A kind of job, as its logs tell it; `key` is a hash of what it is known by. `features`: JSON list."""

    __tablename__ = "job_kind"
    __table_args__ = (UniqueConstraint("key"),)
    id: Mapped[Key]
    key: Mapped[str]
    features: Mapped[str]
    first_seen: Mapped[datetime]


class Rule(Base):
    """A filter rule of a kind of job. Its state is that of its latest event; `digest`: SHA-256 of the pattern."""

    __tablename__ = "rule"
    # A number that an event or a note of an incident names must never come to mean another rule.
    __table_args__ = (UniqueConstraint("job_kind_id", "digest"), {"sqlite_autoincrement": True})
    id: Mapped[Key]
    job_kind_id: Mapped[int] = parent("job_kind", index=False)
    digest: Mapped[str]
    pattern: Mapped[str]
    title: Mapped[str]
    examples: Mapped[str]  # JSON list
    counter_examples: Mapped[str]  # JSON list
    state: Mapped[str]
    reason: Mapped[str]
    source: Mapped[str]
    model: Mapped[str]
    prompts: Mapped[str]  # JSON list of name, version, sha256
    sample: Mapped[str]
    lines: Mapped[str]  # JSON list
    votes: Mapped[int]
    asked: Mapped[int]
    hits: Mapped[Big]
    runs: Mapped[Big]
    created_at: Mapped[datetime]
    last_used: Mapped[datetime | None]
    approved_by: Mapped[str]


class RuleChange(Base):
    """Something that was done to rules at once, and can be undone at once. `undoes`: the change that it took back."""

    __tablename__ = "rule_change"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - read by SQLAlchemy
    id: Mapped[Key]
    at: Mapped[datetime]
    who: Mapped[str]
    what: Mapped[str]
    undoes: Mapped[int | None] = mapped_column(ForeignKey("rule_change.id", ondelete="SET NULL"))


class RuleEvent(Base):
    """A rule went from one state to another; `before` is empty for its first. Never changed, only added to."""

    __tablename__ = "rule_event"
    id: Mapped[Key]
    change_id: Mapped[int] = parent("rule_change")
    rule_id: Mapped[int] = parent("rule")
    before: Mapped[str]
    after: Mapped[str]
    reason: Mapped[str]


class GoodRun(Base):
    """A run that went well, in brief, to compare later runs of its kind with. `profile`: JSON, without secrets."""

    __tablename__ = "good_run"
    __table_args__ = (UniqueConstraint("incident_id"),)
    id: Mapped[Key]
    job_kind_id: Mapped[int] = parent("job_kind")
    incident_id: Mapped[int] = parent("incident", index=False)
    at: Mapped[datetime]
    profile: Mapped[str]


class LearnedSignature(Base):
    """A failure signature that an incident gave. `digest`: SHA-256 of the pattern and the failure type."""

    __tablename__ = "learned_signature"
    __table_args__ = (UniqueConstraint("digest"), {"sqlite_autoincrement": True})
    id: Mapped[Key]
    incident_id: Mapped[int | None] = mapped_column(ForeignKey("incident.id", ondelete="SET NULL"), index=True)
    digest: Mapped[str]
    pattern: Mapped[str]
    title: Mapped[str]
    failure_type: Mapped[str]
    root_cause_class: Mapped[str]
    outcome: Mapped[str]
    remedy: Mapped[str]
    state: Mapped[str]
    reason: Mapped[str]
    source: Mapped[str]
    model: Mapped[str]
    prompts: Mapped[str]  # JSON list of name, version, sha256
    sample: Mapped[str]
    lines: Mapped[str]  # JSON list
    who: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    approved_by: Mapped[str]


class SignatureEvent(Base):
    """A learned signature went from one state to another, in a change that rules may be part of too."""

    __tablename__ = "signature_event"
    id: Mapped[Key]
    change_id: Mapped[int] = parent("rule_change")
    signature_id: Mapped[int] = parent("learned_signature")
    before: Mapped[str]
    after: Mapped[str]
    reason: Mapped[str]


class SignatureOutcome(Base):
    """What an incident that the signature matches turned out to be: confirmed or contradicted; the latest word counts."""

    __tablename__ = "signature_outcome"
    __table_args__ = (UniqueConstraint("signature_id", "incident_id"),)
    id: Mapped[Key]
    signature_id: Mapped[int] = parent("learned_signature", index=False)
    incident_id: Mapped[int] = parent("incident")
    verdict: Mapped[str]
