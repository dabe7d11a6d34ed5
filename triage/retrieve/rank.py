"""Which past incidents are like this failure, and why: dense, lexical and structured likeness together. Pure.

Each likeness is a number in 0..1 of its own kind; 1 - (1-a)(1-b)(1-c)(1-d) joins them, so that any strong one suffices and
two weak ones help each other. The result orders incidents. It is no probability and is never shown as one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.domain import KnownIncident, Similar
from triage.retrieve.lexical import Lexicon

MIN_SCORE = 0.45  # for a diagnosis: the same failure type alone does not reach it
MIN_SCORE_ASKED = 0.15  # for a person who searches and judges for himself
_DENSE, _TITLE, _LEXICAL, _STRUCTURED = 0.15, 0.4, 0.75, 0.7
_COSINE_NOISE, _COSINE_SAME = 0.2, 0.8  # of this kind of model: unrelated texts, paraphrases
_TITLE_NOISE, _TITLE_SAME = 0.4, 1.0  # the same of titles: short, and of one trade
_NEAR_TYPE, _NO_CAUSE, _OTHER_TYPE = (
    0.8,
    0.7,
    0.5,
)  # factors where the failure types differ, within a category and across
# How much of a structured match each says alone.
_SAME_FINGERPRINT, _SAME_SIGNATURE, _SAME_ERROR = 0.85, 0.2, 0.3
_SAME_TYPE, _SAME_VAGUE_TYPE, _SAID_TYPE = 0.6, 0.3, 0.15
_OTHER_TYPE_SEEN, _OTHER_TYPE_OF_SYMPTOM = 0.3, 0.5
_NOT_THE_SAME = 0.3  # is left of what a same fingerprint lacks to 1: it goes before the like with a fix that worked
_SAME_CATEGORY, _SAME_CLASS = 0.08, 0.05
_SIMILAR_TEXT = 0.5  # dense likeness that is worth a word
_SHORTEST_ERROR = 10  # characters; shorter ones (`Killed`) are in too many logs to prove anything
_SAYS_NOTHING = frozenset({"", "unknown", "none"})
_STAMPS = re.compile(r"^(?:\s*(?:\[[^\]]{0,60}\]:?|[\d:.,TZ/+-]{8,}|rank ?\d+:))+\s*", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"0x[0-9a-f]+|\d{4,}")


@dataclass(frozen=True, slots=True)
class Query:
    """What is known of the failure at hand.

    text: its story in words; title: what it is, in a few words, "" where the text is no longer than that; error_strings: lines of its log that show the cause; consequences: lines that followed,
    looked through for exact error strings alone. fingerprint, signatures: of the cause; incident: its number in the
    database, if it has one already. other_types: that lines beside it show.
    """

    text: str
    failure_type: str = ""
    root_cause_class: str = ""
    components: tuple[str, ...] = ()
    error_strings: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    fingerprint: str = ""
    signatures: tuple[str, ...] = ()
    other_types: tuple[str, ...] = ()
    incident: int | None = None
    title: str = ""

    def full_text(self) -> str:
        return "\n".join((self.text, *self.error_strings))

    @property
    def in_words(self) -> bool:
        """Does a person ask, and no diagnosis?"""
        return not (self.failure_type or self.signatures or self.fingerprint)

    def log(self) -> str:
        """All text in the form that error strings are compared in."""
        return _normal("\n".join((self.text, *self.error_strings, *self.consequences)))


@dataclass(frozen=True, slots=True)
class Scored:
    """How like the query an incident is, 0..1, and why."""

    score: float
    incident: KnownIncident
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """By what a recorded incident is known again."""

    fingerprint: str = ""
    signatures: tuple[str, ...] = ()
    said_type: str = ""  # where it turned out to be of another


@dataclass(frozen=True, slots=True)
class _Likeness:
    score: float
    reasons: tuple[str, ...]


class Ranker:
    """Past incidents, prepared for ranking.

    categories: failure type to category, for types that are near; vague: types that are symptoms of others; marks: of
    recorded incidents, by id; beside: a ranker that these are to be compared with; own_words: as of Lexicon.
    """

    def __init__(
        self,
        incidents: Iterable[KnownIncident],
        categories: Mapping[str, str] | None = None,
        vague: Collection[str] = (),
        marks: Mapping[str, Mark] | None = None,
        beside: Ranker | None = None,
        *,
        own_words: bool = False,
    ) -> None:
        self._incidents = {incident.id: incident for incident in incidents}
        self._categories = categories or {}
        self._vague = frozenset(vague)
        self._marks = marks or {}
        texts = {name: _lexical_parts(incident) for name, incident in self._incidents.items()}
        self._lexicon: Lexicon = Lexicon(texts, beside._lexicon if beside else None, own_words=own_words)
        self._errors = {n: _error_forms(i.error_strings, n in self._marks) for n, i in self._incidents.items()}
        self._components = {n: frozenset(map(str.lower, i.components)) for n, i in self._incidents.items()}
        holders: dict[str, int] = {}
        for forms in self._errors.values():
            for form in forms:
                holders[form] = holders.get(form, 0) + 1
        self._holders: Mapping[str, int] = beside._holders if beside else holders
        self._total: int = beside._total if beside else len(self._incidents)

    def beside(
        self, incidents: Iterable[KnownIncident], marks: Mapping[str, Mark], *, own_words: bool = False
    ) -> Ranker:
        """A ranker of recorded incidents whose scores compare with those of this one. own_words: as of Lexicon."""
        return Ranker(incidents, self._categories, self._vague, marks, self, own_words=own_words)

    def rank(
        self,
        query: Query,
        cosines: Mapping[str, float],
        titles: Mapping[str, float],
        k: int = 5,
        min_score: float = MIN_SCORE,
    ) -> tuple[Similar, ...]:
        """The k best of at least min_score, best first. cosines, titles: of the incidents' texts, and of their titles, to the
        query's, -1..1."""
        return tuple(
            Similar(
                s.incident.id, s.incident.title, round(s.score, 3), s.why, s.incident.outcome, s.incident.remediation
            )
            for s in self.score(query, cosines, titles, min_score)[:k]
        )

    def score(
        self, query: Query, cosines: Mapping[str, float], titles: Mapping[str, float], min_score: float = MIN_SCORE
    ) -> list[Scored]:
        """All of at least min_score, best first."""
        words = self.lexical(query)
        log = query.log()
        ranked = []
        for name, incident in self._incidents.items():
            dense, lexical = near(cosines.get(name, 0.0)), words.get(name, 0.0)
            title = near(titles.get(name, 0.0), _TITLE_NOISE, _TITLE_SAME)
            match = self._structured(query, log, incident)
            apart = (1 - _DENSE * dense) * (1 - _TITLE * title)
            score = 1 - apart * (1 - _LEXICAL * lexical) * (1 - _STRUCTURED * match.score)
            score *= self._agreement(query, incident)
            if self._same_failure(query, incident):
                score = 1 - (1 - score) * _NOT_THE_SAME
            if score >= min_score:
                ranked.append(Scored(score, incident, self._why(query, incident, match, max(dense, title), lexical)))
        return sorted(ranked, key=lambda scored: (-scored.score, scored.incident.id))

    def lexical(self, query: Query) -> dict[str, float]:
        """Lexical likeness alone, by incident."""
        return self._lexicon.scores(query.full_text())

    def structured(self, query: Query) -> dict[str, float]:
        """Structured likeness alone, by incident."""
        log = query.log()
        return {name: self._structured(query, log, incident).score for name, incident in self._incidents.items()}

    def _structured(self, query: Query, log: str, incident: KnownIncident) -> _Likeness:
        missing, reasons = 1.0, []
        for share, reason in self._matches(query, log, incident):
            missing *= 1 - share
            reasons.append(reason)
        return _Likeness(1 - missing, tuple(reasons))

    def _matches(self, query: Query, log: str, incident: KnownIncident) -> Iterable[tuple[float, str]]:
        """Each structured match with how much it says, 0..1."""
        mark = self._marks.get(incident.id, Mark())
        if self._same_failure(query, incident):
            yield _SAME_FINGERPRINT, "same fingerprint"
        elif same := [signature for signature in query.signatures if signature in mark.signatures]:
            yield _SAME_SIGNATURE, f"same signature {same[0]}"
        category = self._categories.get(query.failure_type, "")
        if query.failure_type not in _SAYS_NOTHING and query.failure_type == incident.failure_type:
            share = _SAME_VAGUE_TYPE if query.failure_type in self._vague else _SAME_TYPE
            yield share, f"same failure type {query.failure_type}"
        elif incident.failure_type in query.other_types:
            seen = _OTHER_TYPE_OF_SYMPTOM if query.failure_type in self._vague else _OTHER_TYPE_SEEN
            yield seen, f"lines of failure type {incident.failure_type} too"
        elif query.failure_type not in _SAYS_NOTHING and query.failure_type == mark.said_type:
            yield _SAID_TYPE, f"was taken for {mark.said_type} too"
        elif category not in _SAYS_NOTHING and category == self._categories.get(incident.failure_type):
            yield _SAME_CATEGORY, f"same category {category}"
        if query.root_cause_class not in _SAYS_NOTHING and query.root_cause_class == incident.root_cause_class:
            yield _SAME_CLASS, f"same cause class {query.root_cause_class}"
        shared = sorted({component.lower() for component in query.components} & self._components[incident.id])
        if shared:
            yield min(0.08 * len(shared), 0.2), f"same component{'s' * (len(shared) > 1)} {', '.join(shared[:3])}"
        held = [form for form in self._errors[incident.id] if form in log]
        if held:
            best = max(held, key=lambda form: (-self._holders.get(form, 1), len(form)))
            yield _SAME_ERROR * self._rarity(best), f"both mention `{self._errors[incident.id][best]}`"

    def _same_failure(self, query: Query, incident: KnownIncident) -> bool:
        return bool(query.fingerprint) and query.fingerprint == self._marks.get(incident.id, Mark()).fingerprint

    def _agreement(self, query: Query, incident: KnownIncident) -> float:
        """Below 1 where the failure has a definite type and the incident another: the same words may tell another story."""
        if self._same_failure(query, incident):
            return 1.0
        asked, known = query.failure_type, incident.failure_type
        if asked == known or asked in _SAYS_NOTHING | self._vague:
            return 1.0
        if known in query.other_types or asked == self._marks.get(incident.id, Mark()).said_type:
            return 1.0
        if known in _SAYS_NOTHING and incident.id in self._marks:
            return _NO_CAUSE  # its cause was never found: it has no answer
        near = known in _SAYS_NOTHING or self._categories.get(asked, "") == self._categories.get(known)
        return _NEAR_TYPE if near else _OTHER_TYPE

    def _rarity(self, form: str) -> float:
        """1 for an error string of one incident alone, towards 0 for one that all hold."""
        return 1.0 if self._total < 2 else 1 - math.log(self._holders.get(form, 1)) / math.log(self._total + 1)

    def _why(self, query: Query, incident: KnownIncident, match: _Likeness, dense: float, lexical: float) -> str:
        reasons = list(match.reasons)
        if lexical > 0 and not any(reason.startswith("both mention") for reason in reasons):
            terms = self._lexicon.shared(incident.id, query.full_text())
            reasons += [f"shared words {', '.join(f'`{term}`' for term in terms)}"] if terms else []
        if dense >= _SIMILAR_TEXT:
            reasons.append("similar text")
        return "; ".join(reasons) or "text somewhat alike"


def near(cosine: float, noise: float = _COSINE_NOISE, same: float = _COSINE_SAME) -> float:
    """Cosine as a likeness in 0..1."""
    return min(1.0, max(0.0, (cosine - noise) / (same - noise)))


def passages(incident: KnownIncident) -> tuple[str, ...]:
    """The texts that stand for an incident in the vector index, each short enough for the model to see it whole."""
    errors = "\n".join(incident.error_strings)
    parts = (
        f"{incident.title}. {incident.symptoms}",
        f"{incident.title}. {incident.root_cause}",
        errors,
    )
    return tuple(dict.fromkeys(part for part in parts if part.strip()))


def _lexical_parts(incident: KnownIncident) -> Sequence[str]:
    errors = "\n".join(incident.error_strings)
    return (
        incident.title,
        incident.title,
        errors,
        errors,
        incident.symptoms,
        incident.root_cause,
        " ".join(incident.components),
        incident.failure_type.replace("-", " "),
        incident.lessons,
        *incident.remediation,
    )


def _error_forms(strings: Iterable[str], lines: bool) -> dict[str, str]:
    """Normal form of each error string that is long enough to mean something, to the string itself.

    lines: they are whole lines of a log, of which stamps and ranks at the begin are another time's.
    """
    texts = [_STAMPS.sub("", text) if lines else text for text in strings]
    forms = {_normal(text): " ".join(text.split()) for text in texts}
    return {form: text for form, text in forms.items() if len(form) >= _SHORTEST_ERROR}


def _normal(text: str) -> str:
    return _LONG_NUMBER.sub("#", " ".join(text.lower().split()))
