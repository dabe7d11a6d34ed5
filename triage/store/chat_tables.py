"""Conversations: who asked what about an incident, and what was answered."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped

from triage.store.columns import Base, Key, parent


class ChatSession(Base):
    """A conversation about an incident, or about the whole history. title: its first question."""

    __tablename__ = "chat_session"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - read by SQLAlchemy
    id: Mapped[Key]
    incident_id: Mapped[int | None] = parent("incident")
    who: Mapped[str]
    title: Mapped[str]
    started_at: Mapped[datetime]
    last_at: Mapped[datetime]


class ChatTurn(Base):
    """A question, written when it is asked, and its answer, written when it is whole. state: asked, answered, stopped or failed.

    incident_id: what it was about; tools, citations, notes, prompts: JSON lists.
    """

    __tablename__ = "chat_turn"
    __table_args__ = (UniqueConstraint("chat_session_id", "number"),)
    id: Mapped[Key]
    chat_session_id: Mapped[int] = parent("chat_session", index=False)
    number: Mapped[int]
    incident_id: Mapped[int | None] = parent("incident")
    at: Mapped[datetime]
    state: Mapped[str]
    asked: Mapped[str]
    answer: Mapped[str]
    produced_by: Mapped[str]
    tools: Mapped[str]
    citations: Mapped[str]
    notes: Mapped[str]
    prompts: Mapped[str]
    unsupported: Mapped[int]
