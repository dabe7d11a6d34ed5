"""Text on its way into the database: secrets out, and nothing a database cannot hold."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from triage.errors import StoreError

_KEPT = frozenset({"sha256", "fingerprint", "schema", "digest", "head"})  # a digest looks like a secret and is none
_SECRET_NAME = re.compile(r"(?i)(?:^|_)(?:keys?|tokens?|secrets?|passwords?|passwd|credentials?)$")
_COUNTS = frozenset({"llm_max_tokens"})
_INT64 = 1 << 63


def text(value: str) -> str:
    """Secrets replaced; NUL (PostgreSQL) and lone surrogates of odd file names (both databases) as U+FFFD."""
    from triage.redact import redact  # the formats of secrets: only who writes needs them

    return redact(storable(value))


def storable(value: str) -> str:
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def name(value: str, width: int = 255) -> str:
    """A name that is indexed: PostgreSQL refuses index entries over 2,704 bytes, and a log may name anything."""
    return storable(value)[:width]


def whole(value: int | None) -> int | None:
    """A number of a log line, or None when it does not fit 64 bits."""
    return value if value is not None and -_INT64 <= value < _INT64 else None


def tree(value: Any, key: str = "") -> Any:
    """A JSON value with every string cleaned, and NaN and infinities (which JSON has not) as null."""
    if isinstance(value, str):
        return storable(value) if key in _KEPT else text(value)
    if isinstance(value, Mapping):
        return {storable(str(k)): tree(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [tree(item, key) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    raise StoreError(
        f"the result holds a {type(value).__name__} under {key!r}, which is no JSON", "a defect: please report it"
    )


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def settings(values: Mapping[str, object]) -> dict[str, str]:
    """A snapshot of settings: nothing whose name says secret, no user or password inside an address."""
    return {
        name: text(_address(str(value)))
        for name, value in values.items()
        if not _SECRET_NAME.search(name) or name in _COUNTS
    }


def _address(value: str) -> str:
    scheme, separator, _rest = value.partition("://")
    if not separator:
        return value
    try:
        parts = urlsplit(value)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return f"{scheme}://..."
    return f"{scheme}://{host}{parts.path}"  # a query may hold a password too
