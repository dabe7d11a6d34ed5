"""The values that Slurm prints: times, spans, sizes, exit codes, resources. Pure."""

from __future__ import annotations

import re
from datetime import datetime

TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"  # for SLURM_TIME_FORMAT; without it Slurm prints local time and does not say so
_ZONED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([+-]\d{4})?")
_SPAN = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.\d{1,9})?")
_DAYS = re.compile(r"(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)([KMGTP]?)")
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d{1,9})(?:,|$)")
_GPUS_OF_KIND = re.compile(r"(?:^|,)gres/gpu:[^=,]{1,80}=(\d{1,9})(?=,|$)")
_YEARS = range(1970, 2200)  # room on both sides for spans that are added
_NO_LIMIT = 365 * 86400
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}


def time(text: str) -> datetime | None:
    """With its time zone; a stamp without one is of this machine's. None for `Unknown` and its like, and what no clock showed."""
    found = _ZONED.fullmatch(text.strip())
    if not found:
        return None
    try:
        at = datetime.fromisoformat(found[1] + (found[2] or ""))
        return at.astimezone() if at.year in _YEARS else None
    except (ValueError, OverflowError, OSError):
        return None


def without_zones(text: str) -> str:
    """Stamps as Slurm prints them by default, and as they stand in the job's own log."""
    return _ZONED.sub(r"\1", text)


def span(text: str) -> int | None:
    """Seconds of D-HH:MM:SS, HH:MM:SS, MM:SS; None for UNLIMITED and its like."""
    text = text.strip()
    if found := _DAYS.fullmatch(text):
        return 86400 * int(found[1]) + 3600 * int(found[2]) + 60 * int(found[3] or 0) + int(found[4] or 0)
    if found := _SPAN.fullmatch(text):
        return 3600 * int(found[2] or 0) + 60 * int(found[3]) + int(found[4])
    return None


def limit(seconds: int | None) -> int | None:
    """The year that Slurm writes down where a partition has no limit is none."""
    return None if seconds is None or seconds >= _NO_LIMIT else seconds


def size(text: str) -> int | None:
    """Bytes of 1234K, 1.5G; a bare number is of bytes."""
    found = _SIZE.fullmatch(text.strip())
    return int(float(found[1]) * (1 << _UNITS[found[2]])) if found else None


def code(text: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of 1:0 and 0:9."""
    first, _, second = text.strip().partition(":")
    return number(first), number(second)


def number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def gpus(tres: str) -> int:
    """How many GPUs stand in cpu=8,gres/gpu=4,gres/gpu:a100=4."""
    if found := _GPUS.search(tres):
        return int(found[1])
    return sum(int(count) for count in _GPUS_OF_KIND.findall(tres))


def state(text: str) -> tuple[str, str]:
    """(the state in one word, who cancelled) of `CANCELLED by 1000`, `COMPLETING`, `CANCELLED+`."""
    word, _, rest = text.strip().partition(" ")
    by = rest.removeprefix("by ").strip() if rest.startswith("by ") else ""
    return word.rstrip("+").upper(), by


def said(text: str) -> str:
    """What Slurm writes where it has nothing to say is nothing."""
    text = text.strip()
    return "" if text in ("(null)", "None", "N/A", "Unknown", "n/a", "None assigned") else text
