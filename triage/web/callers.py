"""Who asks: a program by its token, a person by a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.requests import HTTPConnection

from triage.web.access import Access, Caller
from triage.web.parts import State
from triage.web.problems import RefusedError

COOKIE = "triage_session"
FORM_HEADER = "x-csrf-token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_BEARER = HTTPBearer(auto_error=False, description="A token of `triage serve --new-token NAME`.")
_SESSION = APIKeyCookie(name=COOKIE, auto_error=False, description="Of a browser that has signed in.")


def state(request: Request) -> State:
    found: State = request.app.state.triage
    return found


def identify(asked: HTTPConnection, access: Access) -> Caller | None:
    """Who asks, as far as it is known; by a token alone, where one is given."""
    scheme, _, token = asked.headers.get("authorization", "").partition(" ")
    if scheme:
        return access.by_token(token.strip()) if scheme.lower() == "bearer" else None
    return access.by_session(asked.cookies[COOKIE]) if COOKIE in asked.cookies else None


def known(request: Request) -> Caller | None:
    """Who asks, as the guard has found."""
    found: Caller | None = request.state.caller
    return found


async def reader(
    request: Request,
    _bearer: Annotated[object, Depends(_BEARER)] = None,
    _session: Annotated[object, Depends(_SESSION)] = None,
) -> Caller:
    """Errors: RefusedError."""
    found = known(request)
    if found is None and "authorization" in request.headers:
        raise RefusedError(
            401,
            "this token is not known here",
            "one that was made since this server started is known at its next start",
        )
    if found is None:
        raise RefusedError(401, "a token is needed", "send it as `Authorization: Bearer TOKEN`, or sign in at /login")
    if found.session and request.method not in _SAFE and not request.url.path.startswith("/api/"):
        return found  # a page's form carries its own token, which its handler looks at
    if found.session and request.method not in _SAFE:
        check_form(request, found, request.headers.get(FORM_HEADER, ""))
    return found


async def writer(found: Annotated[Caller, Depends(reader)]) -> Caller:
    """Errors: RefusedError."""
    if not found.writes:
        raise RefusedError(403, "this token may only read", "ask for one with the role write")
    return found


def check_form(request: Request, caller: Caller, given: str) -> None:
    """Errors: RefusedError for a form that another site made this browser send."""
    if not state(request).parts.access.form_fits(caller, given):
        raise RefusedError(
            403, "this form is too old, or came from another site", "open the page anew and send it again"
        )


async def here(request: Request) -> State:
    return state(request)


# One `Depends` in each: of several, FastAPI takes the last, and the others would guard nothing.
# None of them needs a thread: requests that do without one are answered while all threads wait for a model.
Here = Annotated[State, Depends(here)]
Reader = Annotated[Caller, Depends(reader)]
Writer = Annotated[Caller, Depends(writer)]
