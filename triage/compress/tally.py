"""What is kept of one template, in a portion of the file and in one run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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

Placed = tuple[int, bytes]  # place among the lines of a portion, and the line


class Target:
    """A template: the lines of one skeleton and kind. labels: how many rank labels of its lines are to be noted."""

    __slots__ = ("clean", "kind", "labels", "name")

    def __init__(self, name: bytes, kind: Kind, labels: int, is_clean: bool) -> None:
        self.name, self.kind, self.labels, self.clean = name, kind, labels, is_clean

    def label_of(self, line: bytes) -> bytes:
        """The rank labels in front of a line; a label ends in a colon."""
        if not self.clean:
            line = clean.plain(line)
        end = line.find(b":")
        return line[: (end if self.labels == 1 else line.find(b":", end + 1)) + 1]


class Part(NamedTuple):
    """What a portion of the file holds of one template: of more lines than these, the first and the last."""

    name: bytes
    kind: Kind
    total: int
    first: list[Placed]
    last: list[Placed]
    labels: Collection[bytes]


class Tally:
    """The lines of one template in one run: all counted, the first and last kept."""

    __slots__ = ("count", "first", "id", "kind", "labels", "last", "quota")

    def __init__(self, id_: int, kind: Kind, quota: tuple[int, int]) -> None:
        self.id, self.kind, self.quota = id_, kind, quota
        self.count = 0
        self.first: list[RawLine] = []
        self.last: list[RawLine] = []
        self.labels: set[bytes] = set()

    def add(self, base: int, part: Part) -> int:
        """Adds lines that follow, numbered base + place; returns about how many bytes more are kept."""
        self.count += part.total
        self._note(part.labels)
        most, tail = self.quota
        lines = [RawLine(base + place, line) for place, line in (*part.first, *part.last)]
        start = min(most - len(self.first), len(lines)) if not self.last else 0
        cost = _cost(lines[:start])
        self.first += lines[:start]
        added = lines[max(start, len(lines) - tail) :]
        cost += _cost(added)
        self.last += added
        surplus = len(self.last) - tail
        if surplus > 0:
            cost -= _cost(self.last[:surplus])
            del self.last[:surplus]
        return cost

    def _note(self, labels: Collection[bytes]) -> None:
        if labels and len(self.labels) < MAX_LABELS:
            self.labels.update(labels)

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
        self._note(other.labels)

    def cost(self) -> int:
        return TEMPLATE_COST + _cost(self.first) + _cost(self.last) + 60 * len(self.labels)

    def template(self, rule_id: str | None) -> Template:
        ranks = {found for label in self.labels if (found := clean.rank(label)) is not None}
        hot = self.kind.name == "hot"
        return Template(self.id, self.count, tuple(self.first), tuple(self.last), rule_id, hot, tuple(sorted(ranks)))


def _cost(lines: Iterable[RawLine]) -> int:
    return sum(len(line.raw) + LINE_COST for line in lines)
