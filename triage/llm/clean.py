"""The last net: secrets out of whatever goes to a model, comes from it, or is written of it. Pure."""

from __future__ import annotations

from dataclasses import replace

from triage.llm.values import Message, Reply, Request, ToolCall
from triage.redact import redact

_SHORTEST_KEY = 8


def sound(text: str) -> str:
    """What UTF-8 can hold: half a surrogate pair, which JSON can name, becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_text(text: str, key: str = "") -> str:
    """The text without secrets, sound; key: a secret of our own that may stand in it. Idempotent."""
    text = sound(text)
    if len(key) >= _SHORTEST_KEY:
        text = text.replace(key, "[redacted:api-key]")
    return redact(text)


def clean_request(request: Request, key: str = "") -> Request:
    return replace(request, messages=tuple(_clean_message(m, key) for m in request.messages))


def clean_reply(reply: Reply, key: str = "") -> Reply:
    return replace(reply, text=clean_text(reply.text, key), tool_calls=_clean_calls(reply.tool_calls, key))


def _clean_message(message: Message, key: str) -> Message:
    calls = _clean_calls(message.tool_calls, key)
    return replace(message, content=clean_text(message.content, key), tool_calls=calls)


def _clean_calls(calls: tuple[ToolCall, ...], key: str) -> tuple[ToolCall, ...]:
    return tuple(
        replace(call, id=sound(call.id), name=sound(call.name), arguments=clean_text(call.arguments, key))
        for call in calls
    )


def one_line(text: str, key: str = "", most: int = 300) -> str:
    """A server's own words, fit for an error message."""
    words = " ".join(clean_text(text, key).split())
    return words if len(words) <= most else words[:most] + " ..."
