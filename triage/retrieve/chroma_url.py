"""The address of a Chroma server, as TRIAGE_CHROMA_URL gives it."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from triage.errors import UsageError


def split_url(url: str) -> Any:
    """Errors: UsageError unless it is http(s)://[user:password@]host[:port]."""
    try:
        parts = urlsplit(url)
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_good = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good or parts.path.strip("/"):
        raise UsageError(f"TRIAGE_CHROMA_URL is {without_password(url)!r}", "use http://host:port")
    return parts


def port_of(parts: Any) -> int:
    return parts.port or (443 if parts.scheme == "https" else 8000)


def authorization(user: str | None, password: str | None) -> dict[str, str]:
    if not user:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def without_password(url: str) -> str:
    return re.sub(r"(?<=//)[^/@]*@", "", url)
