"""`triage chat`: a conversation about an incident or the history."""

from __future__ import annotations

import json
import sys
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from triage.cli import output
from triage.errors import NotFoundError, UsageError
from triage.text import printable

if TYPE_CHECKING:
    from triage.chat.conversation import Conversation
    from triage.chat.values import Subject
    from triage.cli.chat_open import Opened
    from triage.store.chat_values import StoredChat

app = typer.Typer(add_completion=False, rich_markup_mode=None)
HISTORY = "chat-history"  # under TRIAGE_HOME
_LAST = 3  # turns that are shown again when a conversation goes on
_LISTED = 20


@app.command()
def chat(
    about: list[str] | None = typer.Argument(
        None, metavar="[INCIDENT|PATH...]", help="An incident's number, or a log to diagnose first; none: the history."
    ),
    job: str | None = typer.Option(
        None, "--job", metavar="ID", help="The newest incident of this job; none: its logs, as of diagnose."
    ),
    resume: bool = typer.Option(False, "--resume", help="Go on with a conversation: the last one, or [ID]."),
    list_: bool = typer.Option(False, "--list", help="List your conversations."),
    record: bool = typer.Option(
        True, "--record/--no-record", help="Keep the diagnosis of a PATH, and the conversation."
    ),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model to ask; off: code answers."),
    format: str | None = typer.Option(None, "--format", help="text, or json: one object a turn.", show_default="text"),  # noqa: A002
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress."),
) -> None:
    """Talk about an incident: why, the node or the code, what to do, what fixed it last time. Without a terminal, each line
    of stdin is a question."""
    chosen = output.check_format(format, ("text", "json"))
    if list_:
        _list(chosen)
        return
    from triage.cli import chat_open, wiring

    settings = wiring.settings(llm)
    with chat_open.Opened(settings, quiet) as opened:
        conversation = _resumed(opened, about or []) if resume else _new(opened, about or [], job, record)
        if chosen == "json" or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _by_line(conversation, chosen)
            return
        from triage.cli import chat_terminal

        if resume:
            _again(conversation)
        chat_terminal.talk(conversation, settings.home / HISTORY)
        if conversation.chat is not None:
            output.note(f"conversation {conversation.chat} is kept: triage chat --resume {conversation.chat}")


def _new(opened: Opened, about: list[str], job: str | None, record: bool) -> Conversation:
    from triage.chat.conversation import Conversation

    if job is not None and about:
        raise UsageError("--job stands beside a path or an incident", "give one of them")
    subject = _subject(opened, about, job, record)
    return Conversation(opened.desk(keep=record), subject)


def _subject(opened: Opened, about: list[str], job: str | None, record: bool) -> Subject | None:
    if job is not None:
        return opened.job(job, record)
    if not about:
        return None
    number = about[0].lstrip("#")
    if len(about) == 1 and number.isascii() and number.isdigit() and not Path(about[0]).exists():
        return opened.incident(int(number))
    return opened.paths(about, record)


def _resumed(opened: Opened, about: list[str]) -> Conversation:
    """Errors: NotFoundError, UsageError."""
    from triage.chat.conversation import Conversation

    if len(about) > 1 or not all(a.isascii() and a.isdigit() for a in about):
        raise UsageError("--resume takes the number of a conversation, or nothing", "see: triage chat --list")
    desk = opened.desk(keep=True)
    if desk.chats is None:
        raise NotFoundError("no conversation is kept yet", "begin one: triage chat PATH")
    if about:
        number = int(about[0])
    else:
        last = desk.chats.list(desk.who, limit=1, asked=True)
        if not last:
            raise NotFoundError("no conversation is kept yet", "begin one: triage chat PATH")
        number = last[0].id
    found = desk.chats.get(number)
    subject = opened.incident(found.incident) if found.incident is not None else None
    return Conversation(desk, subject, found.id, found.turns)


def _again(conversation: Conversation) -> None:
    """The last turns, so that one knows where one was."""
    for turn in conversation.turns[-_LAST:]:
        lost = "" if turn.state != "asked" else "(this answer was lost; ask again)\n"
        output.write(f"> {printable(' '.join(turn.asked.split()))}\n{turn.answer}{lost}")


def _by_line(conversation: Conversation, chosen: str) -> None:
    """Each line of stdin is a turn."""
    from triage.chat.values import Done
    from triage.cli import chat_print

    for line in sys.stdin:
        said = line.strip()
        if not said:
            continue
        events = list(conversation.ask(said))
        if chosen == "json":
            incident = conversation.subject.incident if conversation.subject else None
            output.write(json.dumps(chat_print.as_json(said, events, conversation.chat, incident), ensure_ascii=False))
        else:
            parts: list[str] = []
            printer = chat_print.Printer(parts.append, output.width(), colour=False)
            for event in events:
                printer(event)
            output.write(f"> {printable(said)}\n{''.join(parts)}")
        if any(isinstance(event, Done) and event.quit for event in events):
            return


def _list(chosen: str) -> None:
    from triage import config
    from triage.cli.who import user
    from triage.store.chats import ChatStore

    with ChatStore.open(config.load().database_url) as store:
        found = store.list(user(), limit=_LISTED, asked=True)
    if chosen == "json":
        output.write_last(json.dumps({"schema": "triage.chats/1", "sessions": [_object(c) for c in found]}))
        return
    for c in found:
        about = f"incident {c.incident}" if c.incident is not None else "history"
        output.write(
            f"{c.id:>5}  {c.last_at.astimezone(UTC):%Y-%m-%d %H:%M}  {about:<14} {c.count:>3} turns  {printable(c.title)}"
        )
    if not found:
        output.note("no conversation is kept yet; triage chat PATH begins one")


def _object(c: StoredChat) -> dict[str, Any]:
    return {
        "id": c.id, "incident": c.incident, "who": c.who, "title": c.title, "turns": c.count,
        "started_at": c.started_at.isoformat(), "last_at": c.last_at.isoformat(),
    }  # fmt: skip
