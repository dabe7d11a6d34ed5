"""What a failure is like: incidents of the knowledge base and recorded ones, ranked together and by what became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from triage.domain import Family, Misled, PastFailure, Recorded, Similar
from triage.errors import IndexBrokenError, IndexUnavailableError, StoreError
from triage.retrieve import outcome
from triage.retrieve.archive import Archive, ArchiveIndex
from triage.retrieve.index import Vector
from triage.retrieve.rank import MIN_SCORE, Mark, Query, Scored
from triage.retrieve.retriever import Retriever

HALF_LIFE = 20.0  # days. In the one published study 93.8 % of repeats came within 20 days of the failure before
_MOST = 20  # recorded incidents of each kind of likeness that the database is asked for
_MOST_BESIDE = 3  # warnings of other incidents of the same failure
SameEvent = Callable[[PastFailure], bool]


def never(_past: PastFailure) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Past:
    """The recorded incidents: the database, and its index."""

    archive: Archive
    index: ArchiveIndex


@dataclass(frozen=True, slots=True)
class Answer:
    """similar: best first; notes: what was not searched, in words."""

    similar: tuple[Similar, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """warnings: what stands before the reasons of `similar`; recorded: None for one of the knowledge base."""

    score: float
    similar: Similar
    warnings: tuple[str, ...] = ()
    recorded: Recorded | None = None


class Recall:
    """half_life: days, for outcome.weight; now: the clock that ages are taken by."""

    def __init__(
        self,
        known: Retriever,
        past: Past | None = None,
        half_life: float = HALF_LIFE,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._known = known
        self._past = past
        self._half_life = half_life
        self._now = now

    def similar(self, query: Query, k: int = 5, min_score: float = MIN_SCORE, same_event: SameEvent = never) -> Answer:
        """The k most similar. same_event: whether a past failure is the one at hand, read once more.

        Where the index or the database cannot be used, the rest answers and a note says so.
        """
        notes: list[str] = []
        vectors, cosines, titles = self._dense(query, notes)
        misled: Mapping[str, Misled] = {}
        found: list[_Candidate] = []
        if self._past:
            try:
                misled = self._past.archive.misled(query.fingerprint)
                found = self._recorded(self._past, query, vectors, misled, min_score, same_event, notes)
            except StoreError as error:
                notes.append(f"recorded incidents were not searched: {error}")
        found += [_known(s, _misled(misled, s)) for s in self._known.ranker.score(query, cosines, titles, min_score)]
        found.sort(key=lambda c: (-c.score, c.similar.incident))
        return Answer(tuple(map(_told, found[: max(0, k)])), tuple(notes))

    def _dense(self, query: Query, notes: list[str]) -> tuple[Sequence[Vector], dict[str, float], dict[str, float]]:
        try:
            vectors = self._known.vectors(query)
            return vectors, self._known.nearest(vectors), self._known.titles(query)
        except IndexUnavailableError as error:
            notes.append(f"similar incidents were searched by words and labels only: {error}")
            return (), {}, {}

    def _recorded(
        self,
        past: Past,
        query: Query,
        vectors: Sequence[Vector],
        misled: Mapping[str, Misled],
        min_score: float,
        same_event: SameEvent,
        notes: list[str],
    ) -> list[_Candidate]:
        cosines = _nearest(past.index, vectors, notes)
        like = past.archive.like(query.fingerprint, query.failure_type, query.signatures, _MOST)
        read = past.archive.read(dict.fromkeys((*cosines, *like)))
        others = [r for r in read if r.incident != query.incident and not same_event(r.past)]
        marks = {r.story.id: Mark(r.fingerprint, r.signatures, r.said_type) for r in others}
        stories = [r.story for r in others]
        titles = self._known.titles(query, stories) if vectors else {}
        ranker = self._known.ranker.beside(stories, marks, own_words=query.in_words)
        scored = ranker.score(query, {str(i): cosine for i, cosine in cosines.items()}, titles, min_score)
        families = past.archive.families({marks[s.incident.id].fingerprint for s in scored} - {""})
        hidden = [r.fingerprint for r in read if r not in others]
        families = {n: Family(max(1, f.times - hidden.count(n)), f.last) for n, f in families.items()}
        by_id = {r.story.id: r for r in others}
        candidates = [
            self._candidate(s, by_id[s.incident.id], families, _misled(misled, s), query.fingerprint) for s in scored
        ]
        return _one_of_each(candidates)

    def _candidate(
        self, scored: Scored, recorded: Recorded, families: Mapping[str, Family], misled: Misled | None, asked: str
    ) -> _Candidate:
        family = families.get(recorded.fingerprint, Family(1, recorded.past.at))
        weight = outcome.weight(recorded, self._now(), self._half_life, misled is not None)
        score = outcome.weighted(scored.score, weight)
        warnings = (*([outcome.misled_words(misled)] if misled else []), *outcome.warnings(recorded))
        reasons = (scored.why, *outcome.notes(recorded, family.times, family.last))
        similar = Similar(
            recorded.story.id,
            recorded.story.title,
            round(score, 3),
            "; ".join(reasons),
            recorded.story.outcome,
            recorded.story.remediation,
            fix=recorded.fix,
            worked=recorded.worked,
            told_at=recorded.told_at,
            times=family.times,
            same_fingerprint=bool(asked) and asked == recorded.fingerprint,
        )
        return _Candidate(score, similar, warnings, recorded)


def _nearest(index: ArchiveIndex, vectors: Sequence[Vector], notes: list[str]) -> dict[int, float]:
    """By number; nothing, with a note, where the index cannot be used."""
    if not vectors:
        return {}
    try:
        found, left = index.look(vectors)
        if left:
            notes.append(f"{left} recorded incidents are not in the index yet; run `triage kb reindex`")
        return found
    except IndexBrokenError as error:
        notes.append(f"recorded incidents were searched by words and labels only: {error}; run `triage kb reindex`")
    except IndexUnavailableError as error:
        notes.append(f"recorded incidents were searched by words and labels only: {error}")
    return {}


def _misled(all_shown: Mapping[str, Misled], scored: Scored) -> Misled | None:
    """Not where the failure beside which it was shown turned out to be of its type."""
    found = all_shown.get(scored.incident.id)
    return None if found and found.true_type == scored.incident.failure_type else found


def _known(scored: Scored, misled: Misled | None) -> _Candidate:
    score = outcome.weighted(scored.score, outcome.weight_known(misled is not None))
    i = scored.incident
    similar = Similar(i.id, i.title, round(score, 3), scored.why, i.outcome, i.remediation)
    return _Candidate(score, similar, (outcome.misled_words(misled),) if misled else ())


def _told(c: _Candidate) -> Similar:
    return replace(c.similar, why="; ".join((*c.warnings, c.similar.why)))


def _one_of_each(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Of incidents with one fingerprint one, in the place of the best of them."""
    families: dict[str, list[_Candidate]] = {}
    for c in sorted(candidates, key=lambda c: (-c.score, -int(c.similar.incident))):
        own = c.recorded.fingerprint if c.recorded else ""
        families.setdefault(own or c.similar.incident, []).append(c)
    return [_for_all(family) for family in families.values()]


def _for_all(family: Sequence[_Candidate]) -> _Candidate:
    """The one of which most is known, with the warnings of the others: whom nobody judged hides nothing that was said.

    family: best first.
    """
    shown = max(family, key=lambda c: outcome.tells(c.recorded) if c.recorded else 0)
    others = sorted((c for c in family if c is not shown and c.recorded), key=_said_at, reverse=True)
    beside = (f"incident {c.similar.incident}: {w}" for c in others if c.recorded for w in outcome.warnings(c.recorded))
    score = family[0].score
    similar = replace(shown.similar, score=round(score, 3))
    return replace(shown, score=score, similar=similar, warnings=(*shown.warnings, *islice(beside, _MOST_BESIDE)))


def _said_at(c: _Candidate) -> float:
    return c.recorded.told_at.timestamp() if c.recorded and c.recorded.told_at else 0.0
