"""The lines of a file that are shown whatever the budget: its last, and the last signs of life before its first error. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from triage import heads
from triage.compress.wording import wording
from triage.domain import LogFile, LogLine

_ALIKE = 3  # of one wording, over all files
_PROGRESS_LINES = 20  # that a rule takes for its lines to count as the file's progress


class Landmarks:
    """Asked of one file after another: of a thousand ranks that end alike the first few suffice."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str | None, str]] = Counter()

    def of(self, file: LogFile, weigh: Callable[[LogLine], str]) -> tuple[set[int], int]:
        """The numbers of the signs of life, and of the last line with text; 0 when enough files end with its like."""
        found = set()
        error = next((line.number for line in file.lines if line.rule is None and weigh(line) == "error"), None)
        if error is not None:
            before = [line for line in file.lines if line.number < error]
            steps = _progress_rule(file)
            stamped = next((line for line in reversed(before) if line.time is not None), None)
            step = next((line for line in reversed(before) if steps is not None and line.rule == steps), None)
            found = {line.number for line in (stamped, step) if line is not None and self._is_new("sign", line)}
        last = next((line for line in reversed(file.lines) if line.text.strip()), None)
        return found, last.number if last is not None and self._is_new("last", last) else 0

    def _is_new(self, role: str, line: LogLine) -> bool:
        key = role, line.rule, wording(heads.split(line.text)[1])
        self._seen[key] += 1
        return self._seen[key] <= _ALIKE


def _progress_rule(file: LogFile) -> str | None:
    """The rule that takes most lines with numbers, if they are many."""
    counted = {line.rule for line in file.lines if line.rule is not None and any(map(str.isdigit, line.text))}
    rule = max(counted, key=lambda rule: file.dropped.get(rule, 0), default=None)
    return rule if rule is not None and file.dropped.get(rule, 0) >= _PROGRESS_LINES else None
