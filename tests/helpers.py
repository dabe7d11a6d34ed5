"""Small builders of domain values for tests."""

from __future__ import annotations

from typing import Any

from triage.domain import JobLog, LogFile, LogLine


def lines(text: str, file: str = "job.log", **common: Any) -> tuple[LogLine, ...]:
    """One LogLine a line of text; hot, so that signatures look at each."""
    return tuple(LogLine(file, i, t, hot=True, **common) for i, t in enumerate(text.strip("\n").split("\n"), 1))


def log_file(text: str, name: str = "job.log", kind: Any = "job", **fields: Any) -> LogFile:
    found = lines(text, name)
    return LogFile(name, kind, found, len(text), len(found), last_line=len(found), **fields)


def job(*files: LogFile | str) -> JobLog:
    return JobLog(tuple(f if isinstance(f, LogFile) else log_file(f) for f in files))
