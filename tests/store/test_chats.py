"""Conversations in the database: turn by turn, with nothing secret in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tests.store.samples import ECC, as_json
from triage.errors import NotFoundError
from triage.store.chat_values import StoredTurn
from triage.store.chats import ChatStore
from triage.store.incidents import IncidentStore

ANSWER = StoredTurn(
    "",
    "GPU 3 (E1)",
    produced_by="llm:m",
    tools=({"name": "read_lines", "words": "file a.log"},),
    citations=({"file": "a.log", "line": 3, "text": "Xid 48", "id": "E1"},),
    notes=("one sentence was dropped",),
    prompts=({"name": "chat", "version": "1", "sha256": "a" * 64},),
    unsupported=1,
)


@pytest.fixture
def chats(migrated: None, url: str, clock) -> Iterator[ChatStore]:
    with ChatStore.open(url, clock) as opened:
        yield opened


def test_a_turn_comes_back_as_it_was(chats: ChatStore, store: IncidentStore) -> None:
    incident = store.record(ECC, as_json(ECC))
    chat = chats.begin("ada", incident)
    number = chats.ask(chat, "why?", incident)
    chats.answer(chat, number, ANSWER)

    found = chats.get(chat)

    assert (found.who, found.title, found.incident, found.count) == ("ada", "why?", incident, 1)
    (turn,) = found.turns
    assert (turn.asked, turn.answer, turn.state, turn.number, turn.unsupported) == (
        "why?",
        "GPU 3 (E1)",
        "answered",
        1,
        1,
    )
    assert (turn.tools, turn.citations, turn.notes, turn.prompts) == (
        ANSWER.tools,
        ANSWER.citations,
        ANSWER.notes,
        ANSWER.prompts,
    )
    assert turn.at is not None
    assert found.started_at < turn.at <= found.last_at


def test_a_question_is_there_before_its_answer(chats: ChatStore) -> None:
    chat = chats.begin("ada")
    chats.ask(chat, "why?")

    assert [(t.asked, t.answer, t.state) for t in chats.get(chat).turns] == [("why?", "", "asked")]


def test_secrets_are_in_no_row(chats: ChatStore) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    chat = chats.begin("ada")
    number = chats.ask(chat, f"is {secret} valid?")
    chats.answer(chat, number, StoredTurn("", f"no, {secret} is not", citations=({"text": secret},), notes=(secret,)))

    with chats._engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT * FROM chat_turn, chat_session")).all()
    assert secret not in repr(rows)
    assert "[redacted:" in chats.get(chat).title


def test_the_list_is_the_latest_first_and_of_one_user(chats: ChatStore) -> None:
    first, second, other = (chats.begin(who) for who in ("ada", "ada", "bob"))
    chats.ask(second, "what fails most?")
    chats.ask(first, "why?")

    assert [c.id for c in chats.list("ada")] == [first, second]
    assert [c.id for c in chats.list()] == [first, second, other]
    assert [c.id for c in chats.list(asked=True, limit=1)] == [first]


def test_a_forgotten_incident_takes_its_conversations_along(chats: ChatStore, store: IncidentStore) -> None:
    incident = store.record(ECC, as_json(ECC))
    about, history = chats.begin("ada", incident), chats.begin("ada")
    chats.ask(about, "why?", incident)
    chats.ask(history, "what fails most?")
    chats.ask(history, f"/open {incident}", incident)

    store.forget(incident)

    with pytest.raises(NotFoundError):
        chats.get(about)
    assert [t.asked for t in chats.get(history).turns] == ["what fails most?"]


@pytest.mark.parametrize("number", [0, 7, 1 << 40])
def test_what_is_not_there_is_said_so(chats: ChatStore, number: int) -> None:
    for refused in (
        lambda: chats.get(number),
        lambda: chats.ask(number, "why?"),
        lambda: chats.begin("ada", number or -1),
    ):
        with pytest.raises(NotFoundError):
            refused()
