"""What went wrong, as an answer: one line that says what and what to do, never where in the code."""

from __future__ import annotations

import json
import logging
import secrets

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from triage.errors import NotFoundError, StoreError, TriageError
from triage.redact import redact
from triage.text import seen
from triage.web.chats import BusyError
from triage.web.places import FullError
from triage.web.uploads import NoRoomError

_CODES: tuple[tuple[type[TriageError], int], ...] = (
    (NotFoundError, 404),
    (BusyError, 409),
    (NoRoomError, 507),
    (FullError, 503),
    (StoreError, 503),
    (TriageError, 400),
)
log = logging.getLogger("triage.web")


class RefusedError(Exception):
    """A request that may not be. code: 401 without a token, 403 with one that may not."""

    def __init__(self, code: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


def body(error: str, hint: str = "") -> bytes:
    found = {"error": seen(error), "hint": seen(hint)} if hint else {"error": seen(error)}
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")


def told(error: Exception) -> tuple[int, str, str]:
    """The code, what is wrong and what to do."""
    if isinstance(error, RefusedError):
        return error.code, error.message, error.hint
    if isinstance(error, TriageError):
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        return code, redact(error.message), redact(error.hint)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return 422, "the body is no JSON", "see /api/v1/openapi.json"
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return 422, f"{where[:100]}: {first['msg'][:200]}", "see /api/v1/openapi.json"
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail), ""
    number = secrets.token_hex(4)
    log.error("problem %s", number, exc_info=error)
    return (
        500,
        f"this went wrong inside (problem {number})",
        "its number stands in the log of the server; please report it",
    )


def as_json(_request: Request, error: Exception) -> Response:
    code, message, hint = told(error)
    headers = {"www-authenticate": "Bearer"} if code == 401 else {}
    if isinstance(error, HTTPException) and error.headers:
        headers |= dict(error.headers)
    return Response(body(message, hint), code, headers, "application/json")
