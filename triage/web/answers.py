"""Answers of the API as they are described, and those that come piece by piece."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from triage.web.models import Problem

BAD: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": words}
    for code, words in (
        (400, "What was asked for cannot be"), (401, "No token"), (403, "The token may not"), (404, "Not there"),
        (422, "Not as documented"), (429, "Too many requests"), (503, "The database or the queue cannot take it now"),
    )
}  # fmt: skip
LARGE: dict[int | str, dict[str, Any]] = {
    413: {"model": Problem, "description": "Larger than may be sent"},
    507: {"model": Problem, "description": "No room on the server's disk"},
}
STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


def event(name: str, data: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})
