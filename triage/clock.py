"""How long the stages of a piece of work took, and times as people give them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from triage.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.laps[stage] = now - self._last
        self._last = now


def parse_time(value: str, now: datetime, option: str = "--since") -> datetime:
    """`7d` before now, or a date or time; without a zone it is UTC. In UTC. Errors: UsageError."""
    try:
        if ago := re.fullmatch(r"(\d{1,4})([mhdw])", value.strip()):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        when = datetime.fromisoformat(value.strip())
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} {value!r} is no time", "use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00"
        ) from None
