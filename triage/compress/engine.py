"""The scan: one pass over a log of any size, in bounded memory, that counts, drops and keeps lines by template.

A template is a skeleton: the line without digits and lower-case hex letters. A block of lines is translated and split
at once, grouped by skeleton, and only groups are looked at, so the work a line is one append.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Protocol

from triage.compress import clean
from triage.compress.blocks import Block, Blocks
from triage.compress.classify import Classifier, Shape
from triage.compress.limits import ScanLimits
from triage.compress.run import SUMMARY_COST, Run, merge, summary
from triage.compress.tally import ALARM, HOT
from triage.domain import FilterRule, ScannedFile, ScannedRun
from triage.regex import skeleton

__all__ = ["Openings", "ScanLimits", "Scanner"]


class Openings(Protocol):
    """Finds where runs begin in one file; asked block after block, in order."""

    def openings(self, lines: Sequence[bytes], groups: Mapping[bytes, Sequence[int]], first_number: int) -> list[int]:
        """Places in `lines` that open a run, ascending. groups: places by skeleton; first_number: of the first line."""
        ...


_NO_RULE = -2  # no kind of line has it
_LONG_KEY = 2048  # a longer skeleton is remembered by its hash


class Scanner:
    """Scans files against one set of filter rules and signatures.

    rules: tried in order; hot: erased signature patterns (triage.regex.erase).
    signatures: the signature patterns themselves. A line is then hot only if one of them matches it; an erased pattern
    that comes from none of them, or all when there are none, makes every line hot whose skeleton it matches.
    runs: makes what finds the runs of a file; None: a file is one run.
    """

    def __init__(
        self,
        rules: Sequence[FilterRule],
        hot: Sequence[str],
        runs: Callable[[], Openings] | None = None,
        limits: ScanLimits | None = None,
        signatures: Sequence[str] = (),
    ) -> None:
        self.limits = limits or ScanLimits()
        self._classifier = Classifier(rules, hot, signatures)
        self._runs = runs

    def another(self, limits: ScanLimits) -> Scanner:
        """For the files of another job: what is compiled is shared, what was learned from earlier files is not."""
        other = copy.copy(self)
        other.limits, other._classifier = limits, self._classifier.forgetful()
        return other

    def scan(self, name: str, chunks: Iterable[bytes]) -> ScannedFile:
        """One pass over the file, given as bytes cut anywhere."""
        return self._start().scan(name, chunks)

    @property
    def rules(self) -> Sequence[FilterRule]:
        return self._classifier.rules

    def taken(self, rule_id: str, chunks: Iterable[bytes]) -> Iterator[tuple[int, list[bytes], set[int]]]:
        """Block by block: the number of its first line, its lines, and the numbers of those that the rule takes."""
        wanted = next((at for at, rule in enumerate(self.rules) if rule.id == rule_id), -1)
        return self._start().taken(wanted, chunks)

    def _start(self) -> _Scan:
        return _Scan(self._classifier, self._runs() if self._runs else None, self.limits)


class _Scan:
    """The state of one scan."""

    def __init__(self, classifier: Classifier, finder: Openings | None, limits: ScanLimits) -> None:
        self._classifier, self._finder, self._limits = classifier, finder, limits
        self._rule_ids = [rule.id for rule in classifier.rules]
        self._shapes: dict[bytes, Shape] = {}
        self._runs: list[ScannedRun] = []
        self._kept: list[int] = []  # bytes kept of each closed run
        self._cut_runs = 0
        self._problems: list[str] = []
        self._run = Run(1, "", limits, self._rule_ids, 0)
        self._number = 1  # of the next line
        self._wanted = _NO_RULE
        self._taken: set[int] = set()  # numbers of the lines that the wanted rule took in this block

    def scan(self, name: str, chunks: Iterable[bytes]) -> ScannedFile:
        size = 0
        for block in Blocks(chunks, self._limits, self._loud):
            size += block.size
            self._block(block)
        if self._number > 1:
            self._close()
        if self._cut_runs:
            self._problems.append(
                f"of {self._cut_runs} earlier runs only the ends were kept, of the oldest not even those"
            )
        return ScannedFile(name, size, self._number - 1, tuple(self._runs), tuple(self._problems))

    def taken(self, rule: int, chunks: Iterable[bytes]) -> Iterator[tuple[int, list[bytes], set[int]]]:
        """The blocks of the file, each with the numbers of the lines that the rule takes."""
        self._wanted = rule
        for block in Blocks(chunks, self._limits, self._loud):
            first = self._number
            self._block(block)
            yield first, block.lines, self._taken
            self._taken = set()

    # ------------------------------------------------------------------------------------------ blocks
    def _block(self, block: Block) -> None:
        groups = _group(block.keys)
        shapes = self._lookup(groups, block.lines)
        opens = self._finder.openings(block.lines, groups, self._number) if self._finder else []
        if not opens:
            self._part(block.lines, groups, shapes, block.size)
            self._relieve()
            return
        sizes = block.sizes()
        borders = [0, *opens, len(block.lines)]
        for start, end in itertools.pairwise(borders):
            if start:
                self._close()
                started_by = clean.text(block.lines[start])
                self._run = Run(self._number, started_by, self._limits, self._rule_ids, self._run.next_id)
            self._part(block.lines[start:end], _group(block.keys[start:end]), shapes, sum(sizes[start:end]))
            self._relieve()

    def _part(self, lines: list[bytes], groups: dict[bytes, list[int]], shapes: dict[bytes, Shape], size: int) -> None:
        """Lines of one run."""
        base, run, split = self._number, self._run, self._classifier.split
        for key, places in groups.items():
            shape = shapes[key]
            mine = itemgetter(*places)(lines) if len(places) > 1 else (lines[places[0]],)
            for kind, chosen in split(shape, mine):
                if kind.rule == self._wanted:
                    self._taken.update(base + places[at] for at in chosen or range(len(places)))
                if chosen is None:
                    run.add(shape, kind, base, places, mine)
                else:
                    run.add(shape, kind, base, [places[at] for at in chosen], [mine[at] for at in chosen])
        run.edge(base, lines, size)
        self._number += len(lines)

    # ------------------------------------------------------------------------------------------ shapes
    def _lookup(self, groups: Mapping[bytes, Sequence[int]], lines: Sequence[bytes]) -> dict[bytes, Shape]:
        """The shape of each skeleton; those that are new are classified together."""
        found: dict[bytes, Shape] = {}
        news: dict[bytes, bytes] = {}  # skeleton -> what it is remembered by
        for key in groups:
            short = key if len(key) <= _LONG_KEY else hashlib.blake2b(key, digest_size=24).digest()
            shape = self._shapes.get(short)
            if shape is None:
                news[key] = short
            else:
                found[key] = shape
        made = self._classifier.shapes([(lines[groups[key][0]], key) for key in news])
        for (key, short), shape in zip(news.items(), made, strict=True):
            found[key] = self._shapes[short] = shape
        return found

    def _loud(self, states: Sequence[bytes]) -> list[bytes]:
        """Of states that carriage returns overwrote, those that must be kept, in order."""
        if len(self._shapes) > 2 * self._limits.max_templates:
            self._forget()
        found: list[int] = []
        groups = _group([skeleton(state) for state in states])
        shapes = self._lookup(groups, states)
        for key, places in groups.items():
            shape = shapes[key]
            if not (shape.always_hot or shape.watch or shape.guarded):
                continue
            for kind, chosen in self._classifier.split(shape, [states[at] for at in places]):
                if kind in (HOT, ALARM):
                    found += places if chosen is None else [places[at] for at in chosen]
        return [states[at] for at in sorted(found)]

    def _forget(self) -> None:
        """Forgets skeletons that have no lines in this run; seen again, they are classified again."""
        self._shapes = {key: shape for key, shape in self._shapes.items() if shape.tallies}

    # ------------------------------------------------------------------------------------------ bounds
    def _relieve(self) -> None:
        """Keeps to the budget: earlier runs give way first."""
        if self._run.kept + sum(self._kept) > self._limits.budget:
            for at in range(len(self._runs)):
                self._summarise(at)
        if self._run.kept + sum(self._kept) > self._limits.budget or self._run.crowded():
            self._run.relieve(self._limits.budget - sum(self._kept))
        if len(self._shapes) > self._limits.max_templates:
            self._forget()

    def _close(self) -> None:
        self._problems += self._run.problems()
        self._runs.append(self._run.close())
        self._kept.append(self._run.kept)
        surplus = len(self._runs) - self._limits.max_runs
        if surplus > 0:
            self._summarise(surplus)
        if surplus > self._limits.max_runs:
            self._cut_runs += surplus - 1
            self._runs[1:surplus] = [merge(self._runs[1:surplus])]
            self._kept[1:surplus] = [SUMMARY_COST]

    def _summarise(self, at: int) -> None:
        if self._kept[at] > SUMMARY_COST:
            self._runs[at], self._kept[at] = summary(self._runs[at]), SUMMARY_COST
            self._cut_runs += 1


def _group(keys: Sequence[bytes]) -> dict[bytes, list[int]]:
    """Where each skeleton stands."""
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        groups[key].append(at)
    return groups
