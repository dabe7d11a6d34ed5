"""Folding: lines that say the same become one with a count and ranks. Pure.

Routine speech folds by template, and a wording that was shown a few times is only counted from then on. A line that warns
or reports an error folds only with lines identical after the label and the time stamp, for a host, device, path or number
may be the very thing that matters: only when there is no room for all of them do lines of one wording fold, beyond the
first few. A traceback folds as a whole.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from triage import heads
from triage.compress import guard
from triage.compress.tracebacks import HEADER, OpenTraceback, Tracebacks
from triage.compress.wording import wording
from triage.domain import LogFile, LogLine

Weight = Literal["error", "warning", "other"]

_WINDOW = 12  # shown lines that a routine line looks back over for one of its template
_ALIKE = 3  # lines of one wording that are shown
_END = 2  # lines at the end of a file that are always shown


@dataclass(slots=True)
class Entry:
    """A line to show, and what it stands for. block: the number of its traceback, -1 for none."""

    line: LogLine
    weight: Weight
    stream: str  # who printed it, as far as its labels tell
    body: str
    protected: bool = False
    block: int = -1
    frame: bool = False  # inside a traceback, not what it ends in
    repeats: int = 1
    ranks: set[int] = field(default_factory=set)

    def absorb(self, other: Entry) -> None:
        self.repeats += other.repeats
        self.ranks |= other.ranks

    def folded(self) -> LogLine:
        ranks = tuple(sorted(self.ranks)) if self.repeats > 1 else ()
        return replace(self.line, repeats=self.repeats, ranks=ranks)


def entries(file: LogFile, protect: Collection[int]) -> list[Entry]:
    """The lines of a file that no rule takes, and protected ones."""
    found = []
    for line in (*file.earlier, *file.lines):
        protected = line.number in protect
        if line.rule is not None and not protected:
            continue
        repeats = line.repeats if line.rule is None else 1
        entry = Entry(line, weigh(line), *heads.split(line.text), protected, repeats=repeats)
        rank = file.rank if line.rank is None else line.rank
        # The ranks of a template are those of all its lines; a line that stands for itself has its own.
        own = () if rank is None else (rank,)
        entry.ranks.update(line.ranks or own if repeats > 1 else own)
        found.append(entry)
    _mark_tracebacks(found)
    return found


def weigh(line: LogLine) -> Weight:
    """How much a line matters."""
    if line.level in ("error", "fatal"):
        return "error"
    grade = guard.alarm(line.text)
    if grade == "error" or (line.hot and line.level != "warning"):
        return "error"
    return "warning" if grade or line.level == "warning" or line.hot else "other"


class Folder:
    """Folds the entries of one file after another; what is serious folds across files."""

    def __init__(self) -> None:
        self._serious: dict[str, Entry] = {}
        self._blocks: dict[tuple[str, ...], list[Entry]] = {}
        self._alike: defaultdict[str, list[Entry]] = defaultdict(list)

    def fold(self, found: Sequence[Entry]) -> list[Entry]:
        """The entries that remain, in order; each stands for those folded into it."""
        gone = self._fold_blocks(found)
        shown: list[Entry] = []
        for at, entry in enumerate(found):
            if at in gone:
                continue
            if entry.block >= 0:
                shown.append(entry)
                continue
            target = self._target(entry, shown)
            if target is None and entry.weight == "other" and at < len(found) - _END:
                target = self._counted(entry)
            if target is not None and not entry.protected:
                target.absorb(entry)
                continue
            shown.append(entry)
            if entry.weight != "other":
                self._serious.setdefault(entry.body.rstrip(), entry)
        return shown

    def _counted(self, entry: Entry) -> Entry | None:
        """The last line shown of this wording, if enough are."""
        alike = self._alike[wording(entry.body)]
        if len(alike) >= _ALIKE:
            return alike[-1]
        alike.append(entry)
        return None

    def _target(self, entry: Entry, shown: Sequence[Entry]) -> Entry | None:
        if entry.weight != "other":
            return self._serious.get(entry.body.rstrip())
        for earlier in shown[: -_WINDOW - 1 : -1]:
            if earlier.weight != "other" or earlier.block >= 0:
                continue
            same = earlier.line.template == entry.line.template and entry.line.template >= 0
            if same or earlier.body == entry.body:
                return earlier
        return None

    def _fold_blocks(self, found: Sequence[Entry]) -> set[int]:
        """Folds whole tracebacks; returns the places of those folded away."""
        blocks: dict[int, list[int]] = {}
        for at, entry in enumerate(found):
            if entry.block >= 0:
                blocks.setdefault(entry.block, []).append(at)
        gone: set[int] = set()
        for places in blocks.values():
            block = [found[at] for at in places]
            same = self._blocks.setdefault(tuple(entry.body.rstrip() for entry in block), block)
            if same is block or any(entry.protected for entry in block):
                continue
            for kept, entry in zip(same, block, strict=True):
                kept.absorb(entry)
            gone.update(places)
        return gone


def press(files: Sequence[Sequence[Entry]]) -> list[list[Entry]]:
    """Of errors and warnings that differ only in what is quoted, paths and numbers, the first few; these stand for the rest."""
    alike: defaultdict[str, list[Entry]] = defaultdict(list)
    left: list[list[Entry]] = []
    for found in files:
        kept = []
        for entry in found:
            if entry.weight != "other" and not entry.frame and not entry.protected:
                same = alike[wording(entry.body)]
                if len(same) >= _ALIKE:
                    same[-1].absorb(entry)
                    continue
                same.append(entry)
            kept.append(entry)
        left.append(kept)
    return left


def _mark_tracebacks(found: Iterable[Entry]) -> None:
    """Numbers the tracebacks."""
    known = Tracebacks()
    blocks: dict[OpenTraceback, list[Entry]] = {}
    for entry in found:
        traceback = known.of(entry.stream, entry.line.number, entry.body)
        if traceback is not None:
            blocks.setdefault(traceback, []).append(entry)
            entry.weight = "error"
            entry.frame = entry.body[:1].isspace() or not entry.body or HEADER in entry.body
    for number, (traceback, block) in enumerate(blocks.items()):
        if _is_sound(traceback, block):
            for entry in block:
                entry.block = number


def _is_sound(traceback: OpenTraceback, block: Sequence[Entry]) -> bool:
    """Not cut off, and not a jumble of several ranks that print without labels."""
    bodies = [entry.body for entry in block]
    jumbled = any(a == b and a.lstrip().startswith('File "') for a, b in itertools.pairwise(bodies))
    return traceback.ended and not jumbled
