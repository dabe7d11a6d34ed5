"""The run being scanned: its templates, its head and tail; and what gives way when the budget is short."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from triage.compress.limits import ScanLimits
from triage.compress.portion import Digest
from triage.compress.tally import LINE_COST, TEMPLATE_COST, Kind, Tally
from triage.domain import RawLine, ScannedRun, Template

SUMMARY_LINES = 10
SUMMARY_COST = SUMMARY_LINES * 2 * LINE_COST
ENOUGH = 0.8  # a relief is done when no more than this part of the room is taken,
RELIEF = 0.7  # and each of its steps aims at this, so that reliefs stay rare
_KEEP_APART = 200  # templates of a kind that are never summed up, at either end

# What gives way, in this order: quotas of a kind, then its templates in the middle of the run.
_STEPS: tuple[tuple[str, tuple[int, int] | None], ...] = (
    ("routine", (1, 1)),
    ("routine", None),
    ("plain", (4, 4)),
    ("plain", (1, 2)),
    ("plain", None),
    ("alarm", (100, 50)),
    ("alarm", (10, 10)),
    ("hot", (500, 200)),
    ("alarm", None),
    ("hot", (100, 50)),
    ("hot", (10, 10)),
    ("hot", None),
)


class Run:
    """One run. rule_ids: the filter rules by index; next_id: the id of the next template of the file."""

    def __init__(
        self, first_line: int, started_by: str, limits: ScanLimits, rule_ids: Sequence[str], next_id: int
    ) -> None:
        self.first_line, self.started_by = first_line, started_by
        self.last_line = first_line - 1
        self.bytes_in = 0
        self.next_id = next_id
        self.kept = 0  # about how many bytes are kept
        self._rule_ids = rule_ids
        self._limits = limits
        self._quotas = {name: limits.quota(name) for name in ("hot", "alarm", "plain", "routine")}
        self._tallies: dict[tuple[bytes, Kind], Tally] = {}
        self._overflow: dict[Kind, Tally] = {}
        self._head: list[RawLine] = []
        self.head_open = True  # the next lines are its head
        self._head_room = limits.budget // 16
        self._tail: deque[tuple[int, Sequence[bytes], int]] = deque()
        self._tail_lines = 0
        self._given_up: dict[str, str] = {}

    # ------------------------------------------------------------------------------------------ filling
    def add(self, first_number: int, digest: Digest) -> None:
        """The run goes on with these lines, the first of which has this number."""
        for part in digest.parts:
            tally = self._tallies.get((part.name, part.kind))
            if tally is None:
                tally = self._tallies[part.name, part.kind] = self._new(part.kind)
            self.kept += tally.add(first_number, part)
        self.bytes_in += digest.size
        self.last_line = first_number + digest.lines - 1
        taken = self._extend_head(first_number, digest.head) if self.head_open else 0
        tail = digest.tail[max(0, taken + len(digest.tail) - digest.lines) :]
        tail = tail[max(0, len(tail) - self._limits.tail_lines) :]
        if tail:
            self._extend_tail(first_number + digest.lines - len(tail), tail)

    def _new(self, kind: Kind) -> Tally:
        tally = Tally(self.next_id, kind, self._quotas[kind.name])
        self.next_id += 1
        self.kept += TEMPLATE_COST
        return tally

    def _extend_head(self, first_number: int, lines: Sequence[bytes]) -> int:
        """Returns how many of the lines the head takes."""
        for at, line in enumerate(lines):
            cost = len(line) + LINE_COST
            if self._head and cost > self._head_room:
                self.head_open = False
                return at
            self._head.append(RawLine(first_number + at, line))
            self._head_room -= cost
            self.kept += cost
            if len(self._head) >= self._limits.head_lines:
                self.head_open = False
                return at + 1
        return len(lines)

    def _extend_tail(self, first_number: int, lines: Sequence[bytes]) -> None:
        """Holds the last pieces that make up the tail; which lines exactly is settled on closing."""
        cost = sum(map(len, lines)) + len(lines) * LINE_COST
        self._tail.append((first_number, lines, cost))
        self._tail_lines += len(lines)
        self.kept += cost
        while self._tail_lines - len(self._tail[0][1]) >= self._limits.tail_lines:
            _, dropped, cost = self._tail.popleft()
            self._tail_lines -= len(dropped)
            self.kept -= cost

    def _tail_of_run(self) -> list[RawLine]:
        found: list[RawLine] = []
        room = self._limits.budget // 4
        for first_number, piece, _ in reversed(self._tail):
            for at in range(len(piece) - 1, -1, -1):
                room -= len(piece[at]) + LINE_COST
                if len(found) == self._limits.tail_lines or (found and room < 0):
                    return found[::-1]
                found.append(RawLine(first_number + at, piece[at]))
        return found[::-1]

    # ------------------------------------------------------------------------------------------ closing
    def close(self) -> ScannedRun:
        templates = tuple(self._template(tally) for tally in sorted(self._all(), key=lambda tally: tally.id))
        edges = (*self._head, *self._tail_of_run())
        return ScannedRun(self.first_line, self.last_line, templates, edges, self.bytes_in, self.started_by)

    def _template(self, tally: Tally) -> Template:
        return tally.template(self._rule_ids[tally.kind.rule] if tally.kind.rule >= 0 else None)

    def _all(self) -> Iterator[Tally]:
        yield from self._tallies.values()
        yield from self._overflow.values()

    def problems(self) -> list[str]:
        """What was given up, in words."""
        if not self._given_up:
            return []
        return [f"lines {self.first_line}-{self.last_line}: to bound memory, " + "; ".join(self._given_up.values())]

    # ------------------------------------------------------------------------------------------ relief
    def crowded(self) -> bool:
        return len(self._tallies) > self._limits.max_templates

    def relieve(self, room: int) -> None:
        """Gives up lines until what is kept takes no more than a part of `room` bytes, and templates are few enough."""
        for name, quota in _STEPS:
            if self.kept <= room * ENOUGH and not self.crowded():
                return
            excess = self.kept - round(room * RELIEF)
            if quota is None:
                surplus = len(self._tallies) - self._limits.max_templates // 2 if self.crowded() else 0
                self.kept -= self._sum_up(name, excess, surplus)
            elif excess > 0:
                self.kept -= self._limit(name, quota)

    def _limit(self, name: str, quota: tuple[int, int]) -> int:
        self._quotas[name] = (min(self._quotas[name][0], quota[0]), min(self._quotas[name][1], quota[1]))
        freed = sum(tally.limit(quota) for tally in self._tallies.values() if tally.kind.name == name)
        if freed:
            self._given_up[name] = f"at most {quota[0]} + {quota[1]} lines of each {name} template were kept"
        return freed

    def _sum_up(self, name: str, excess: int, surplus: int) -> int:
        """Of this kind, as many templates as must give way, the oldest in the middle, are only counted from here on.

        Returns how many bytes that frees.
        """
        keys = [key for key, tally in self._tallies.items() if tally.kind.name == name]
        apart = min(_KEEP_APART, self._limits.max_templates // 20, self._limits.budget // 16_000)
        middle: list[tuple[bytes, Kind]] = []
        freed = 0
        for key in keys[apart : len(keys) - apart]:
            if freed >= excess and len(middle) >= surplus:
                break
            middle.append(key)
            freed += self._tallies[key].cost()
        if not middle:
            return 0
        for key in middle:
            tally = self._tallies.pop(key)
            if tally.kind not in self._overflow:
                self._overflow[tally.kind] = Tally(self.next_id, tally.kind, (0, 0))
                self.next_id += 1
            self._overflow[tally.kind].absorb(tally)
        if name != "routine":
            lines = sum(tally.count for kind, tally in self._overflow.items() if kind.name == name)
            self._given_up[name + " summed up"] = f"{lines} {name} lines of rare wordings were only counted"
        return freed


def summary(run: ScannedRun) -> ScannedRun:
    """The run with its lines but the last few left out, its counts summed up."""
    count = sum(template.count for template in run.templates)
    first = run.templates[0].id
    return replace(run, templates=(Template(first, count, (), (), None, False),), edges=run.edges[-SUMMARY_LINES:])


def merge(runs: Sequence[ScannedRun]) -> ScannedRun:
    """Several runs, one after the other, as one summary."""
    templates = tuple(template for run in runs for template in run.templates)
    whole = replace(runs[-1], first_line=runs[0].first_line, templates=templates, started_by=runs[0].started_by)
    return summary(replace(whole, bytes_in=sum(run.bytes_in for run in runs)))
