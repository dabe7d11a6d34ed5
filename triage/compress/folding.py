"""Folding: lines that say the same become one with a count and ranks. Pure.

Routine speech folds by template, and a wording that was shown a few times is only counted from then on. A line that warns
or reports an error folds only with lines identical after the label, the time stamp and the numbers of processes, for a host,
device, path or number may be the very thing that matters: only when there is no room for all of them do lines of one
wording fold, beyond the first few. A traceback is folded as a whole, into one that differs in its wording in nothing.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from triage import heads
from triage.compress import guard
from triage.compress.landmarks import Landmarks
from triage.compress.tracebacks import HEADER, OpenTraceback, Tracebacks
from triage.compress.wording import anonymous, wording
from triage.domain import LogFile, LogLine

Weight = Literal["error", "warning", "other"]

_WINDOW = 12  # shown lines that a routine line looks back over for one of its template
_ALIKE = 3  # lines of one wording that are shown
_NEAR = 100  # lines
_END = 2  # lines at the end of a file that are always shown


@dataclass(slots=True)
class Entry:
    """A line to show, and what it stands for. block: the number of its traceback in its file, -1 for none.

    protected: cited, so shown as it is; landmark: shown always; last: of its file.
    """

    line: LogLine
    weight: Weight
    stream: str  # who printed it, as far as its labels tell
    body: str
    protected: bool = False
    landmark: bool = False
    last: bool = False
    block: int = -1
    frame: bool = False  # inside a traceback, not what it ends in
    repeats: int = 1
    ranks: set[int] = field(default_factory=set)

    def absorb(self, other: Entry) -> None:
        self.repeats += other.repeats
        self.ranks |= other.ranks

    @property
    def always(self) -> bool:
        """Whether it is shown whatever the budget."""
        return self.protected or self.landmark or self.last

    def may_go_into(self, other: Entry) -> bool:
        """A file's last line goes only into what tells of its end as well: near it, of another rank or another file's end."""
        if self.protected or self.landmark:
            return False
        near = 0 <= self.line.number - other.line.number <= _NEAR and self.line.file == other.line.file
        return not self.last or other.last or near or self.stream != other.stream

    def folded(self) -> LogLine:
        return replace(self.line, repeats=self.repeats, ranks=tuple(sorted(self.ranks)))


def entries(file: LogFile, protect: Collection[int], landmarks: Landmarks) -> list[Entry]:
    """The lines of a file that no rule takes, and those to show in any case. landmarks: of all files so far."""
    found = []
    marks, last = landmarks.of(file, weigh)
    for line in (*file.earlier, *file.lines):
        protected, landmark = line.number in protect, line.number in marks
        if line.rule is not None and not protected and not landmark and line.number != last:
            continue
        repeats = line.repeats if line.rule is None else 1
        entry = Entry(
            line, weigh(line), *heads.split(line.text), protected, landmark, line.number == last, repeats=repeats
        )
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
        gone, jumbled = self._fold_blocks(found)
        shown: list[Entry] = []
        for at, entry in enumerate(found):
            if at in gone:
                continue
            if entry.block >= 0:
                shown.append(entry)
                if entry.block in jumbled:
                    self._serious.setdefault(anonymous(entry.body), entry)
                continue
            target = self._target(entry, shown)
            if target is None and entry.weight == "other" and at < len(found) - _END:
                target = self._counted(entry)
            if target is not None and entry.may_go_into(target):
                target.absorb(entry)
                continue
            shown.append(entry)
            if entry.weight != "other":
                self._serious.setdefault(anonymous(entry.body), entry)
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
            return self._serious.get(anonymous(entry.body))
        for earlier in shown[: -_WINDOW - 1 : -1]:
            if earlier.weight != "other" or earlier.block >= 0:
                continue
            same = earlier.line.template == entry.line.template and entry.line.template >= 0
            if same or earlier.body == entry.body:
                return earlier
        return None

    def _fold_blocks(self, found: Sequence[Entry]) -> tuple[set[int], set[int]]:
        """Folds whole tracebacks; returns the places folded away, and the numbers of those that are a jumble."""
        blocks: dict[int, list[int]] = {}
        for at, entry in enumerate(found):
            if entry.block >= 0:
                blocks.setdefault(entry.block, []).append(at)
        gone: set[int] = set()
        jumbled: set[int] = set()
        for number, all_places in blocks.items():
            places = all_places
            if _is_jumble([found[at].body for at in places]):
                jumbled.add(number)
                places = _thinned(found, places, gone)
            block = [found[at] for at in places]
            same = self._blocks.setdefault(tuple(wording(entry.body) for entry in block), block)
            if same is block:
                continue
            for at, kept in zip(places, same, strict=True):
                if found[at].may_go_into(kept):
                    kept.absorb(found[at])
                    gone.add(at)
                else:
                    found[at].block = -1  # stands alone: a cited line, without the frames
        return gone, jumbled


def press(files: Sequence[Sequence[Entry]]) -> list[list[Entry]]:
    """Of errors and warnings that differ only in what is quoted, paths and numbers, the first few; these stand for the rest."""
    alike: defaultdict[str, list[Entry]] = defaultdict(list)
    left: list[list[Entry]] = []
    for found in files:
        kept = []
        for entry in found:
            if entry.weight != "other" and entry.block < 0 and not entry.always:
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
    for number, block in enumerate(blocks.values()):
        for entry in block:
            entry.block = number


def _is_jumble(bodies: Sequence[str]) -> bool:
    """Whether it is the tracebacks of several ranks that print without labels."""
    return any(a == b and (HEADER in a or a.lstrip().startswith('File "')) for a, b in itertools.pairwise(bodies))


def _thinned(found: Sequence[Entry], places: Sequence[int], gone: set[int]) -> list[int]:
    """The places in a jumble that remain when its equal lines fold; the others are added to those gone."""
    first: dict[str, int] = {}
    for at in places:
        same = first.setdefault(found[at].body.rstrip(), at)
        if same != at and found[at].may_go_into(found[same]):
            found[same].absorb(found[at])
            gone.add(at)
    return [at for at in places if at not in gone]
