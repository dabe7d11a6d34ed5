"""Words of logs and incident reports, and how much of a query's rare words a text holds (BM25). Pure."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

_K1, _B = 1.2, 0.5
_LEAST, _ENOUGH = 3.0, 8.0  # a full match is worth this many words of the rarest kind: a query of one common word
# is none, and a long one need not match whole
_WORTH_NAMING = 0.4  # of the rarity of the rarest word: `job` and `error` explain nothing

# What differs between two runs of the same failure, and so says nothing.
_NOISE = re.compile(
    r"\(PCI:[^)]*\)"  # a device in a kernel line; `Xid (PCI:0000:3b:00): 79` is `Xid 79`
    r"|\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\b\d{5,}\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w/.:])/[\w.@+/-]+")  # an absolute one; its end says which file, its begin whose
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBERED = re.compile(r"([A-Za-z]{2,})[ :=#\[(_]{1,4}(\d{1,4})\b")  # Xid 79, signal 9, exit code: 137
_COUNTERS = frozenset("pid rank line step iteration iter epoch node gpu worker port len size total".split())  # noqa: SIM905
_STOP = frozenset(
    """a an and any are as at be been but by can did do does for from had has have how if in into is it its no not of on
    one or our so than that the their then there these they this to was we were what when where which while who why
    will with would you your after before all also line file most more only other out over same some such""".split()  # noqa: SIM905
)


def words(text: str) -> Iterator[tuple[str, str]]:
    """Terms with the words they stand for.

    Identifiers whole and their parts (snake, camel), plain words without endings, word:number pairs; lower case.
    """
    text = _PATH.sub(lambda path: "/".join(path[0].split("/")[-3:]), _NOISE.sub(" ", text))
    for name, number in _NUMBERED.findall(text):
        if name.lower() not in _COUNTERS | _STOP:
            yield f"{name.lower()}:{int(number)}", f"{name} {number}"
    for word in _WORD.findall(text):
        yield from _terms(word)


@functools.lru_cache(1 << 14)
def _terms(word: str) -> tuple[tuple[str, str], ...]:
    """Of one word: reports and logs say few words, and those often."""
    parts = _PARTS.findall(word)
    whole = [(word.lower(), word)] if len(parts) > 1 and len(word) > 3 else []
    return (*whole, *((_stem(lower), part) for part in parts if _says(lower := part.lower())))


def _says(lower: str) -> bool:
    return len(lower) > 1 and not lower.isdigit() and lower not in _STOP


def _stem(word: str) -> str:
    """The commonest English endings off: crashes, crashed, crashing -> crash."""
    for ending, kept in (
        ("ies", "y"),
        ("sses", "ss"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("ing", ""),
        ("ed", ""),
        ("s", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            return word[: len(word) - len(ending)] + kept
    return word


class Lexicon:
    """Texts that can be asked how well each fits a query. Scores are 0..1 and order texts; they are no probability."""

    def __init__(
        self, texts: Mapping[str, Sequence[str]], beside: Lexicon | None = None, *, own_words: bool = False
    ) -> None:
        """texts: id to its parts; a part given twice weighs twice.

        beside: tells how rare a word is, where it knows it, and is to be compared with: texts that were chosen because
        they are alike would make the words that they share common. own_words: so would those that `beside` does not know; a
        person who asks for such a word means it, in a diagnosis it is mostly the name of a host or folder.
        """
        counts = {name: Counter(term for part in parts for term, _ in words(part)) for name, parts in texts.items()}
        found = Counter(term for terms in counts.values() for term in terms)
        self._idf = {term: _rarity(n, len(counts)) for term, n in found.items()}
        self._rarest, self._total = _rarity(0, len(counts)), len(counts)
        self._mean = sum(terms.total() for terms in counts.values()) / max(1, len(counts)) or 1.0
        if beside is not None:
            most, total = beside._rarest, len(counts) + (beside._total if own_words else 0)
            self._idf = {t: beside._idf.get(t, min(most, _rarity(n, total))) for t, n in found.items()}
            self._rarest, self._mean = most, beside._mean
        self._postings: dict[str, dict[str, float]] = {term: {} for term in found}
        for name, terms in counts.items():
            norm = _K1 * (1 - _B + _B * terms.total() / self._mean)
            for term, n in terms.items():
                self._postings[term][name] = self._idf[term] * n / (n + norm)

    def scores(self, query: str) -> dict[str, float]:
        """Every text that shares a term with the query."""
        terms = {term for term, _ in words(query)}
        asked = sum(self._idf.get(term, self._rarest) for term in terms)
        full = min(max(asked, _LEAST * self._rarest), _ENOUGH * self._rarest)
        found: defaultdict[str, float] = defaultdict(float)
        for term in terms:
            for name, weight in self._postings.get(term, {}).items():
                found[name] += weight
        return {name: min(1.0, score / full) for name, score in found.items()}

    def shared(self, name: str, query: str, at_most: int = 3) -> tuple[str, ...]:
        """The rare words that the query and the text share, as the query has them, rarest first."""
        least = _WORTH_NAMING * self._rarest
        common = {t: word for t, word in words(query) if name in self._postings.get(t, {}) and self._idf[t] >= least}
        rarest = sorted(common, key=lambda term: (-self._idf[term], term))
        return tuple(dict.fromkeys(common[term] for term in rarest))[:at_most]


def _rarity(texts_with: int, total: int) -> float:
    """Inverse document frequency, always above 0."""
    return math.log(1 + (total - texts_with + 0.5) / (texts_with + 0.5))
