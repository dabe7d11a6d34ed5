"""Where messages go, as people write it: slack:URL, URL, command:PROGRAM ARGS, mailto:ADDRESSES. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from triage.errors import UsageError
from triage.text import printable

Kind = Literal["slack", "webhook", "command", "mail"]
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_PART = re.compile(r"""\s*(?:(?i:command):(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^;\n])*|[^;\n]+)""", re.DOTALL)
_HINT = "write slack:https://..., https://..., command:PROGRAM ARGS or mailto:a@b"


@dataclass(frozen=True, slots=True)
class Channel:
    """name: for people, without what is secret of it; url, argv, to: where it leads."""

    kind: Kind
    name: str
    url: str = field(default="", repr=False)
    argv: tuple[str, ...] = ()
    to: tuple[str, ...] = ()


def channels(texts: Iterable[str]) -> tuple[Channel, ...]:
    """Each text holds one or several, with a semicolon or a line end between, but within quotes of a command.

    Errors: UsageError, which repeats no secret.
    """
    found = [_channel(part.strip()) for text in texts for part in _PART.findall(text) if part.strip()]
    return tuple(dict.fromkeys(found))


def _channel(text: str) -> Channel:
    scheme, _, rest = text.partition(":")
    scheme = scheme.lower()
    if scheme == "slack":
        return _web("slack", rest.strip())
    if scheme in ("http", "https"):
        return _web("webhook", text)
    if scheme == "command":
        return _command(rest)
    if scheme == "mailto":
        return _mail(rest)
    raise UsageError(f"{printable(scheme[:20])!r} begins no channel of messages", _HINT)


def _web(kind: Kind, url: str) -> Channel:
    """A token may be in the path, the query or before the host: of an URL only its host is ever shown."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"a {kind} channel has no URL of http or https", _HINT)
    place = f"{host}:{port}" if port else host
    return Channel(kind, f"slack:{place}" if kind == "slack" else f"{parts.scheme}://{place}", url=url)


def _command(text: str) -> Channel:
    try:
        argv = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"a command channel cannot be read: {error}", "quote its arguments as in a shell") from None
    if not argv:
        raise UsageError("a command channel names no program", _HINT)
    return Channel("command", f"command:{printable(argv[0])}", argv=argv)


def _mail(text: str) -> Channel:
    to = tuple(part.strip() for part in text.split(",") if part.strip())
    bad = [address for address in to if not _ADDRESS.fullmatch(address)]
    if bad or not to:
        raise UsageError(f"{printable(bad[0][:80]) if bad else ''!r} is no e-mail address", "write mailto:a@b,c@d")
    return Channel("mail", f"mailto:{','.join(to)}", to=to)
