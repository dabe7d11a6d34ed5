"""What is told of an incident, whichever way it goes. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from triage.redact import redact
from triage.text import seen

SCHEMA = "triage.message/1"
MOST_BODY = 60_000  # characters: what the trackers take, with room
MOST_TEXT = 10_000  # characters of any other text
_CUT = "\n\n(cut here)\n"


@dataclass(frozen=True, slots=True)
class Message:
    """key: the incident; messages of the same key are about the same thing, such as the tasks of an array.

    title: one line, and with the state what makes a change worth another message; summary: a few sentences;
    fields: name and value; links: text and URL; body_markdown: all of it, for a ticket; is_update: the key was told
    of before.
    """

    key: str
    title: str
    state: str
    summary: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    body_markdown: str = ""
    is_update: bool = False

    @property
    def digest(self) -> str:
        """Of what a change of is a change of the incident."""
        return hashlib.sha256("\0".join((self.key, self.state, self.title)).encode()).hexdigest()[:16]

    @property
    def headline(self) -> str:
        return f"Update: {self.title}" if self.is_update else self.title


def clean(message: Message) -> Message:
    """Without secrets and characters that nobody sees; each text within bounds."""
    body = redact(seen(message.body_markdown))
    return replace(
        message,
        key=_line(message.key),
        title=_line(message.title),
        state=_line(message.state),
        summary=_text(message.summary),
        fields=tuple((_line(name), _text(value)) for name, value in message.fields if value),
        links=tuple(
            (_line(text), _line(url)) for text, url in message.links if url.startswith(("https://", "http://"))
        ),
        body_markdown=body if len(body) <= MOST_BODY else body[: MOST_BODY - len(_CUT)] + _CUT,
    )


def _text(text: str) -> str:
    return redact(seen(text))[:MOST_TEXT]


def _line(text: str) -> str:
    return " ".join(_text(text).split())[:500]


def as_json(message: Message) -> dict[str, Any]:
    """For programs: a webhook, a command."""
    return {
        "schema": SCHEMA,
        "key": message.key,
        "state": message.state,
        "is_update": message.is_update,
        "title": message.title,
        "summary": message.summary,
        "fields": dict(message.fields),
        "links": [{"text": text, "url": url} for text, url in message.links],
        "markdown": message.body_markdown,
        "sent_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def as_text(message: Message) -> str:
    """For an e-mail."""
    fields = [f"{name}: {value}" for name, value in message.fields]
    links = [f"{text}: {url}" for text, url in message.links]
    parts = [message.summary, "\n".join(fields), "\n".join(links), message.body_markdown]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
