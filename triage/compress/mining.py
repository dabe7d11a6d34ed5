"""Templates of lines, and the regular expression of each, written by code: for want of a model, or for one that judges.

Lines that differ in numbers, ids and paths alone are one template. Templates that differ in a few words or names (one
line for every file or layer) are merged. A mined rule is verified like any other (verify.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage import heads
from triage.compress import guard
from triage.compress.candidate import Candidate, Refused
from triage.compress.linewise import AFTER_PREFIX
from triage.compress.telling import is_frame, is_source
from triage.compress.wildcards import MAX_WORDS, Piece, frame, literal, pieces, together
from triage.domain import FilterRule, LogLine
from triage.regex import compile_pattern

MOST = 200  # templates that are given back
STEADY_LINES = 20  # of a template that is routine by its frequency alone
STEADY_BEGIN, STEADY_SPREAD = 0.35, 0.5
_ALIKE = 0.6  # share of words and values that merged templates have in common
_MERGED = 3  # templates that make a merge worth while
_MAX_BODY = 500  # characters; a pattern of a longer line is no template
_SHOWN = 20  # lines kept of a template
_MAX_CLUSTERS = 60  # of lines with the same marks and blanks
_WAKE = 12  # lines after an error that belong to it
_PLAIN_WORDS = 12  # letters that a line must have behind its prefix, or the prefix is taken for part of it

_HTTP = re.compile(r"HTTP/\d(?:\.\d)?[\"']? +$")


@dataclass(frozen=True, slots=True)
class Mined:
    """A template. pattern: anchored behind the prefix, as shipped rules are; lines: some that it was made from.

    count: lines of the log; size: their bytes; begin: where in its file the first line stands, 0 to 1; spread: the part
    of the file from there to the last line.
    """

    pattern: str
    lines: tuple[str, ...]
    count: int
    size: int
    begin: float
    spread: float


@dataclass(slots=True)
class _Template:
    """Lines of the same pieces, values aside."""

    pieces: list[Piece]
    lines: list[str] = field(default_factory=list)
    texts: list[set[str]] = field(default_factory=list)  # what stood in each place, two of all
    whole: list[bool] = field(default_factory=list)  # whether nothing but digits stood there
    seen: int = 0
    after_error: int = 0  # of those seen
    count: int = 0
    size: int = 0
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # file -> first and last line

    def add(self, line: LogLine, found: Sequence[Piece], after_error: bool) -> None:
        self.seen += 1
        self.after_error += after_error
        self.count += line.repeats
        self.size += (len(line.text.encode()) + 1) * line.repeats
        first, last = self.places.get(line.file, (line.number, line.number))
        self.places[line.file] = (min(first, line.number), max(last, line.number))
        if len(self.lines) < _SHOWN:
            self.lines.append(line.text)
        for at, piece in enumerate(found):
            if len(self.texts[at]) < 2:
                self.texts[at].add(piece.text)
            self.whole[at] = self.whole[at] and piece.text.isdigit()


def mine(lines: Iterable[LogLine], most: int = MOST) -> tuple[Mined, ...]:
    """The templates of the lines that no rule takes, no signature knows and no alarm marks; most bytes first.

    What is mostly said right after an error is left out: it belongs to the account of it. lines: of each file in order;
    those that rules take tell how far the file goes.
    """
    everything = list(lines)
    ends: dict[str, tuple[int, int]] = {}
    for line in everything:
        first, last = ends.get(line.file, (line.number, line.number))
        ends[line.file] = (min(first, line.number), max(last, line.number))
    found: list[Mined] = []
    taken: set[str] = set()
    for group in sorted(_merged(_templates(everything)), key=lambda group: -sum(t.size for t in group)):
        mined = _mined(group, ends)
        if mined is not None and mined.pattern not in taken:
            taken.add(mined.pattern)
            found.append(mined)
            if len(found) == most:
                break
    return tuple(found)


def is_steady(mined: Mined) -> bool:
    """Whether the template may be proposed as routine with nobody to judge it: frequent, and all through the run.

    What comes in a burst, at the end above all, may be the failure itself, however often it is said.
    """
    return mined.count >= STEADY_LINES and mined.begin <= STEADY_BEGIN and mined.spread >= STEADY_SPREAD


def _templates(lines: Iterable[LogLine]) -> list[_Template]:
    found: dict[tuple[str, ...], _Template] = {}
    error: dict[tuple[str, str], int] = {}  # (file, who printed it) -> line of the last error
    for line in lines:
        speaker = (line.file, heads.split(line.text)[0])
        grade = guard.alarm(line.text)
        if line.hot or grade == "error" or is_frame(line.text):
            error[speaker] = line.number
        body = "" if line.hot or grade or line.rule is not None else own_text(line.text)
        if not body or len(body) > _MAX_BODY or is_source(body):
            continue
        cut = pieces(body)
        key = tuple(piece.pattern for piece in cut)
        if key not in found:
            found[key] = _Template(cut, texts=[set() for _ in cut], whole=[True] * len(cut))
        found[key].add(line, cut, line.number - error.get(speaker, -_WAKE) < _WAKE)
    return [template for template in found.values() if template.after_error * 2 < template.seen]


def own_text(text: str) -> str:
    """What the line says behind its prefix; of a line that is nearly all prefix, such as a bar, all but its labels."""
    behind = text[_prefix().match(text).end() :].strip()
    if sum(map(str.isalpha, behind)) >= _PLAIN_WORDS:
        return behind
    return heads.split(text)[1].strip()


@functools.cache
def _prefix() -> Any:
    return compile_pattern(AFTER_PREFIX)


def _merged(templates: Sequence[_Template]) -> Iterator[list[_Template]]:
    """The templates that are one but for a few words or names, together; each of the others alone."""
    frames: dict[tuple[str, ...], list[_Template]] = {}
    for template in templates:
        frames.setdefault(frame(template.pieces), []).append(template)
    for same in frames.values():
        clusters: list[_Cluster] = []
        for template in sorted(same, key=lambda t: -t.count):
            home = next((cluster for cluster in clusters if cluster.takes(template)), None)
            if home is not None:
                home.add(template)
            elif len(clusters) < _MAX_CLUSTERS:
                clusters.append(_Cluster(template))
            else:
                yield [template]
        for cluster in clusters:
            if len(cluster.members) >= _MERGED:
                yield cluster.members
            else:
                yield from ([template] for template in cluster.members)


class _Cluster:
    """Templates with the same marks and blanks that share most words and values with the first of them."""

    def __init__(self, first: _Template) -> None:
        self.members = [first]
        self._first = tuple(piece.pattern for piece in first.pieces)
        self._telling = [at for at, mark in enumerate(frame(first.pieces)) if not mark]
        self._words = {at: _plain(first, at) for at in self._telling}

    def takes(self, other: _Template) -> bool:
        apart = [at for at in self._telling if other.pieces[at].pattern != self._first[at]]
        if len(apart) > (1 - _ALIKE) * len(self._telling):
            return False
        return all(len(self._words[at] | _plain(other, at)) <= MAX_WORDS for at in apart)

    def add(self, other: _Template) -> None:
        self.members.append(other)
        for at in self._telling:
            self._words[at] |= _plain(other, at)


def _plain(template: _Template, at: int) -> set[str]:
    piece = template.pieces[at]
    return {piece.pattern} if piece.kind == "word" else set()


def _mined(group: Sequence[_Template], ends: dict[str, tuple[int, int]]) -> Mined | None:
    """The template with its pattern; None when no pattern takes all its lines."""
    lines = tuple(line for template in group for line in template.lines)
    pattern = _pattern(group)
    try:
        if pattern is None or len(Candidate(FilterRule("", "", pattern)).takes(lines)) < len(lines):
            return None
    except Refused:
        return None
    begin, spread = _span(group, ends)
    shown = tuple(line for place in range(_SHOWN) for t in group for line in t.lines[place : place + 1])[:_SHOWN]
    return Mined(pattern, shown, sum(t.count for t in group), sum(t.size for t in group), begin, spread)


def _span(group: Sequence[_Template], ends: dict[str, tuple[int, int]]) -> tuple[float, float]:
    """(begin, spread) in the file through which these lines are spread most."""
    best = (1.0, 0.0)
    for file, (start, end) in ends.items():
        inside = [template.places[file] for template in group if file in template.places]
        if inside and end > start:
            first, last = min(first for first, _ in inside), max(last for _, last in inside)
            found = (round((first - start) / (end - start), 3), round((last - first) / (end - start), 3))
            best = max(best, found, key=lambda span: span[1])
    return best


def _pattern(group: Sequence[_Template]) -> str | None:
    parts = []
    for at, first in enumerate(group[0].pieces):
        texts = set[str]().union(*(template.texts[at] for template in group))
        if first.kind == "number" and len(texts) == 1 and _tells(group[0].pieces, at):
            part: str | None = literal(first.text)
        elif texts == {" "}:
            part = " "
        elif all(template.whole[at] for template in group):
            part = r"\d+"
        else:
            part = together(template.pieces[at] for template in group)
        if part is None:
            return None
        parts.append(part)
    return f"^{''.join(parts)}$"


def _tells(found: Sequence[Piece], at: int) -> bool:
    """Whether another number in this place would tell of trouble: `exit code 1`, `7 errors`, HTTP status 500."""
    before = "".join(piece.text for piece in found[:at])
    after = "".join(piece.text for piece in found[at + 1 :])
    return bool(guard.alarm(f"{before}7{after}")) or _HTTP.search(before) is not None
