"""The id of a job as people write it: 123, 123_4, 123_[1-4,7], 123+1, and with a step: 123.0, 123_4.batch. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.errors import UsageError

_ID = re.compile(
    r"(?P<job>[1-9]\d{0,9})"
    r"(?:_(?P<task>\d{1,9})|_\[(?P<tasks>\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?){0,500})(?:%\d{1,9})?\]|\+(?P<het>\d{1,4}))?"
    r"(?:\.(?P<step>\d{1,9}(?:\+\d{1,4})?|batch|extern|interactive))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class JobId:
    """job: the number; task: of one task of an array; tasks: spans of several; het: the component; step: its name."""

    job: str
    task: str = ""
    tasks: tuple[tuple[int, int], ...] = ()
    het: str = ""
    step: str = ""

    @property
    def asked(self) -> str:
        """As Slurm's commands take it: of several tasks, their array."""
        return self.job + (f"_{self.task}" if self.task else f"+{self.het}" if self.het else "")

    def __str__(self) -> str:
        spans = ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in self.tasks)
        return self.asked + (f"_[{spans}]" if spans else "") + (f".{self.step}" if self.step else "")

    def names(self, task: str) -> bool:
        """Is the task of the array among those named? task: an index; of tasks that wait together, a list."""
        return not self.tasks or (task.isdecimal() and any(a <= int(task) <= b for a, b in self.tasks))


def parse(text: str) -> JobId:
    """Errors: UsageError when it is no job id."""
    found = _ID.fullmatch(text.strip())
    if not found:
        raise UsageError(
            f"{text.strip()[:60]!r} is no job id of Slurm", "write 123, 123_4 or 123_[1-4] of an array, 123+1, or 123.0"
        )
    spans = tuple(_span(part) for part in (found["tasks"] or "").split(",") if part)
    return JobId(found["job"], found["task"] or "", spans, found["het"] or "", found["step"] or "")


def _span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)
