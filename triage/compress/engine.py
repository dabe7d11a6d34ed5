"""The scan: one pass over a log of any size, in bounded memory, that counts, drops and keeps lines by template.

A template is a skeleton: the line without digits and lower-case hex letters. A block of lines is translated, split and
counted at once; only outlines not yet known, and lines that are kept, are looked at. Some blocks make a portion; runs
take portion after portion.
"""

from __future__ import annotations

import contextlib
import copy
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from triage.compress import clean
from triage.compress.blocks import Block, Blocks
from triage.compress.classify import Classifier
from triage.compress.limits import ScanLimits
from triage.compress.portion import Digest, Portion
from triage.compress.run import SUMMARY_COST, Run, merge, summary
from triage.compress.sorter import Sorter
from triage.domain import FilterRule, ScannedFile, ScannedRun

__all__ = ["Block", "Openings", "Part", "Scan", "ScanLimits", "Scanner", "Sighted", "no_collection"]


class Openings(Protocol):
    """Finds where runs begin in one file; asked block after block, in order."""

    def openings(self, block: Block, first_number: int) -> list[int]:
        """Places in the block that open a run, ascending. first_number: of the block's first line."""
        ...

    def signs(self, block: Block) -> frozenset[str]:
        """What in the block may open a run; the same wherever it stands behind the file's first block."""
        ...

    def heeds(self, signs: Iterable[str]) -> bool:
        """Whether, after all blocks so far, lines with these signs could make a difference."""
        ...

    def skip(self, last: Sequence[bytes]) -> None:
        """Lines went by that make no difference; these are the last of them."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file, from piece number `piece` on, where a portion begins. pending: the line so far; last: of the file."""

    chunks: Iterable[bytes]
    piece: int
    pending: bytes
    last: bool


class Sighted(NamedTuple):
    """A portion, and what in it may open a run."""

    digest: Digest
    signs: frozenset[str]


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
        self._sorter = Sorter(Classifier(rules, hot, signatures), self.limits.max_templates)
        self._runs = runs

    def another(self, limits: ScanLimits) -> Scanner:
        """For the files of another job: what is compiled is shared, what was learned from earlier files is not."""
        other = copy.copy(self)
        other.limits, other._sorter = limits, self._sorter.another(limits.max_templates)
        return other

    def scan(self, name: str, chunks: Iterable[bytes]) -> ScannedFile:
        """One pass over the file, given as bytes cut anywhere."""
        scan = self.begin()
        with no_collection():
            for block in Blocks(chunks, self.limits, self._sorter.loud):
                scan.block(block)
            return scan.end(name)

    def begin(self) -> Scan:
        """A scan that is fed by hand."""
        return Scan(self._sorter, self._runs() if self._runs else None, self.limits)

    def blocks(self, part: Part) -> Iterator[Block]:
        """The blocks of a part of a file."""
        return iter(Blocks(part.chunks, self.limits, self._sorter.loud, part.piece, part.pending, part.last))

    def digests(self, part: Part, finder: Openings | None) -> Iterator[Sighted]:
        """What a part of a file holds, portion by portion, as far as it does not depend on what came before it."""
        portion, index, signs = Portion(self._sorter, self.limits, head=False), -1, frozenset[str]()
        with no_collection():
            for block in self.blocks(part):
                if portion.lines and (block.piece // self.limits.portion != index or portion.full):
                    yield Sighted(portion.digest(), signs)
                    self._sorter.forget()
                    portion, signs = Portion(self._sorter, self.limits, head=False), frozenset()
                index = block.piece // self.limits.portion
                portion.add(block)
                if finder:
                    signs |= finder.signs(block)
            if portion.lines:
                yield Sighted(portion.digest(), signs)

    @property
    def rules(self) -> Sequence[FilterRule]:
        return self._sorter.rules

    def taken(self, rule_id: str, chunks: Iterable[bytes]) -> Iterator[tuple[int, list[bytes], set[int]]]:
        """Block by block: the number of its first line, its lines, and the numbers of those that the rule takes."""
        wanted = next((at for at, rule in enumerate(self.rules) if rule.id == rule_id), None)
        first = 1
        for block in Blocks(chunks, self.limits, self._sorter.loud):
            _, found = self._sorter.sort(block, lambda target, _count: target.kind.rule != wanted)
            yield (
                first,
                block.lines,
                {first + at for target, places in found if target.kind.rule == wanted for at in places},
            )
            first += len(block)
            self._sorter.forget()


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Nothing in a scan refers to itself, and looking for what does takes a third of the time where no line repeats."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Scan:
    """The state of one scan."""

    def __init__(self, sorter: Sorter, finder: Openings | None, limits: ScanLimits) -> None:
        self._sorter, self.finder, self._limits = sorter, finder, limits
        self._rule_ids = [rule.id for rule in sorter.rules]
        self._runs: list[ScannedRun] = []
        self._kept: list[int] = []  # bytes kept of each closed run
        self._cut_runs = 0
        self._problems: list[str] = []
        self._size = 0
        self._number = 1  # of the next line
        self._run = Run(1, "", limits, self._rule_ids, 0)
        self._portion = Portion(sorter, limits, head=True)
        self._index = 0  # of the portion in the file

    def end(self, name: str) -> ScannedFile:
        """The file has no more blocks."""
        self._flush()
        if self._number > 1:
            self._close()
        if self._cut_runs:
            self._problems.append(
                f"of {self._cut_runs} earlier runs only the ends were kept, of the oldest not even those"
            )
        return ScannedFile(name, self._size, self._number - 1, tuple(self._runs), tuple(self._problems))

    def block(self, block: Block) -> None:
        """The block that follows."""
        if block.piece // self._limits.portion != self._index or self._portion.full:
            self._flush()
            self._index = block.piece // self._limits.portion
        self._size += block.size
        number = self._number + self._portion.lines
        opens = self.finder.openings(block, number) if self.finder else []
        if not opens:
            self._portion.add(block)
            return
        for at, part in zip([0, *opens], block.cut([0, *opens]), strict=True):
            if at:
                self._flush()
                self._close()
                self._run = Run(self._number, clean.text(part.line(0)), self._limits, self._rule_ids, self._run.next_id)
                self._portion = Portion(self._sorter, self._limits, head=True)
            self._portion.add(part)

    def takes(self, portions: Sequence[Sighted]) -> bool:
        """Takes portions as they are, if they can be taken so; otherwise their blocks must be fed one by one."""
        self._flush()
        signs = frozenset[str]().union(*(portion.signs for portion in portions))
        if self._run.head_open or (self.finder and self.finder.heeds(signs)):
            return False
        for digest, _ in portions:
            self._add(digest)
            self._size += digest.size
            if self.finder:
                self.finder.skip(digest.tail)
        return True

    def _flush(self) -> None:
        """The run takes the portion; another one begins."""
        if self._portion.lines:
            self._add(self._portion.digest())

    def _add(self, digest: Digest) -> None:
        if digest.lines:
            self._run.add(self._number, digest)
            self._number += digest.lines
            self._relieve()
            self._sorter.forget()
            self._portion = Portion(self._sorter, self._limits, head=self._run.head_open)

    # ------------------------------------------------------------------------------------------ bounds
    def _relieve(self) -> None:
        """Keeps to the budget: earlier runs give way first."""
        if self._run.kept + sum(self._kept) > self._limits.budget:
            for at in range(len(self._runs)):
                self._summarise(at)
        if self._run.kept + sum(self._kept) > self._limits.budget or self._run.crowded():
            self._run.relieve(self._limits.budget - sum(self._kept))

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
