"""Posts JSON. No redirect is followed and no URL is ever shown: both would give away the token in it."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from triage import __version__
from triage.notify.tries import Refused, Tries, TryAgain

_TIMEOUT = 10.0  # seconds of one attempt
_MOST_ANSWER = 300  # characters of an answer that are read
_LOCAL = ("localhost", "127.0.0.1", "::1")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def post(url: str, document: dict[str, Any], seconds: float) -> None:
    """Repeats for a while what may go well later: no connection, 429, 5xx. Errors: Refused."""
    Tries(seconds).until_done(lambda left: _once(url, document, min(left, _TIMEOUT)))


def _once(url: str, document: dict[str, Any], timeout: float) -> None:
    # A proxy that the environment names does not lead to this machine.
    proxies: dict[str, str] | None = {} if urlsplit(url).hostname in _LOCAL else None
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler(proxies))
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": f"triage/{__version__}"}
    data = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    request = urllib.request.Request(url, data, headers, method="POST")  # noqa: S310 - only http and https get here
    try:
        with opener.open(request, timeout=timeout) as answer:
            answer.read(_MOST_ANSWER)
    except urllib.error.HTTPError as error:
        problem = f"HTTP {error.code}{_words(error)}"
        if error.code == 429 or error.code >= 500:
            raise TryAgain(problem, _retry_after(error.headers.get("Retry-After", ""))) from None
        raise Refused(problem) from None
    except urllib.error.URLError as error:
        raise TryAgain(str(getattr(error.reason, "strerror", "") or error.reason)) from None
    except (OSError, HTTPException) as error:
        raise TryAgain(str(error) or type(error).__name__) from None


def _words(error: urllib.error.HTTPError) -> str:
    """What the answer says; one that breaks off is an answer all the same."""
    said = b""
    with contextlib.suppress(OSError, HTTPException), error:
        said = error.read(_MOST_ANSWER)
    words = " ".join(said.decode("utf-8", "replace").split())
    return f": {words}" if words else ""


def _retry_after(text: str) -> float:
    """Seconds; 0 where it is not told."""
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
