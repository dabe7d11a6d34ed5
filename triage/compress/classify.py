"""What kind of line this is: hot, routine by a rule, alarm, or plain. Exact for every line, at the price of a skeleton.

Two lines may share a skeleton and differ in what decides (`exit code 0`, `exit code 1`; `GET / 200`, `GET / 500`;
`added`, `dead`). So the skeleton only tells what to look for: which signatures, and whether a mark of trouble, are
possible at all. All lines of a skeleton in a block are then proved to be of one kind by a pass or two of RE2's
automaton over them joined together; where that fails, each is looked at.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from triage.compress import clean, guard
from triage.compress.linewise import AFTER_PREFIX, RULE_END, Confined, confine
from triage.compress.tally import ALARM, HOT, PLAIN, Kind, Tally
from triage.domain import FilterRule
from triage.regex import PatternSet, erase, erased_words, skeleton, words

_KNOWN, _KNOWN_KEY = 20_000, 512  # skeletons remembered from file to file, and the longest of them
_RETEST = 8  # a plain skeleton is tried against the rules again at 8, 64, 512 ... lines
_BLANK_END = r"[\t ]*$"  # what reads the kept lines strips blanks at their ends


def _as_rule(pattern: str) -> str:
    return confine(pattern, AFTER_PREFIX, RULE_END)


def _to_blank_end(pattern: str) -> str:
    return confine(pattern, end=_BLANK_END)


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
        self._rules = [_Lazy(rule.pattern) for rule in rules]
        self._rule_set = PatternSet([rule.pattern for rule in rules], "filter rules", _as_rule)
        real: dict[str, list[str]] = {pattern: [] for pattern in hot}
        for pattern in signatures:
            real.setdefault(erase(pattern), []).append(pattern)
        self._real = list(real.values())
        self._hot = PatternSet(list(real), "signatures", _to_blank_end, lambda erased: _needs(erased, real[erased]))
        self._marks = Confined(guard.erased(), end=_BLANK_END)
        self._known: dict[bytes, Shape] = {}
        self._watch = functools.lru_cache(256)(lambda patterns: Confined(patterns, end=_BLANK_END))

    def forgetful(self) -> Classifier:
        """The same rules, compiled once for both, with nothing remembered of earlier files."""
        other = copy.copy(self)
        other._known = {}
        return other

    def shape(self, raw: bytes, key: bytes) -> Shape:
        """The skeleton `key`, first seen with this line."""
        text = clean.text(raw)
        known = self._known.get(key)
        if known is not None:
            return self._again(known, text)
        bare = skeleton(text.encode()).decode()
        hits = [self._real[index] for index in self._hot.match(bare)]
        always_hot = not all(hits)
        wanted = tuple(dict.fromkeys(pattern for real in hits for pattern in real))
        found = Shape(
            clean=clean.is_clean(key),
            always_hot=always_hot,
            watch=self._watch(wanted) if wanted and not always_hot else None,
            guarded=self._marks.found(bare),
            labels=clean.label_count(text.encode()),
        )
        found.main = self._kind(found, text)
        if len(self._known) < _KNOWN and len(key) < _KNOWN_KEY:
            self._known[key] = replace(found, tallies={})
        return found

    def _again(self, known: Shape, text: str) -> Shape:
        """A skeleton that another file had too: the files of many ranks say the same."""
        main = self._kind(known, text) if known.main is PLAIN else known.main
        return Shape(known.clean, known.always_hot, known.watch, known.guarded, known.labels, main)

    def kind(self, shape: Shape, raw: bytes) -> Kind:
        """What this line of the shape is."""
        return HOT if shape.always_hot else self._kind(shape, clean.text(raw))

    def _kind(self, shape: Shape, text: str) -> Kind:
        if shape.always_hot or (shape.watch is not None and shape.watch.found(text)):
            return HOT
        grade = guard.alarm(text) if shape.guarded else ""
        if grade == "error":
            return ALARM
        for index in self._rule_set.match(text):
            if grade == "" or self.rules[index].drops_warnings:
                return Kind("routine", index)
        return ALARM if grade else PLAIN

    def split(self, shape: Shape, lines: Sequence[bytes]) -> Iterable[tuple[Kind, list[int] | None]]:
        """The kinds of these lines of the shape, each with the places of its lines, ascending; None: all of them."""
        shape.seen += len(lines)
        if shape.main is PLAIN and shape.seen >= shape.retest_at:
            shape.retest_at = shape.seen * _RETEST
            shape.main = self.kind(shape, lines[-1])
        if self._uniform(shape, lines):
            return ((shape.main, None),)
        parts: dict[Kind, list[int]] = {}
        for at, line in enumerate(lines):
            parts.setdefault(self.kind(shape, line), []).append(at)
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
        return self._rules[kind.rule].takes_all(joined) and not (shape.guarded and guard.any_alarm(joined, errors_only))


class _Lazy:
    """A rule compiled when it is first needed: most of the rules fit no line of a given log."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @functools.cached_property
    def _confined(self) -> Confined:
        return Confined([self._pattern], AFTER_PREFIX, RULE_END)

    def takes_all(self, text: bytes) -> bool:
        return self._confined.takes_all(text)
