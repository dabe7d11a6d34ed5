"""Which patterns a text may match, by the words that they need: one pass of Aho-Corasick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ahocorasick_rs

from triage.literals import Required

_FEW = 400  # words, for which the fastest automaton is still small


class WordIndex:
    """needs: of each pattern the folded words one of which is in every text that it matches; None: it needs none."""

    def __init__(self, needs: Sequence[Required | None]) -> None:
        owners: dict[str, list[int]] = {}
        for index, needed in enumerate(needs):
            for word in needed or ():
                owners.setdefault(word, []).append(index)
        self._always = [index for index, needed in enumerate(needs) if needed is None]
        self._owners = [tuple(found) for found in owners.values()]
        kind = ahocorasick_rs.Implementation.DFA if len(owners) <= _FEW else None
        self._words = ahocorasick_rs.AhoCorasick(list(owners), implementation=kind) if owners else None

    def __bool__(self) -> bool:
        """Does any pattern need a word?"""
        return self._words is not None

    def without(self, together: int) -> list[list[int]]:
        """The patterns that need no word, so many in each group."""
        return [self._always[at : at + together] for at in range(0, len(self._always), together)]

    def owners(self, folded: str) -> set[int]:
        """The patterns of which a word is in the text."""
        found = self._matches(folded)
        return {place for word in {word for word, _, _ in found} for place in self._owners[word]} if found else set()

    def hits(self, folded: str) -> Iterator[tuple[tuple[int, ...], int]]:
        """The patterns of each word that the text holds, and where the word ends, in the order of the text."""
        for word, _, stop in self._matches(folded):
            yield self._owners[word], stop

    def _matches(self, folded: str) -> Sequence[tuple[int, int, int]]:
        found: Sequence[tuple[int, int, int]] = ()
        if self._words is not None:
            try:
                found = self._words.find_matches_as_indexes(folded, overlapping=True)
            except UnicodeEncodeError:  # the name of a file may hold bytes that are no text
                plain = folded.encode("utf-8", "replace").decode()
                found = self._words.find_matches_as_indexes(plain, overlapping=True)
        return found
