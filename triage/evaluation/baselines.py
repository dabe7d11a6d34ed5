"""What a run is compared with: answers that need no triage. Written to win as far as they can.

last-exception   the class of the last exception that a Python traceback (or a bare line) names
first-error      the first line that says error, exception or fail, mapped by exception name and keywords
keyword-table    the first row of a keyword table that fits a line among the last 200 of each file
Two more ask a model: baseline_llm.py.

An answer: {"outcome", "failure_type", "evidence": [{"file", "line", "role"}], "action"}.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triage.evaluation import baseline_tables
from triage.ingest import streams

TAIL = 200
_LONGEST = 8192  # bytes of a line that are looked at
_ERROR = re.compile(rb"error|exception|fail", re.IGNORECASE)
_MAYBE = re.compile(rb"Error|Exception|Interrupt|Timeout|Disconnected|gaierror|MissingMandatoryValue")
# What a launcher may put in front of each line: "[rank3]:", "3:", "[node7:0]", "(worker pid=12)".
_PREFIX = re.compile(r"^(?:\[[^\]\n]{1,40}\]:?\s?|\([^)\n]{1,60}\)\s?|\d{1,5}:\s)?")
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w{0,40}\.){0,8}([A-Z]\w{0,60}(?:Error|Exception|Interrupt|Timeout|Disconnected)|gaierror|MissingMandatoryValue)(?::\s?(.*)|\s*)$"
)


@dataclass(slots=True)
class Seen:
    """What one pass over a file keeps: number and text of lines; the exception's class beside its line."""

    file: str
    tail: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=TAIL))
    first_error: tuple[int, str] | None = None
    exception: tuple[int, str, str] | None = None  # line, class, message
    wrapper: tuple[int, str, str] | None = None


def answer_all(files: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """The answer of each baseline to one job's files (name -> place), read once, in the order given."""
    seen = [look(name, path) for name, path in files.items()]
    return {
        "last-exception": last_exception(seen),
        "first-error": first_error(seen),
        "keyword-table": keyword_table(seen),
    }


def look(name: str, path: Path) -> Seen:
    """One pass over a file. Errors: none; what cannot be read is read as far as it goes."""
    seen = Seen(name)
    for number, raw in _raw(path):
        maybe = _MAYBE.search(raw)
        if seen.first_error is None and _ERROR.search(raw):
            seen.first_error = (number, _text(raw))
        if maybe and (match := _EXCEPTION.match(_PREFIX.sub("", _text(raw)))):
            what = (number, match[1], match[2] or "")
            if match[1] in baseline_tables.WRAPPERS:
                seen.wrapper = what
            else:
                seen.exception = what
        seen.tail.append((number, _text(raw)))
    return seen


def last_exception(seen: list[Seen]) -> dict[str, Any]:
    """Without an exception: healthy."""
    for file in reversed(seen):
        if found := file.exception or file.wrapper:
            line, name, message = found
            return answer(baseline_tables.by_exception(name, message), file.file, line)
    return answer("healthy")


def first_error(seen: list[Seen]) -> dict[str, Any]:
    """Without such a line: healthy. A line that nothing maps: runtime-error."""
    for file in seen:
        if file.first_error:
            number, line = file.first_error
            name = re.search(r"\b([A-Z]\w{0,60}(?:Error|Exception|Interrupt))\b", line)
            known = name is not None and name[1] in baseline_tables.EXCEPTIONS
            kind = baseline_tables.by_exception(name[1], line) if name and known else baseline_tables.by_keyword(line)
            return answer(kind or "runtime-error", file.file, number)
    return answer("healthy")


def keyword_table(seen: list[Seen]) -> dict[str, Any]:
    """The first row that fits any line; the first line that fits is cited. Else a named exception; else healthy."""
    for pattern, kind in baseline_tables.KEYWORDS:
        for file in seen:
            for number, line in file.tail:
                if pattern.search(line):
                    return answer(kind, file.file, number)
    for file in seen:
        for number, line in file.tail:
            if match := _EXCEPTION.match(_PREFIX.sub("", line)):
                return answer(baseline_tables.by_exception(match[1], match[2] or ""), file.file, number)
    return answer("healthy")


def answer(kind: str, file: str = "", line: int = 0) -> dict[str, Any]:
    return {
        "outcome": baseline_tables.outcome(kind),
        "failure_type": kind,
        "evidence": [{"file": file, "line": line, "role": "root"}] if line else [],
        "action": baseline_tables.action(kind),
    }


def numbered(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, decompressed, split on newlines alone, a line of megabytes cut."""
    return ((number, _text(raw)) for number, raw in _raw(path))


def _raw(path: Path) -> Iterator[tuple[int, bytes]]:
    number, left = 1, b""
    for piece in streams.chunks(streams.Input(path.name, path, 0), []):
        first, *rest = piece.split(b"\n")
        left += first[: _LONGEST - len(left)]
        for part in rest:
            yield number, left
            number, left = number + 1, part[:_LONGEST]
    if left:
        yield number, left


def _text(raw: bytes) -> str:
    """A progress bar is what stands behind its last carriage return."""
    return raw.rstrip(b"\r").rsplit(b"\r", 1)[-1].decode("utf-8", "replace")
