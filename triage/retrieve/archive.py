"""The vector index of recorded incidents, kept in step with the database, which is the truth.

The database is written first and the index after, so a process that ends between leaves incidents that the index lacks;
one that was deleted, or read anew, leaves entries of which the database knows nothing. Either is seen by comparing names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from triage.domain import Family, Misled, Recorded
from triage.retrieve.embedding import Embedder
from triage.retrieve.index import Entry, Index, Vector

HEALED = 300  # incidents that a question embeds at most, in less than a second
_NEWEST = 32  # incidents that a question looks up in the index: those that a killed process leaves out are among them
_NEAREST = 60  # incidents asked of the index for each text of a question
_BATCH = 256
_LINES = 3
_MOST_TEXT = 1200  # characters that stand for an incident: the embedding sees some 256 tokens


class Archive(Protocol):
    """The recorded incidents that failed. triage.store.known.KnownReader is one; its errors are StoreError."""

    def count(self) -> int: ...

    def keys(self, newest: int | None = None) -> tuple[str, ...]: ...

    def read(self, incidents: Collection[int]) -> tuple[Recorded, ...]: ...

    def after(self, incident: int, most: int) -> tuple[Recorded, ...]: ...

    def like(self, fingerprint: str, failure_type: str, signatures: Collection[str], most: int) -> tuple[int, ...]: ...

    def families(self, fingerprints: Collection[str]) -> Mapping[str, Family]: ...

    def misled(self, fingerprint: str) -> Mapping[str, Misled]: ...


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Names of what the index lacks, and of what it holds too much; total: incidents that it should hold."""

    missing: frozenset[str]
    extra: frozenset[str]
    total: int

    def __str__(self) -> str:
        if not self.missing and not self.extra:
            return f"holds all {self.total} recorded incidents"
        parts = [f"lacks {len(self.missing)} of {self.total} recorded incidents"] if self.missing else []
        parts += [f"holds {len(self.extra)} that the database does not"] if self.extra else []
        return " and ".join(parts)


class ArchiveIndex:
    """Errors: IndexUnavailableError, StoreError."""

    def __init__(self, index: Index, embedder: Embedder, archive: Archive) -> None:
        self._index = index
        self._embedder = embedder
        self._archive = archive

    def look(self, vectors: Sequence[Vector]) -> tuple[dict[int, float], int]:
        """Mends the index, then `nearest`; and how many incidents are left to mend."""
        with self._index.held():
            left = self.heal()
            return self.nearest(vectors), left

    def nearest(self, vectors: Sequence[Vector]) -> dict[int, float]:
        """Cosine of the incidents nearest to each vector, by number; of any version of their diagnosis."""
        found: dict[int, float] = {}
        for hits in self._index.searches(vectors, _NEAREST):
            for hit in hits:
                incident = _number(hit.id)
                found[incident] = max(found.get(incident, -1.0), hit.similarity)
        return found

    def heal(self, most: int = HEALED) -> int:
        """Brings the index in step where it is not, the newest incidents first; how many are left to do."""
        if self._agrees():
            return 0
        there = self.mismatch()
        self._index.remove(there.extra)
        todo = sorted(map(_number, there.missing), reverse=True)
        for start in range(0, min(most, len(todo)), _BATCH):
            self.add(self._archive.read(todo[start : min(start + _BATCH, most)]))
        return max(0, len(todo) - most)

    def _agrees(self) -> bool:
        newest = self._archive.keys(_NEWEST)
        return self._index.count() == self._archive.count() and self._index.among(newest) == set(newest)

    def mismatch(self) -> Mismatch:
        """Compares every name. The index is read first: what it holds rightly is in the database by then."""
        there = self._index.ids()
        wanted = set(self._archive.keys())
        return Mismatch(frozenset(wanted - there), frozenset(there - wanted), len(wanted))

    def add(self, recorded: Iterable[Recorded]) -> None:
        new = tuple(recorded)
        vectors = self._embedder.embed([passage(r) for r in new]) if new else []
        self._index.add([Entry(r.key, v, {"incident": str(r.incident)}) for r, v in zip(new, vectors, strict=True)])

    def rebuild(self, tell: Callable[[int], None] = lambda _done: None) -> int:
        """Makes the index anew, a part at a time; how many incidents it holds then. tell: is given how many so far."""
        self._index.rebuild([])
        done = last = 0
        while batch := self._archive.after(last, _BATCH):
            self.add(batch)
            done, last = done + len(batch), batch[-1].incident
            tell(done)
        return done


def passage(recorded: Recorded) -> str:
    """What the diagnosis says, and no verdict, which may change."""
    story = recorded.story
    return "\n".join((story.title, story.symptoms, *story.error_strings[:_LINES]))[:_MOST_TEXT]


def _number(key: str) -> int:
    return int(key.partition(".")[0])
