"""Spans of time as options take them."""

from __future__ import annotations

import re

from triage.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|min|h|)")


def seconds(text: str, option: str, unit: str) -> float:
    """ "30m", "90s", "2h"; a bare number is of `unit`. Errors: UsageError."""
    found = _SPAN.fullmatch(text.strip().lower())
    value = float(found[1]) * _UNITS[found[2] or unit] if found else 0.0
    if value <= 0:
        raise UsageError(
            f"{option} is {text!r}",
            f"give a span such as 30m, 90s or 2h; a bare number is in {'minutes' if unit == 'm' else 'seconds'}",
        )
    return value
