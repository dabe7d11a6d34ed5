"""How suites of tests ended: one that says that tests passed may say after it that others failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from triage.domain import JobLog

# pytest, unittest, GoogleTest, CTest, cargo test, prove, go test, Jest, and make for all of them.
_FAILED = re.compile(
    r"^=+ .{0,200}\b[1-9]\d* (?:failed|errors?)\b|^FAILED(?: \(|\s*$)|^\[  FAILED  \] |^\d{1,2}% tests passed, [1-9]"
    r"|^test result: FAILED|^error: test failed|^Result: FAIL\b|^FAIL(?:\t|\s*$)|^Tests: .{0,60}\b[1-9]\d* failed"
    r"|^g?make(?:\[\d+\])?: \*\*\* .{1,200}\bError \d"
)


def suites_that_failed(log: JobLog, passed: Mapping[str, int]) -> Iterator[str]:
    """Of the files in which a suite says that its tests passed (file -> line), those in which a later line says that not all did."""
    for file in log.files:
        at = passed.get(file.name)
        if at is not None and any(line.number > at and _FAILED.match(line.text) for line in file.lines):
            yield file.name
