"""What the scheduler's accounting says of the job: when it started and ended, its state and nodes. Pure.

Reads what `sacct` and `scontrol show job` print, parsable or in columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from triage.domain import LogFile, LogLine

_STAMP = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d")
_PAIR = re.compile(r"\b(JobState|StartTime|EndTime|NodeList|FailedNode|JobId|ExitCode|JobName|UserId)=(\S+)")
_FIELDS = {"JobState": "State", "StartTime": "Start", "EndTime": "End", "JobId": "JobID", "UserId": "User"}
_OF_STEP = re.compile(r"^\d+(?:_\d+)?\.")


@dataclass(frozen=True, slots=True)
class Row:
    """One job or step. line: where its state is said."""

    line: LogLine
    job: str
    state: str = ""
    exit_code: str = ""
    nodes: str = ""
    failed_node: str = ""
    start: datetime | None = None
    end: datetime | None = None
    name: str = ""
    user: str = ""

    @property
    def is_step(self) -> bool:
        return bool(_OF_STEP.match(self.job))


def rows(file: LogFile) -> list[Row]:
    """The rows of an accounting file, in its order."""
    if file.kind != "sacct":
        return []
    head = next((line for line in file.lines if line.text.lstrip().startswith(("JobID", "JobIDRaw"))), None)
    return _table(file.lines, head) if head else _pairs(file.lines)


def job_row(file: LogFile) -> Row | None:
    """The job itself: the last row that is no step, else the last of all."""
    found = rows(file)
    return next((row for row in reversed(found) if not row.is_step), found[-1] if found else None)


def times_of(file: LogFile) -> dict[str, datetime]:
    """`job start` and `job end` as the accounting has them."""
    row = job_row(file)
    named = {"job start": row.start, "job end": row.end} if row else {}
    return {name: at for name, at in named.items() if at}


def _table(lines: Sequence[LogLine], head: LogLine) -> list[Row]:
    names, rule = _cells(head.text, None), next((x for x in lines if x.number > head.number), None)
    spans = _columns(rule.text) if rule and set(rule.text.strip()) <= {"-", " "} else None
    if spans:
        names = _cells(head.text, spans)
    found = []
    for line in lines:
        if line.number <= head.number or line is (rule if spans else None) or not line.text.strip():
            continue
        values = dict(zip(names, _cells(line.text, spans), strict=False))
        if values.get("JobID", values.get("JobIDRaw", ""))[:1].isdecimal():
            found.append(_row(line, values))
    return found


def _columns(rule: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"-+", rule)]


def _cells(text: str, spans: Sequence[tuple[int, int]] | None) -> list[str]:
    if spans:
        return [text[low:high].strip() for low, high in spans]
    return [cell.strip() for cell in text.split("|")] if "|" in text else text.split()


def _pairs(lines: Sequence[LogLine]) -> list[Row]:
    values: dict[str, str] = {}
    said: LogLine | None = None
    for line in lines:
        for name, value in _PAIR.findall(line.text):
            values.setdefault(_FIELDS.get(name, name), value)
            said = line if name == "JobState" else said or line
    return [_row(said, values)] if said else []


def _row(line: LogLine, values: dict[str, str]) -> Row:
    return Row(
        line=line,
        job=values.get("JobID") or values.get("JobIDRaw", ""),
        state=values.get("State", ""),
        exit_code=values.get("ExitCode", ""),
        nodes=values.get("NodeList", ""),
        failed_node=values.get("FailedNode", ""),
        start=_time(values.get("Start", "")),
        end=_time(values.get("End", "")),
        name=values.get("JobName", ""),
        user=values.get("User", "").partition("(")[0],
    )


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text[:19]).replace(tzinfo=UTC) if _STAMP.match(text) else None
    except ValueError:  # no clock shows it
        return None
