"""A portion of a file: some blocks in a row, and of each template what a run needs of it. It tells nothing of runs.

What a portion holds depends on its bytes alone, so portions may be read in any order, and by several processes.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import NamedTuple

from triage.compress.blocks import Block
from triage.compress.limits import ScanLimits
from triage.compress.sorter import Counted, Sorter
from triage.compress.tally import MAX_LABELS, Part, Placed, Target

LOOK_BACK = 40  # lines that what finds the runs looks back at
_FULL = 2000  # templates, of about 2 KB each
_EACH = 16  # lines of an outline that are searched for one by one, at most


class Digest(NamedTuple):
    """What a portion holds. parts: in order of their first lines; head, tail: its first and last lines, of the last LOOK_BACK at least."""

    lines: int
    size: int
    parts: list[Part]
    head: list[bytes]
    tail: list[bytes]


class _Late(NamedTuple):
    """Lines of one template in a block that are counted but not placed. most: those of them that may be last lines."""

    block: Block
    base: int
    outlines: list[bytes]
    most: int

    def place(self, wanted: int) -> list[Placed]:
        """The last of them, at most so many."""
        wanted = min(wanted, self.most)
        if self.most <= _EACH:
            places = sorted(at for outline in self.outlines for at in self.block.first(outline))[-wanted:]
        else:
            mine = frozenset(self.outlines)
            behind = (at for at in range(len(self.block) - 1, -1, -1) if self.block.outlines[at] in mine)
            places = list(itertools.islice(behind, wanted))[::-1]
        return [(self.base + at, self.block.line(at)) for at in places]


class _Gathered:
    """The lines of one template. late: those behind `last`, of which no more than the last count."""

    __slots__ = ("count", "first", "labels", "last", "late", "quota")

    def __init__(self, quota: tuple[int, int]) -> None:
        self.quota = quota
        self.count = 0
        self.first: list[Placed] = []
        self.last: list[Placed] = []
        self.labels: set[bytes] = set()
        self.late: list[_Late] = []

    def add(self, block: Block, base: int, places: list[int], target: Target) -> None:
        """Lines that follow."""
        self.count += len(places)
        if target.labels and len(self.labels) < MAX_LABELS:
            self.labels.update([target.label_of(block.line(at)) for at in places])
        most, tail = self.quota
        start = min(most - len(self.first), len(places))
        self.first += [(base + at, block.line(at)) for at in places[:start]]
        if rest := places[max(start, len(places) - tail) :]:
            self.place()
            self.last = [*self.last, *((base + at, block.line(at)) for at in rest)][-tail:]

    def count_in(self, block: Block, base: int, counted: Counted) -> None:
        """Lines that follow, of which as few as can be are placed, and those as late as can be."""
        self.count += counted.total
        first, more = self.quota[0] - len(self.first), counted.total
        if first:
            places = heapq.merge(*(block.first(outline, first) for outline in counted.outlines))
            self.first += [(base + at, block.line(at)) for at in itertools.islice(places, first)]
            more -= first
        if more >= self.quota[1]:
            self.late = [_Late(block, base, counted.outlines, more)]
            self.last = []
        elif more > 0:
            self.late.append(_Late(block, base, counted.outlines, more))
            while sum(late.most for late in self.late[1:]) >= self.quota[1]:
                del self.late[0]
                self.last = []

    def place(self) -> None:
        """Places the last lines."""
        tail = self.quota[1]
        for late in self.late:
            self.last = [*self.last, *late.place(tail)][-tail:] if tail else []
        self.late.clear()


class Portion:
    """Fed block by block. head: whether the first lines are asked for."""

    def __init__(self, sorter: Sorter, limits: ScanLimits, head: bool) -> None:
        self._sorter, self._limits = sorter, limits
        self._gathered: dict[Target, _Gathered] = {}
        self._quotas = {name: limits.quota(name) for name in ("hot", "alarm", "plain", "routine")}
        self._head: list[bytes] = []
        self._head_lines = limits.head_lines if head else 0
        self._tail: deque[Block] = deque()
        self._tail_lines = max(limits.tail_lines, LOOK_BACK)
        self.lines = self._size = 0

    def add(self, block: Block) -> None:
        counted, found = self._sorter.sort(block, self._enough)
        placed: dict[Target, list[int]] = {}
        for target, places in found:
            placed[target] = sorted(placed[target] + places) if target in placed else places
        for some in counted:
            if some.target in placed:
                placed[some.target] = sorted([*placed[some.target], *block.places(frozenset(some.outlines))])
            else:
                self._of(some.target).count_in(block, self.lines, some)
        for target, places in placed.items():
            self._of(target).add(block, self.lines, places, target)
        if len(self._head) < self._head_lines:
            self._head += map(block.line, range(min(len(block), self._head_lines - len(self._head))))
        self._tail.append(block)
        while len(self._tail) > 1 and sum(map(len, self._tail)) - len(self._tail[0]) >= self._tail_lines:
            self._tail.popleft()
        self.lines += len(block)
        self._size += block.size

    @property
    def full(self) -> bool:
        """Whether it holds so many templates that it should end here."""
        return len(self._gathered) > min(_FULL, self._limits.max_templates)

    def _of(self, target: Target) -> _Gathered:
        found = self._gathered.get(target)
        if found is None:
            found = self._gathered[target] = _Gathered(self._quotas[target.kind.name])
        return found

    def _enough(self, target: Target, count: int) -> bool:
        """Whether so many lines of a block need not be placed one by one, but few at most."""
        if target.labels:
            return False
        known = self._of(target)
        return count <= _EACH or known.quota[0] - len(known.first) <= _EACH

    def digest(self) -> Digest:
        """What was found; the portion is done."""
        for gathered in self._gathered.values():
            gathered.place()
        parts = [
            Part(target.name, target.kind, some.count, some.first, some.last, some.labels)
            for target, some in self._gathered.items()
        ]
        parts.sort(key=lambda part: (part.first or part.last or [(0, b"")])[0][0])
        tail = [line for block in self._tail for line in block.last(self._tail_lines)]
        return Digest(self.lines, self._size, parts, self._head, tail[-self._tail_lines :])
