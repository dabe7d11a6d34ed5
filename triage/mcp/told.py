"""The events of a conversation as one text. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from triage.chat.values import Asks, Cited, Event, Note, Text


def text(events: Iterable[Event]) -> str:
    """A cited line stands on a line of its own, as FILE:LINE TEXT."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, Text):
            parts.append(event.text)
            continue
        if parts and not parts[-1].endswith("\n"):
            parts.append("\n")
        match event:
            case Cited():
                means = f"  = {event.note}" if event.note else ""
                parts.append(f"{event.id} {event.file}:{event.line} {event.text}{means}\n".lstrip())
            case Note():
                parts.append(f"({event.text})\n")
            case Asks():
                parts.append(f"{event.text}\n")
    return "".join(parts).rstrip("\n")
