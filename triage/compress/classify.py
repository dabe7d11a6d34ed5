"""What kind of line this is: hot, routine by a rule, alarm, or plain. Exact for every line, at the price of a skeleton.

Two lines may share a skeleton and differ in what decides (`exit code 0`, `exit code 1`; `GET / 200`, `GET / 500`;
`added`, `dead`). So the skeleton only tells what to look for: which signatures, and whether a mark of trouble, are
possible at all. All lines of a skeleton in a block are then proved to be of one kind by a pass or two of RE2's
automaton over them joined together; where that fails, each is looked at.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from triage.compress import clean, guard
from triage.compress.lineset import LineSet
from triage.compress.linewise import AFTER_PREFIX, RULE_END, Confined
from triage.compress.tally import ALARM, HOT, PLAIN, Kind, Tally
from triage.domain import FilterRule
from triage.regex import erase, erased_words, skeleton, words

_KNOWN, _KNOWN_KEY = 20_000, 512  # skeletons remembered from file to file, and the longest of them
_RETEST = 8  # a plain skeleton is tried against the rules again at 8, 64, 512 ... lines
_BLANK_END = r"[\t ]*$"  # what reads the kept lines strips blanks at their ends


def _needs(erased: str, real: Sequence[str]) -> frozenset[str] | None:
    """The words of an erased pattern; those of the patterns it comes from are already known."""
    found = [erased_words(pattern) for pattern in real] or [words(erased)]
    return None if None in found else frozenset().union(*(known for known in found if known))


@dataclass(slots=True)
class Shape:
    """What is known of all lines of one skeleton. main: the kind that most of them are."""

    clean: bool
    always_hot: bool
    watch: Confined | None  # the signatures that may match some of these lines
    guarded: bool  # some of these lines may carry a mark of trouble
    labels: int
    main: Kind = PLAIN
    retest_at: int = _RETEST
    seen: int = 0
    tallies: dict[Kind, Tally] = field(default_factory=dict)  # of the run being scanned


class Classifier:
    """The rules and signatures of a scan. hot: erased patterns; signatures: the real ones, or empty."""

    def __init__(self, rules: Sequence[FilterRule], hot: Sequence[str], signatures: Sequence[str] = ()) -> None:
        self.rules = tuple(rules)
        self._rule_set = LineSet([rule.pattern for rule in rules], AFTER_PREFIX, RULE_END)
        real: dict[str, list[str]] = {pattern: [] for pattern in hot}
        for pattern in signatures:
            real.setdefault(erase(pattern), []).append(pattern)
        self._real = list(real.values())
        self._hot = LineSet(list(real), end=_BLANK_END, needs=lambda erased: _needs(erased, real[erased]))
        self._marks = Confined(guard.erased(), end=_BLANK_END)
        self._known: dict[bytes, Shape] = {}
        self._watch = functools.lru_cache(256)(lambda patterns: Confined(patterns, end=_BLANK_END))

    def forgetful(self) -> Classifier:
        """The same rules, compiled once for both, with nothing remembered of earlier files."""
        other = copy.copy(self)
        other._known = {}
        return other

    def shapes(self, news: Sequence[tuple[bytes, bytes]]) -> list[Shape]:
        """Of each (line, skeleton) the shape; the skeleton is first seen with this line."""
        texts = [clean.text(raw) for raw, _ in news]
        known = [self._known.get(key) for _, key in news]
        fresh = [at for at, shape in enumerate(known) if shape is None]
        made = dict(zip(fresh, self._fresh([texts[at] for at in fresh], [news[at][1] for at in fresh]), strict=True))
        # The files of many ranks say the same: what was plain there may be routine here, all else is proved anew.
        found = [made[at] if shape is None else replace(shape, tallies={}) for at, shape in enumerate(known)]
        open_ = [at for at, shape in enumerate(found) if at in made or shape.main is PLAIN]
        for at, kind in zip(open_, self._kinds([found[at] for at in open_], [texts[at] for at in open_]), strict=True):
            found[at].main = kind
        for at in fresh:
            if len(self._known) < _KNOWN and len(news[at][1]) < _KNOWN_KEY:
                self._known[news[at][1]] = replace(found[at], tallies={})
        return found

    def _fresh(self, texts: Sequence[str], keys: Sequence[bytes]) -> Iterator[Shape]:
        """What the skeletons tell; the kinds are still to be found."""
        bare = [skeleton(text.encode()).decode() for text in texts]
        guarded = set(self._marks.which(bare)) if bare else ()
        for at, hits in enumerate(self._hot.match(bare)):
            real = [self._real[index] for index in hits]
            always_hot = not all(real)
            wanted = tuple(dict.fromkeys(pattern for patterns in real for pattern in patterns))
            watch = self._watch(wanted) if wanted and not always_hot else None
            labels = clean.label_count(texts[at].encode())
            yield Shape(clean.is_clean(keys[at]), always_hot, watch, at in guarded, labels)

    def shape(self, raw: bytes, key: bytes) -> Shape:
        """The skeleton `key`, first seen with this line."""
        return self.shapes([(raw, key)])[0]

    def kind(self, shape: Shape, raw: bytes) -> Kind:
        """What this line of the shape is."""
        return self._kinds([shape], [clean.text(raw)])[0]

    def _kinds(self, shapes: Sequence[Shape], texts: Sequence[str]) -> list[Kind]:
        """What each line is; shapes: of each."""
        kinds = [HOT] * len(texts)
        grades: dict[int, guard.Grade] = {}  # of the lines that a rule may take
        for at, (shape, text) in enumerate(zip(shapes, texts, strict=True)):
            if shape.always_hot or (shape.watch is not None and shape.watch.found(text)):
                continue
            grade = guard.alarm(text) if shape.guarded else ""
            if grade == "error":
                kinds[at] = ALARM
            else:
                grades[at] = grade
        for (at, grade), hits in zip(grades.items(), self._rule_set.match([texts[at] for at in grades]), strict=True):
            taken = next((index for index in hits if not grade or self.rules[index].drops_warnings), None)
            kinds[at] = Kind("routine", taken) if taken is not None else ALARM if grade else PLAIN
        return kinds

    def split(self, shape: Shape, lines: Sequence[bytes]) -> Iterable[tuple[Kind, list[int] | None]]:
        """The kinds of these lines of the shape, each with the places of its lines, ascending; None: all of them."""
        shape.seen += len(lines)
        if shape.main is PLAIN and shape.seen >= shape.retest_at:
            shape.retest_at = shape.seen * _RETEST
            shape.main = self.kind(shape, lines[-1])
        if self._uniform(shape, lines):
            return ((shape.main, None),)
        parts: dict[Kind, list[int]] = {}
        for at, kind in enumerate(self._kinds([shape] * len(lines), [clean.text(line) for line in lines])):
            parts.setdefault(kind, []).append(at)
        shape.main = max(parts, key=lambda kind: len(parts[kind]))
        return tuple(parts.items())

    def _uniform(self, shape: Shape, lines: Sequence[bytes]) -> bool:
        """Whether all these lines are surely of the main kind."""
        kind = shape.main
        if shape.always_hot or (kind is PLAIN and shape.watch is None and not shape.guarded):
            return True
        joined = b"\n".join(lines) + b"\n"
        if not shape.clean:
            joined = clean.text(joined).encode()
        if kind is HOT:
            return shape.watch is not None and shape.watch.takes_all(joined)
        if shape.watch is not None and shape.watch.found(joined):
            return False
        if kind is ALARM:
            return guard.all_alarm(joined)
        if kind is PLAIN:
            return not guard.any_alarm(joined)
        errors_only = self.rules[kind.rule].drops_warnings
        return self._rule_set.one(kind.rule).takes_all(joined) and not (
            shape.guarded and guard.any_alarm(joined, errors_only)
        )
