"""The scan: one pass over a log of any size, in bounded memory, that counts, drops and keeps lines by template.

A template is a skeleton: the line without digits and lower-case hex letters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from triage.compress import clean, guard
from triage.domain import FilterRule, RawLine, ScannedFile, ScannedRun, Template
from triage.regex import PatternSet, skeleton

Boundary = Callable[[bytes, bytes | None], bool]


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """How much of a file is kept. Occurrences per template and run; sizes in bytes."""

    hot_first: int = 2000
    hot_last: int = 200
    alarm_first: int = 500
    alarm_last: int = 100
    plain_first: int = 8
    plain_last: int = 8
    routine_first: int = 2
    routine_last: int = 2
    head_lines: int = 60
    tail_lines: int = 300
    line_limit: int = 1 << 20
    line_keep: int = 64 << 10
    budget: int = 48 << 20


class _Tally:
    def __init__(self, id_: int, rule: str | None, hot: bool, quota: tuple[int, int]) -> None:
        self.id, self.rule, self.hot, self.quota = id_, rule, hot, quota[0]
        self.count = 0
        self.first: list[RawLine] = []
        self.last: deque[RawLine] = deque(maxlen=quota[1])
        self.ranks: set[int] = set()

    def add(self, line: RawLine) -> None:
        self.count += 1
        if len(self.first) < self.quota:
            self.first.append(line)
        else:
            self.last.append(line)
        if self.rule is None and (rank := clean.rank(line.raw)) is not None:
            self.ranks.add(rank)

    def template(self) -> Template:
        return Template(
            self.id, self.count, tuple(self.first), tuple(self.last), self.rule, self.hot, tuple(sorted(self.ranks))
        )


class Scanner:
    """Scans files against one set of filter rules and signatures.

    rules: tried in order; hot: erased signature patterns (triage.regex.erase);
    signatures: the same patterns not erased, in the same order, or empty: then every line whose skeleton an erased
    pattern matches counts as hot. is_boundary(line, first line of the file): whether the line opens a new run.
    """

    def __init__(
        self,
        rules: Sequence[FilterRule],
        hot: Sequence[str],
        is_boundary: Boundary | None = None,
        limits: ScanLimits | None = None,
        signatures: Sequence[str] = (),
    ) -> None:
        self._rules = tuple(rules)
        self._rule_set = PatternSet([rule.pattern for rule in rules], "filter rules")
        self._hot = PatternSet(hot, "signatures")
        self._exact = PatternSet(signatures, "signatures") if signatures else None
        self._is_boundary = is_boundary
        self.limits = limits or ScanLimits()

    def scan(self, name: str, chunks: Iterable[bytes]) -> ScannedFile:
        """One pass over the file, given as bytes cut anywhere."""
        runs: list[ScannedRun] = []
        run = _Run(1, "")
        first: bytes | None = None
        number = size = 0
        for raw, length in self._lines(chunks):
            number, size = number + 1, size + length
            if self._is_boundary is not None and number > 1 and self._is_boundary(clean.plain(raw), first):
                runs.append(run.close(number - 1, self.limits))
                run = _Run(number, clean.text(raw))
            first = clean.plain(raw) if first is None else first
            run.add(RawLine(number, raw), length, self._class(raw), self.limits)
        if number:
            runs.append(run.close(number, self.limits))
        return ScannedFile(name, size, number, tuple(runs))

    def _class(self, raw: bytes) -> tuple[bytes, str, str | None]:
        shape = skeleton(raw)
        text = clean.text(raw)
        if self._hot.match(shape.decode("utf-8", "replace")) and (self._exact is None or self._exact.match(text)):
            return shape, "hot", None
        level = guard.alarm(text)
        for index in self._rule_set.match(text):
            if level == "" or (level == "warning" and self._rules[index].drops_warnings):
                return shape, "routine", self._rules[index].id
        return shape, "alarm" if level else "plain", None

    def _lines(self, chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        """Each line without its end, and its length in the file."""
        pending = b""
        for chunk in chunks:
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                yield self._reduce(line), len(line) + 1
        if pending:
            yield self._reduce(pending), len(pending)

    def _reduce(self, raw: bytes) -> bytes:
        states = [state for state in raw.split(b"\r") if state.strip()]
        hidden = [state for state in states[:-1] if self._class(state)[1] in ("hot", "alarm")]
        raw = b" \xe2\x90\x8d ".join([*hidden, *states[-1:]])
        if len(raw) > self.limits.line_limit:
            keep = self.limits.line_keep
            raw = raw[:keep] + b" [%d bytes cut] " % (len(raw) - 2 * keep) + raw[-keep:]
        return raw


class _Run:
    def __init__(self, first_line: int, started_by: str) -> None:
        self.first_line, self.started_by = first_line, started_by
        self.tallies: dict[tuple[bytes, str, str | None], _Tally] = {}
        self.head: list[RawLine] = []
        self.tail: deque[RawLine] = deque()
        self.bytes_in = 0

    def add(self, line: RawLine, length: int, key: tuple[bytes, str, str | None], limits: ScanLimits) -> None:
        self.bytes_in += length
        if key not in self.tallies:
            kind = key[1]
            quota = (getattr(limits, f"{kind}_first"), getattr(limits, f"{kind}_last"))
            self.tallies[key] = _Tally(len(self.tallies), key[2], kind == "hot", quota)
        self.tallies[key].add(line)
        if len(self.head) < limits.head_lines:
            self.head.append(line)
        else:
            self.tail.append(line)
            if len(self.tail) > limits.tail_lines:
                self.tail.popleft()

    def close(self, last_line: int, _limits: ScanLimits) -> ScannedRun:
        templates = tuple(tally.template() for tally in self.tallies.values())
        return ScannedRun(
            self.first_line, last_line, templates, (*self.head, *self.tail), self.bytes_in, self.started_by
        )
