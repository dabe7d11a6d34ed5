"""What is kept of one template and of one run, and what is given up when that grows too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from triage.compress import clean
from triage.domain import RawLine, Template

LINE_COST = 150  # bytes that Python needs for a kept line besides its text
TEMPLATE_COST = 700
MAX_LABELS = 20_000


class Kind(NamedTuple):
    """What becomes of a line. rule: index of the filter rule that takes it."""

    name: Literal["hot", "routine", "alarm", "plain"]
    rule: int = -1


HOT, ALARM, PLAIN = Kind("hot"), Kind("alarm"), Kind("plain")


class Tally:
    """The lines of one template in one run: all counted, the first and last kept."""

    __slots__ = ("count", "first", "id", "kind", "labels", "last", "quota")

    def __init__(self, id_: int, kind: Kind, quota: tuple[int, int]) -> None:
        self.id, self.kind, self.quota = id_, kind, quota
        self.count = 0
        self.first: list[RawLine] = []
        self.last: list[RawLine] = []
        self.labels: set[bytes] | None = None

    def add(self, base: int, places: Sequence[int], lines: Sequence[bytes]) -> int:
        """Adds these lines, numbered base + place; returns about how many bytes more are kept."""
        self.count += len(lines)
        most, tail = self.quota
        start = min(most - len(self.first), len(lines)) if not self.last else 0
        cost = 0
        for at in range(start):
            self.first.append(RawLine(base + places[at], lines[at]))
            cost += len(lines[at]) + LINE_COST
        for at in range(max(start, len(lines) - tail), len(lines)):
            self.last.append(RawLine(base + places[at], lines[at]))
            cost += len(lines[at]) + LINE_COST
        surplus = len(self.last) - tail
        if surplus > 0:
            cost -= sum(len(line.raw) + LINE_COST for line in self.last[:surplus])
            del self.last[:surplus]
        return cost

    def add_labels(self, lines: Sequence[bytes], labels: int, is_clean: bool) -> None:
        """Notes the rank labels in front of these lines; a label ends in a colon."""
        if self.labels is None:
            self.labels = set()
        if len(self.labels) > MAX_LABELS:
            return
        if not is_clean:
            lines = [clean.plain(line) for line in lines]
        if labels == 1:
            self.labels.update({line[: line.find(b":") + 1] for line in lines})
        else:
            self.labels.update({line[: line.find(b":", line.find(b":") + 1) + 1] for line in lines})

    def limit(self, quota: tuple[int, int]) -> int:
        """Keeps no more than this from now on; returns how many bytes that frees."""
        self.quota = (min(self.quota[0], quota[0]), min(self.quota[1], quota[1]))
        if len(self.first) <= self.quota[0] and len(self.last) <= self.quota[1]:
            return 0
        before = self.cost()
        surplus = self.first[self.quota[0] :]
        del self.first[self.quota[0] :]
        self.last = [*surplus, *self.last][-self.quota[1] :] if self.quota[1] else []
        return before - self.cost()

    def absorb(self, other: Tally) -> None:
        """Counts the lines of another template as its own, and keeps none of them."""
        self.count += other.count
        if other.labels and len(self.labels or ()) < MAX_LABELS:
            self.labels = (self.labels or set()) | other.labels

    def cost(self) -> int:
        kept = len(self.first) + len(self.last)
        text = sum(len(line.raw) for line in self.first) + sum(len(line.raw) for line in self.last)
        return TEMPLATE_COST + text + kept * LINE_COST + 60 * len(self.labels or ())

    def template(self, rule_id: str | None) -> Template:
        ranks = {found for label in self.labels or () if (found := clean.rank(label)) is not None}
        hot = self.kind.name == "hot"
        return Template(self.id, self.count, tuple(self.first), tuple(self.last), rule_id, hot, tuple(sorted(ranks)))
