"""What stands before every request: whose host it asks for, how many and how large requests may be; and what goes with every
answer: headers that keep a page from running or sending anything of others'.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import HTTPConnection

from triage.web.access import Access
from triage.web.callers import identify
from triage.web.metrics import Metrics
from triage.web.parts import Options
from triage.web.problems import RefusedError, body

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SMALL = 64 << 10  # bytes of a request that brings no log
UPLOADS = ("/api/v1/jobs", "/api/v1/jobs/raw", "/upload")
LINGER = 2.0  # seconds in which what a refused client still sends is thrown away, so that it reads why
MOST_CALLERS = 10_000
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
log = logging.getLogger("triage.web")


class TooLargeError(RefusedError):
    """The body is longer than it may be."""


class Guard:
    def __init__(self, app: App, options: Options, access: Access, metrics: Metrics) -> None:
        self._app, self._options, self._access, self._metrics = app, options, access, metrics
        self._rate = Rate(options.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, code = time.monotonic(), 0
        caller = identify(HTTPConnection(scope), self._access)
        scope.setdefault("state", {})["caller"] = caller

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                message["headers"] = _with_headers(message.get("headers", ()), scope)
            await send(message)

        try:
            await self._guarded(scope, receive, sent, lambda: code)
        except asyncio.CancelledError:  # by the server's end alone
            await (sent({"type": "http.response.body"}) if code else _refuse(sent, 503, "the server ends", "ask again"))
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(_method(scope), route, code).inc()
            self._metrics.seconds.labels(route).observe(time.monotonic() - began)
            who = caller.name if caller else "-"
            log.info("%s %s %s %s %.3fs", who, _method(scope), _path(scope), code, time.monotonic() - began)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, code: Callable[[], int]) -> None:
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        host = headers.get("host", "").rsplit(":", 1)[0] if "]" not in headers.get("host", "")[-1:] else headers["host"]
        if self._options.hosts and host.lower() not in self._options.hosts:
            await _refuse(send, 421, "this server is not asked by that name", "see --host and --name of triage serve")
            return
        # By the token where it is known, so that those behind one address are told apart; who guesses tokens shares one count.
        caller = scope["state"]["caller"]
        wait = self._rate.taken(f"{(scope.get('client') or ('?',))[0]} {caller.name if caller else ''}")
        if wait:
            more = ((b"retry-after", str(int(wait) + 1).encode()),)
            await _refuse(send, 429, "too many requests", f"try again in {int(wait) + 1} s", more)
            return
        most = self._options.most_bytes if scope["path"] in UPLOADS else SMALL
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            await self._too_large(send, receive, most)
            return
        taken = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise TooLargeError(413, "the request is too large")
            return message

        async def held(message: MutableMapping[str, Any]) -> None:
            if taken <= most or code():  # what the application makes of a body that was cut is no answer
                await send(message)

        try:
            await self._app(scope, counted, held)
        finally:
            if taken > most and not code():
                await self._too_large(send, receive, most)

    async def _too_large(self, send: Send, receive: Receive, most: int) -> None:
        """Says so at once, and lets the client come to where it reads it."""
        about, hint = "the request is too large", "say it in fewer words"
        if most > SMALL:
            about = f"the request is larger than the {most >> 20:,} MB that may be sent"
            hint = "pack the logs (zstd, gzip), or point to their path"
        await _refuse(send, 413, about, hint, more=True)
        try:
            async with asyncio.timeout(LINGER):
                while (await receive()).get("more_body"):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b""})


async def _refuse(
    send: Send, code: int, error: str, hint: str, headers: tuple[tuple[bytes, bytes], ...] = (), more: bool = False
) -> None:
    content = body(error, hint)
    own = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": code, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": content, "more_body": more})


def _with_headers(headers: Any, scope: Scope) -> list[tuple[bytes, bytes]]:
    own = {**HEADERS}
    if not scope["path"].startswith("/assets/"):
        own["cache-control"] = "no-store"  # logs are nobody's cache's business
    there = {name.lower() for name, _ in headers}
    return [*headers, *((k.encode(), v.encode()) for k, v in own.items() if k.encode() not in there)]


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"


def _path(scope: Scope) -> str:
    """Without what stands behind a question mark, where a token may be."""
    return ascii(scope["path"][:200])[1:-1]


class Rate:
    """So many requests a minute for each caller, a quarter of them at once."""

    def __init__(self, per_minute: int) -> None:
        self._per_second, self._most = per_minute / 60, max(per_minute / 4, 10.0)
        self._left: OrderedDict[int, tuple[float, float]] = OrderedDict()

    def taken(self, who: str) -> float:
        """Takes one; how many seconds it should have waited for, 0 where it is granted."""
        now, key = time.monotonic(), hash(who)
        left, at = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_second)
        granted = left >= 1
        self._left[key] = (left - 1 if granted else left, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        return 0.0 if granted else (1 - left) / self._per_second
