"""Runs inside a file: where a new one starts, and how one ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.domain import LogLine, Outcome

_LOOK_BACK = 60
_ENDINGS: tuple[tuple[re.Pattern[str], Outcome], ...] = (
    (
        re.compile(r"CANCELLED AT .*DUE TO|CANCELLED AT|DUE TO (?:TIME LIMIT|PREEMPTION)|Terminated due to preemption"),
        "interrupted",
    ),
    (re.compile(r"KeyboardInterrupt|got signal: 1?5\b|SIGTERM"), "interrupted"),
)
_FAILED = re.compile(
    r"^\S*(?:Error|Exception)\b|Traceback \(most recent|ChildFailedError"
    r"|exit(?:ed with exit)? ?code[: ]+[1-9]|Segmentation fault|Killed|core dumped"
)


def ended_how(lines: Sequence[LogLine]) -> tuple[Outcome, str, int | None]:
    """How a run ended, as far as its own end tells, with the line that says so and its number."""
    tail = lines[-_LOOK_BACK:]
    for pattern, outcome in _ENDINGS:
        for line in reversed(tail):
            if pattern.search(line.text):
                return outcome, line.text, line.number
    for line in reversed(tail):
        if _FAILED.search(line.text):
            return "failed", line.text, line.number
    return "unknown", "", None


def boundary() -> Boundary:
    """The question the scan asks of each line; one object serves file after file."""
    return Boundary()


class Boundary:
    """Whether a new run starts at a line. A new first line means a new file."""

    def __call__(self, line: bytes, first_line: bytes | None) -> bool:  # noqa: ARG002
        return False
