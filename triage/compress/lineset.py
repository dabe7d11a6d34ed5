"""Which of many patterns match which of many lines, by the batch: the cost is a call a pattern, not a call a line.

The words that patterns need are looked for first, in one pass of Aho-Corasick over all the lines. A pattern then runs
once, over the lines that have one of its words joined together. Patterns that need no word run several at a time,
first over a few lines together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import re2

from triage import literals
from triage.compress.linewise import Confined, confine
from triage.regex import words
from triage.wordindex import WordIndex

_TOGETHER = 16  # patterns of one automaton; the states of one for many multiply
_PIECE = 16  # lines tried together before each is tried
_MEMORY = 32 << 20  # of such an automaton

Needs = Callable[[str], literals.Required | None]


class LineSet:
    """Patterns, each compiled when it is first tried. start, end: what stands for ^ and $ (linewise.confine).

    needs: the words one of which is in every line that the pattern matches; None when there are none.
    """

    def __init__(self, patterns: Sequence[str], start: str = "^", end: str = "$", needs: Needs = words) -> None:
        self._patterns = tuple(patterns)
        self._start, self._end = start, end
        self._one: list[Confined | None] = [None] * len(self._patterns)
        self._words = WordIndex([needs(pattern) for pattern in self._patterns])
        self._always = self._words.without(_TOGETHER)
        self._groups: list[Any] = [None] * len(self._always)

    @classmethod
    def changed(
        cls, change: Callable[[str], str], needs: Needs, patterns: Sequence[str], start: str, end: str
    ) -> LineSet:
        """The patterns, each changed; needs: the words of a changed one, found out from the one that it was."""
        real = {change(pattern): pattern for pattern in patterns}
        return cls([change(pattern) for pattern in patterns], start, end, lambda changed: needs(real[changed]))

    def one(self, index: int) -> Confined:
        """The pattern alone."""
        found = self._one[index]
        if found is None:
            found = self._one[index] = Confined([self._patterns[index]], self._start, self._end)
        return found

    def match(self, lines: Sequence[str]) -> list[list[int]]:
        """For each line the indexes of the patterns that match it, ascending. No line holds a newline."""
        found: list[list[int]] = [[] for _ in lines]
        for index, places in self._candidates(lines).items():
            for at in self.one(index).which([lines[place] for place in places]):
                found[places[at]].append(index)
        for group, members in self._grouped():
            for at in self._may_match(group, lines):
                found[at] += [members[hit] for hit in group.Match(lines[at].encode()) or ()]
        for hits in found:
            hits.sort()
        return found

    def _candidates(self, lines: Sequence[str]) -> dict[int, list[int]]:
        """The patterns that may match, each with the places of the lines that have one of its words, ascending."""
        found: dict[int, list[int]] = {}
        if not self._words:
            return found
        folded = [literals.fold(line) for line in lines]
        at, end = -1, -1  # the line that the hits have reached, and where it ends
        for owners, stop in self._words.hits("\n".join(folded)):
            while stop > end:
                at += 1
                end += len(folded[at]) + 1
            for index in owners:
                places = found.setdefault(index, [])
                if not places or places[-1] != at:
                    places.append(at)
        return found

    @staticmethod
    def _may_match(group: Any, lines: Sequence[str]) -> Iterator[int]:
        """The places of lines among which some pattern of the group matches."""
        for at in range(0, len(lines), _PIECE):
            piece = range(at, min(at + _PIECE, len(lines)))
            if len(lines) == 1 or group.Match("\n".join(lines[at : at + _PIECE]).encode()):
                yield from piece

    def _grouped(self) -> Iterator[tuple[Any, list[int]]]:
        for at, members in enumerate(self._always):
            if self._groups[at] is None:
                self._groups[at] = self._set_of(members)
            yield self._groups[at], members

    def _set_of(self, members: Sequence[int]) -> Any:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        group = re2.Set.SearchSet(options)
        for index in members:
            group.Add("(?m)" + confine(self._patterns[index], self._start, self._end))
        group.Compile()
        return group
