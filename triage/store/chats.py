"""Conversations, written turn by turn: what is lost with the process is the running answer at most."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, func, select, update

from triage.errors import NotFoundError
from triage.store import clean, engine
from triage.store.base import Store, insert_row, possible
from triage.store.chat_tables import ChatSession, ChatTurn
from triage.store.chat_values import StoredChat, StoredTurn
from triage.store.query import Chosen
from triage.store.tables import Incident

TITLE_WIDTH = 100
MOST_ASKED, MOST_ANSWER = 20_000, 200_000  # characters that are kept
_LISTS = ("tools", "citations", "notes", "prompts")
_COUNT = select(func.count()).where(ChatTurn.chat_session_id == ChatSession.id).correlate(ChatSession).scalar_subquery()
_HEADS = select(*ChatSession.__table__.c, _COUNT.label("count"))


class ChatStore(Store):
    """Errors of each method: StoreError when the database fails."""

    # -------------------------------------------------------------------------------------------- write
    def begin(self, who: str, incident: int | None = None) -> int:
        """A new conversation; its id. Errors: NotFoundError for an incident that is not there."""
        now = self._clock()
        values = {"incident_id": incident, "who": clean.name(clean.text(who)), "title": ""}
        with engine.writing(self._engine) as connection:
            _check(connection, incident)
            return insert_row(connection, ChatSession, values | {"started_at": now, "last_at": now})

    def ask(self, chat: int, asked: str, incident: int | None = None) -> int:
        """A question, before it is answered; the number of its turn. Errors: NotFoundError."""
        now, said = self._clock(), clean.text(asked[:MOST_ASKED])
        with engine.writing(self._engine) as connection:
            _lock(connection, chat)
            _check(connection, incident)
            last = select(func.max(ChatTurn.number)).where(ChatTurn.chat_session_id == chat)
            number = (connection.scalar(last) or 0) + 1
            row = _row(StoredTurn(said, state="asked")) | {"incident_id": incident, "number": number, "at": now}
            insert_row(connection, ChatTurn, row | {"chat_session_id": chat})
            head: dict[str, Any] = {"last_at": now}
            if number == 1:
                head["title"] = " ".join(said.split())[:TITLE_WIDTH]
            connection.execute(update(ChatSession).where(ChatSession.id == chat).values(head))
        return number

    def answer(self, chat: int, number: int, turn: StoredTurn) -> None:
        """The answer to a turn that was asked; the question stays as it was."""
        values = {name: value for name, value in _row(turn).items() if name != "asked"}
        this = (ChatTurn.chat_session_id == chat, ChatTurn.number == number)
        with engine.writing(self._engine) as connection:
            connection.execute(update(ChatTurn).where(*this).values(values))
            connection.execute(update(ChatSession).where(ChatSession.id == chat).values(last_at=self._clock()))

    # -------------------------------------------------------------------------------------------- read
    def get(self, chat: int) -> StoredChat:
        """With all its turns. Errors: NotFoundError."""
        with engine.reading(self._engine) as connection:
            wanted = _HEADS.where(ChatSession.id == chat)
            head = connection.execute(wanted).mappings().first() if possible(chat) else None
            if head is None:
                raise _unknown(chat)
            of_chat = select(ChatTurn.__table__).where(ChatTurn.chat_session_id == chat).order_by(ChatTurn.number)
            turns = tuple(map(_turn, connection.execute(of_chat).mappings()))
        return _chat(head, turns)

    def list(
        self, who: str | None = None, incident: int | None = None, limit: int = 20, asked: bool = False
    ) -> tuple[StoredChat, ...]:
        """The latest first, without their turns. asked: only those in which something was asked."""
        chosen: Chosen = _HEADS.order_by(ChatSession.last_at.desc(), ChatSession.id.desc()).limit(limit)
        if asked:
            chosen = chosen.where(_COUNT > 0)
        if who is not None:
            chosen = chosen.where(ChatSession.who == clean.name(clean.text(who)))
        if incident is not None:
            chosen = chosen.where(ChatSession.incident_id == incident)
        with engine.reading(self._engine) as connection:
            return tuple(_chat(head, ()) for head in connection.execute(chosen).mappings())


def _check(connection: Connection, incident: int | None) -> None:
    if incident is None:
        return
    there = select(Incident.id).where(Incident.id == incident)
    if not possible(incident) or connection.scalar(there) is None:
        raise NotFoundError(f"no incident {incident}", "see: triage incidents list")


def _lock(connection: Connection, chat: int) -> None:
    """The conversation's row, for this transaction: two questions at once get two numbers."""
    this = select(ChatSession.id).where(ChatSession.id == chat).with_for_update()
    if not possible(chat) or connection.scalar(this) is None:
        raise _unknown(chat)


def _row(turn: StoredTurn) -> dict[str, Any]:
    lists = {name: clean.dump(clean.tree(list(getattr(turn, name)))) for name in _LISTS}
    return lists | {
        "state": turn.state,
        "asked": clean.text(turn.asked),
        "answer": clean.text(turn.answer[:MOST_ANSWER]),
        "produced_by": clean.text(turn.produced_by),
        "unsupported": turn.unsupported,
    }


def _turn(row: Any) -> StoredTurn:
    lists: dict[str, Any] = {name: tuple(json.loads(row[name])) for name in _LISTS}
    plain: dict[str, Any] = {
        name: row[name] for name in ("asked", "answer", "state", "produced_by", "unsupported", "number", "at")
    }
    return StoredTurn(**plain, **lists, incident=row["incident_id"])


def _chat(head: Any, turns: tuple[StoredTurn, ...]) -> StoredChat:
    """It is about what its last turn was about."""
    plain = {name: head[name] for name in ("id", "who", "title", "started_at", "last_at", "count")}
    return StoredChat(**plain, incident=turns[-1].incident if turns else head["incident_id"], turns=turns)


def _unknown(chat: int) -> NotFoundError:
    return NotFoundError(f"no conversation {chat}", "see: triage chat --list")
