"""What kind of line this is: hot, routine by a rule, alarm, or plain. Exact for every line, at the price of a wording.

Two lines may share a skeleton and differ in what decides (`exit code 0`, `exit code 1`; `GET / 200`, `GET / 500`;
`added`, `dead`). So a skeleton only tells what to look for: which signatures, which marks of trouble and which rules
are possible at all. Patterns that tell no digit from another are then tried once an outline; the few others are doubts,
looked for in one pass of RE2's automaton over all lines of the outline joined together. Where outlines do not repeat, a
pass or two prove that all lines of a skeleton in a block are of one kind; where that fails, each is looked at.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from triage.compress import clean, guard
from triage.compress.lineset import LineSet
from triage.compress.linewise import AFTER_PREFIX, RULE_END, Confined
from triage.compress.outline import blind, blur, blurred_words, has_escape
from triage.compress.tally import ALARM, HOT, PLAIN, Kind, Target
from triage.domain import FilterRule
from triage.regex import erase, erased_words, skeleton, words

_COMMON = 2000  # lines of a skeleton whose outlines do not repeat
_LONG_KEY = 2048  # a longer skeleton is remembered by its hash
_BLANK_END = r"[\t ]*$"  # what reads the kept lines strips blanks at their ends


def _needs(erased: str, real: Sequence[str]) -> frozenset[str] | None:
    """The words of an erased pattern; those of the patterns it comes from are already known."""
    found = [erased_words(pattern) for pattern in real] or [words(erased)]
    return None if None in found else frozenset().union(*(known for known in found if known))


class Settled(NamedTuple):
    """Of all lines of an outline: they are of this kind, but where a doubt matches or what they must match does not."""

    kind: Kind
    doubts: tuple[Confined, ...]
    must: Confined | None


class _Draft(NamedTuple):
    grade: guard.Grade
    doubts: list[Confined]


@dataclass(slots=True, eq=False)
class Shape:
    """What is known of all lines of one skeleton. main: the kind that most of them are."""

    name: bytes  # of the skeleton
    clean: bool
    always_hot: bool
    signatures: tuple[str, ...]  # that may match some of these lines
    guarded: bool  # some of these lines may carry a mark of trouble
    labels: int
    main: Kind = PLAIN
    rules: tuple[int, ...] | None = None  # that may take some of these lines; found out when the skeleton is common
    seen: int = 0  # lines looked at
    targets: dict[Kind, Target] = field(default_factory=dict)

    @property
    def common(self) -> bool:
        """Whether it is worth finding out which rules are possible; hardly ever in a short log."""
        return self.seen >= _COMMON

    def target(self, kind: Kind) -> Target:
        found = self.targets.get(kind)
        if found is None:
            labels = 0 if kind.rule >= 0 else self.labels
            found = self.targets[kind] = Target(self.name, kind, labels, self.clean)
        return found


class Classifier:
    """The rules and signatures of a scan. hot: erased patterns; signatures: the real ones, or empty."""

    def __init__(self, rules: Sequence[FilterRule], hot: Sequence[str], signatures: Sequence[str] = ()) -> None:
        self.rules = tuple(rules)
        patterns = [rule.pattern for rule in rules]
        self._blind = [blind(pattern) for pattern in patterns]
        self._rule_set = LineSet.changed(blur, blurred_words, patterns, AFTER_PREFIX, RULE_END)
        real: dict[str, list[str]] = {pattern: [] for pattern in hot}
        for pattern in signatures:
            real.setdefault(erase(pattern), []).append(pattern)
        self._real = list(real.values())
        self._hot = LineSet(list(real), end=_BLANK_END, needs=lambda erased: _needs(erased, real[erased]))
        self._marks = Confined(guard.erased(), end=guard.END)
        self._watch = functools.lru_cache(256)(lambda patterns: Confined(patterns, end=_BLANK_END))
        self._one: dict[int, Confined] = {}

    def _rule(self, index: int) -> Confined:
        if self._blind[index]:
            return self._rule_set.one(index)
        if index not in self._one:
            self._one[index] = Confined([self.rules[index].pattern], AFTER_PREFIX, RULE_END)
        return self._one[index]

    @functools.cached_property
    def _erased_rules(self) -> LineSet:
        """What matches the skeletons of the lines that the rules take."""
        patterns = [rule.pattern for rule in self.rules]
        return LineSet.changed(erase, erased_words, patterns, erase(AFTER_PREFIX), erase(RULE_END))

    # ------------------------------------------------------------------------------------------ skeletons
    def shapes(self, news: Sequence[tuple[bytes, bytes]]) -> list[Shape]:
        """Of each (line, skeleton) the shape; the skeleton is first seen with this line."""
        texts = [clean.text(raw) for raw, _ in news]
        found = list(self._fresh(texts, [key for _, key in news]))
        for shape, kind in zip(found, self._kinds(found, texts), strict=True):
            shape.main = kind
        return found

    def _fresh(self, texts: Sequence[str], keys: Sequence[bytes]) -> Iterator[Shape]:
        """What the skeletons tell; the kinds are still to be found."""
        bare = [skeleton(text.encode()).decode() for text in texts]
        guarded = set(self._marks.which(bare)) if bare else ()
        for at, hits in enumerate(self._hot.match(bare)):
            real = [self._real[index] for index in hits]
            always_hot = not all(real)
            wanted = tuple(dict.fromkeys(pattern for patterns in real for pattern in patterns))
            labels = clean.label_count(texts[at].encode())
            yield Shape(
                name_of(keys[at]),
                clean.is_clean(keys[at]),
                always_hot,
                () if always_hot else wanted,
                at in guarded,
                labels,
            )

    def shape(self, raw: bytes, key: bytes) -> Shape:
        """The skeleton `key`, first seen with this line."""
        return self.shapes([(raw, key)])[0]

    def _candidates(self, shape: Shape, line: bytes) -> tuple[int, ...]:
        """The rules that may take lines of the shape, of which this is one."""
        if shape.rules is None:
            bare = skeleton(clean.text(line).encode()).decode()
            shape.rules = tuple(self._erased_rules.match([bare])[0])
        return shape.rules

    # ------------------------------------------------------------------------------------------ single lines
    def kind(self, shape: Shape, raw: bytes) -> Kind:
        """What this line of the shape is."""
        return self._kinds([shape], [clean.text(raw)])[0]

    def kinds(self, shapes: Sequence[Shape], lines: Sequence[bytes]) -> list[Kind]:
        """What each line is; shapes: of each."""
        known = dict.fromkeys(zip(lines, shapes, strict=True), PLAIN)
        found = self._kinds([shape for _, shape in known], [clean.text(line) for line, _ in known])
        known.update(zip(known, found, strict=True))
        return (
            list(known.values())
            if len(known) == len(lines)
            else [known[key] for key in zip(lines, shapes, strict=True)]
        )

    def _kinds(self, shapes: Sequence[Shape], texts: Sequence[str]) -> list[Kind]:
        """What each line is; shapes: of each."""
        kinds = [HOT] * len(texts)
        grades: dict[int, guard.Grade] = {}  # of the lines that a rule may take
        for at, (shape, text) in enumerate(zip(shapes, texts, strict=True)):
            if shape.always_hot or (shape.signatures and self._watch(shape.signatures).found(text)):
                continue
            grade = guard.alarm(text) if shape.guarded else ""
            if grade == "error":
                kinds[at] = ALARM
            else:
                grades[at] = grade
        for (at, grade), hits in zip(grades.items(), self._rule_set.match([texts[at] for at in grades]), strict=True):
            kinds[at] = self._taken((i for i in hits if self._blind[i] or self._rule(i).found(texts[at])), grade)
        return kinds

    def _taken(self, hits: Iterable[int], grade: guard.Grade) -> Kind:
        """The kind of a line that these rules match, ascending; it is neither hot nor an error."""
        taken = next((index for index in hits if not grade or self.rules[index].drops_warnings), None)
        return Kind("routine", taken) if taken is not None else ALARM if grade else PLAIN

    # ------------------------------------------------------------------------------------------ many lines
    def settle(self, items: Sequence[tuple[Shape, bytes, bytes]]) -> list[Settled | None]:
        """Of each shape, outline and line of it, what all lines of the outline are; None: only the lines can tell."""
        texts = [clean.text(of) for _, of, _ in items]
        found: list[Settled | None] = []
        drafts: dict[int, _Draft] = {}
        for at, (shape, of, _) in enumerate(items):
            draft = self._draft(shape, of, texts[at])
            if isinstance(draft, _Draft):
                drafts[at] = draft
            found.append(None if isinstance(draft, _Draft) else draft)
        hits = self._rule_set.match([texts[at] for at in drafts])
        for (at, draft), some in zip(drafts.items(), hits, strict=True):
            found[at] = self._by_rule(draft, clean.text(items[at][2]), some)
        return found

    def _draft(self, shape: Shape, of: bytes, text: str) -> Settled | _Draft | None:
        """What the outline is, whose text this is, as far as no rule decides it."""
        if shape.always_hot:
            return Settled(HOT, (), None)
        if has_escape(of):
            return None
        certain, unsure = _halves(shape.signatures, text)
        if certain and self._watch(certain).found(text):
            return Settled(HOT, (), None)
        doubts = [self._watch(unsure)] if unsure else []
        if not shape.guarded:
            return _Draft("", doubts)
        if guard.excusable(text):
            return None
        certain, unsure = _halves(guard.MARKS, text)
        grade = guard.gravest(certain, text)
        if grade == "error":
            return Settled(ALARM, tuple(doubts), None)
        return _Draft(grade, [*doubts, guard.any_of(unsure)] if unsure else doubts)

    def _by_rule(self, draft: _Draft, line: str, hits: Sequence[int]) -> Settled | None:
        """hits: the rules that match the outline, blurred; line: one of its lines."""
        grade, doubts = draft
        if any(doubt.found(line) for doubt in doubts):
            return None
        kind = self._taken((index for index in hits if self._blind[index] or self._rule(index).found(line)), grade)
        sure = self._taken((index for index in hits if self._blind[index]), grade)
        doubts += self._earlier((i for i in hits if not self._blind[i] and i != kind.rule), kind, grade)
        return Settled(kind, tuple(doubts), None if kind == sure else self._rule(kind.rule))

    def _earlier(self, rules: Iterable[int], kind: Kind, grade: guard.Grade) -> list[Confined]:
        """Those of the rules that would take a line of this kind and grade before the rule that does."""
        return [
            self._rule(index)
            for index in rules
            if (index < kind.rule or kind.rule < 0) and (not grade or self.rules[index].drops_warnings)
        ]

    def split(self, shape: Shape, lines: Sequence[bytes]) -> Iterable[tuple[Kind, list[int] | None]]:
        """The kinds of these lines of the shape, each with the places of its lines, ascending; None: all of them."""
        if self._uniform(shape, lines):
            return ((shape.main, None),)
        parts: dict[Kind, list[int]] = {}
        for at, kind in enumerate(self.kinds([shape] * len(lines), lines)):
            parts.setdefault(kind, []).append(at)
        shape.main = max(parts, key=lambda kind: len(parts[kind]))
        return tuple(parts.items())

    def _uniform(self, shape: Shape, lines: Sequence[bytes]) -> bool:
        """Whether all these lines are surely of the main kind."""
        kind = shape.main
        if shape.always_hot:
            return True
        joined = together(shape, lines)
        watch = self._watch(shape.signatures) if shape.signatures else None
        if kind is HOT:
            return watch is not None and watch.takes_all(joined)
        if watch is not None and watch.found(joined):
            return False
        errors_only = kind.rule >= 0 and self.rules[kind.rule].drops_warnings
        if kind is ALARM:
            if not guard.all_alarm(joined):
                return False
        elif shape.guarded and guard.any_alarm(joined, errors_only):
            return False
        if kind.rule >= 0 and not self._rule(kind.rule).takes_all(joined):
            return False
        grade: guard.Grade = "mention" if kind is ALARM else ""
        earlier = self._earlier(self._candidates(shape, lines[0]), kind, grade)
        return not any(rule.found(joined) for rule in earlier)


def name_of(key: bytes) -> bytes:
    """What the templates of a skeleton are remembered by."""
    return key if len(key) <= _LONG_KEY else hashlib.blake2b(key, digest_size=24).digest()


def _halves(patterns: Sequence[str], outline: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that tell no digit from another; and of the others those that may match a line of the outline."""
    sure = tuple(filter(blind, patterns))
    return sure, tuple(pattern for pattern in patterns if not blind(pattern) and blurred(pattern).found(outline))


@functools.lru_cache(2048)
def blurred(pattern: str) -> Confined:
    return Confined([blur(pattern)], end=_BLANK_END)


def together(shape: Shape, lines: Sequence[bytes]) -> bytes:
    """The lines of a shape as one text for matching, each ended by a newline."""
    joined = b"\n".join(lines) + b"\n"
    return joined if shape.clean else clean.text(joined).encode()
