"""Which of some lines a rule takes, as the scan would: a line at a time, behind labels, time stamps and levels."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from triage import literals
from triage.compress.linewise import AFTER_PREFIX, RULE_END, Confined
from triage.domain import FilterRule
from triage.regex import words


class Lines:
    """Lines that many rules are tried on. What UTF-8 cannot hold becomes a question mark, a line end a blank."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = tuple(map(sound, lines))
        self._folded = tuple(map(literals.fold, self.texts))
        self._joined = "\n".join(self._folded)

    def taken_by(self, rule: Taker) -> list[int]:
        """The places of the lines that the rule takes, ascending."""
        if rule.words is None:
            return rule.matcher.which(self.texts)
        near = [word for word in rule.words if word in self._joined]
        if not near:
            return []
        if len(near) == 1:
            places = [at for at, line in enumerate(self._folded) if near[0] in line]
        else:
            places = [at for at, line in enumerate(self._folded) if any(word in line for word in near)]
        return [places[hit] for hit in rule.matcher.which([self.texts[at] for at in places])]


class Taker:
    """A rule's pattern, compiled when it is first needed. Errors: KnowledgeError, from `matcher`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.words = words(pattern)

    @functools.cached_property
    def matcher(self) -> Confined:
        return Confined([self.pattern], AFTER_PREFIX, RULE_END)


@functools.lru_cache(1024)
def taker(pattern: str) -> Taker:
    return Taker(pattern)


class LineTakers:
    """Which of some lines each rule takes; a rule is asked once."""

    def __init__(self, lines: Lines | Sequence[str]) -> None:
        self._lines = lines if isinstance(lines, Lines) else Lines(lines)
        self._known: dict[str, frozenset[int]] = {}

    def of(self, rules: Sequence[FilterRule]) -> list[frozenset[int]]:
        """For each rule the places of the lines it takes."""
        for rule in rules:
            if rule.pattern not in self._known:
                self._known[rule.pattern] = frozenset(self._lines.taken_by(taker(rule.pattern)))
        return [self._known[rule.pattern] for rule in rules]


def sound(text: str) -> str:
    """One line, of text that UTF-8 can hold."""
    text = text.replace("\n", " ")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
