"""What the store takes and returns of conversations. No SQLAlchemy here, so a face may import it for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

TurnState = Literal["asked", "answered", "stopped", "failed"]  # asked: it never ended, as after a kill


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A question and its answer. produced_by: code or llm:MODEL; unsupported: sentences of a model that were dropped or marked.

    tools: name, what it was used for, problem; citations: file, line, text, id; prompts: name, version, sha256.
    """

    asked: str
    answer: str = ""
    state: TurnState = "answered"
    produced_by: str = "code"
    tools: tuple[Mapping[str, Any], ...] = ()
    citations: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    unsupported: int = 0
    number: int = 0
    incident: int | None = None
    at: datetime | None = None  # the store sets it


@dataclass(frozen=True, slots=True)
class StoredChat:
    """A conversation; turns: oldest first, none where only its head was asked for. incident: what it is about now."""

    id: int
    who: str
    title: str
    started_at: datetime
    last_at: datetime
    incident: int | None = None
    count: int = 0
    turns: tuple[StoredTurn, ...] = ()
