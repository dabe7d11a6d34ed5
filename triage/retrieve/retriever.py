"""Similar past incidents: keeps the vector index in step with the incidents, asks it, ranks."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from triage.domain import Diagnosis, Evidence, KnownIncident, Similar
from triage.errors import IndexBrokenError
from triage.retrieve.embedding import Embedder
from triage.retrieve.index import Entry, Index, Vector
from triage.retrieve.rank import MIN_SCORE, Query, Ranker, passages
from triage.text import without_consequences

_TITLES_KEPT = 5000
_NEAREST, _MOST = 300, 3000  # passages that the index is asked for; with fewer in all, every incident has its cosine


def open_retriever(
    home: Path,
    chroma_url: str,
    embedding: str,
    incidents: Iterable[KnownIncident],
    *,
    categories: Mapping[str, str] | None = None,
    vague: Collection[str] = (),
    offline: bool = False,
) -> Retriever:
    """A retriever as the settings say: the index embedded in home/index, or in the server of chroma_url.

    offline: no server is asked, on this machine neither. Nothing is opened before the first question.
    Errors: UsageError for an embedding or URL that cannot be used.
    """
    from triage.retrieve.embedding import load_embedder

    embedder = load_embedder(embedding, offline=offline)
    index = open_index(home, chroma_url, embedder, offline=offline)
    return Retriever(index, embedder, incidents, categories, vague)


def open_index(home: Path, chroma_url: str, embedder: Embedder, *, offline: bool = False, part: str = "") -> Index:
    """part: of the index, beside that of the knowledge base. Errors: UsageError."""
    from triage.retrieve.chroma import ChromaIndex

    if chroma_url and not offline:
        return ChromaIndex(embedder.name, embedder.dimension, url=chroma_url, part=part)
    return ChromaIndex(embedder.name, embedder.dimension, folder=home / "index", part=part)


def query_of(diagnosis: Diagnosis, at_most: int = 6) -> Query:
    """The question that a diagnosis asks of the past: its cause in words, and the lines that show it.

    Lines of the cause alone, where there are some, and those that show another failure beside it: what followed
    (launchers, time-outs, other ranks) looks the same after every cause.
    """
    roots = [evidence for evidence in diagnosis.evidence if evidence.role == "root"]
    cited = (roots or [evidence for evidence in diagnosis.evidence if evidence.role != "benign"])[:at_most]
    cited += [e for e in diagnosis.evidence if _is_beside(e) and e not in cited][: at_most // 2]
    titles = dict.fromkeys(evidence.title for evidence in cited if evidence.title)
    cause = without_consequences(diagnosis.root_cause.replace(diagnosis.recurrence.said, ""))
    for evidence in cited:
        cause = cause.replace(f"{evidence.file}:{evidence.line}", "")  # where this user keeps his logs is no likeness
    return Query(
        text="\n".join((cause, *titles)),
        title="\n".join(titles),
        failure_type=diagnosis.failure_type,
        root_cause_class=diagnosis.root_cause_class,
        error_strings=tuple(dict.fromkeys(evidence.text for evidence in cited)),
        consequences=tuple(dict.fromkeys(evidence.text for evidence in diagnosis.evidence if evidence not in cited)),
        fingerprint=diagnosis.fingerprint,
        signatures=tuple(dict.fromkeys(evidence.signature for evidence in roots if evidence.signature)),
        other_types=_beside(diagnosis),
        incident=diagnosis.incident,
    )


def _beside(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Types of lines that show another failure without being its consequence."""
    found = dict.fromkeys(e.failure_type for e in diagnosis.evidence if _is_beside(e))
    return tuple(name for name in found if name != diagnosis.failure_type)


def _is_beside(evidence: Evidence) -> bool:
    return evidence.role == "context" and evidence.failure_type not in ("", "unknown")


class Retriever:
    """incidents: all that may be named, of the knowledge base and recorded ones, each under an id of its own.

    The index is brought up to date on the first question: entries are named by what they hold, so only new and changed
    incidents are embedded. Entries of incidents that this retriever does not know are passed over, never removed: they
    belong to another (a team's server, another version of triage), or wait for `rebuild`.
    """

    def __init__(
        self,
        index: Index,
        embedder: Embedder,
        incidents: Iterable[KnownIncident],
        categories: Mapping[str, str] | None = None,
        vague: Collection[str] = (),
    ) -> None:
        """categories, vague: of failure types, for Ranker."""
        self._index = index
        self.embedder = embedder
        self._categories = dict(categories or {})
        self._vague = frozenset(vague)
        self._incidents: dict[str, KnownIncident] = {}
        self._titles: dict[str, Vector] = {}  # those compared so far, by what they say: many incidents have one title
        self._strangers: int | None = None  # entries of others in the index; None: not looked at yet
        self.add(incidents)

    def add(self, incidents: Iterable[KnownIncident]) -> None:
        """More incidents, or newer versions of them; embedded with the next question."""
        self._incidents.update((incident.id, incident) for incident in incidents)
        self.ranker = Ranker(self._incidents.values(), self._categories, self._vague)
        self._owner = {key: i.id for i in self._incidents.values() for key in _keys(i)}
        self._strangers = None

    def similar(
        self, query: Query, k: int = 5, *, dense: bool = True, min_score: float = MIN_SCORE
    ) -> tuple[Similar, ...]:
        """The k most similar, best first; nothing where nothing is similar.

        dense=False leaves the index and the model out: words and structure only, for when the index cannot be used.
        Errors: IndexUnavailableError, with dense alone.
        """
        if k < 1 or not self._incidents:
            return ()
        if not dense:
            return self.ranker.rank(query, {}, {}, k, min_score)
        return self.ranker.rank(query, self.cosines(query), self.titles(query), k, min_score)

    def vectors(self, query: Query) -> list[Vector]:
        """Of its story and of its lines."""
        texts = [query.text, "\n".join(query.error_strings)]
        return self.embedder.embed([text for text in texts if text.strip()])

    def cosines(self, query: Query) -> dict[str, float]:
        """Cosine of the nearest passage of each incident; a damaged index is built anew. Errors: IndexUnavailableError."""
        return self.nearest(self.vectors(query))

    def titles(self, query: Query, incidents: Iterable[KnownIncident] | None = None) -> dict[str, float]:
        """Cosine of the title of each incident, by id; incidents: other than the retriever's own. Errors: IndexUnavailableError."""
        said = {
            i.id: i.title for i in (self._incidents.values() if incidents is None else incidents) if i.title.strip()
        }
        asked = query.title or query.text
        if not said or not asked.strip():
            return {}
        known = self._titles if len(self._titles) <= _TITLES_KEPT else {}
        new = [title for title in dict.fromkeys((asked, *said.values())) if title not in known]
        # A new mapping, as threads of a server ask at once.
        known = {**known, **dict(zip(new, self.embedder.embed(new), strict=True))} if new else known
        self._titles = known
        return {name: float(known[asked] @ known[title]) for name, title in said.items()}

    def nearest(self, vectors: Sequence[Vector]) -> dict[str, float]:
        """The same for the vectors of a query."""
        try:
            return self._nearest(vectors)
        except IndexBrokenError:
            self.rebuild()
            return self._nearest(vectors)

    def _nearest(self, vectors: Sequence[Vector]) -> dict[str, float]:
        self.sync()
        wanted = min(_MOST, _NEAREST + (self._strangers or 0))
        found: dict[str, float] = {}
        for hit in itertools.chain.from_iterable(self._index.searches(vectors, wanted)):
            owner = self._owner.get(hit.id)
            if owner is not None:
                found[owner] = max(found.get(owner, -1.0), hit.similarity)
        return found

    def sync(self) -> int:
        """Embeds what the index lacks; how many entries were written."""
        if self._strangers is not None:
            return 0
        there = self._index.ids()
        new = self._entries(i for i in self._incidents.values() if not there.issuperset(_keys(i)))
        self._index.add(new)
        self._strangers = len(there - self._owner.keys())
        return len(new)

    def rebuild(self) -> int:
        """Makes the index anew from the incidents; how many entries it holds then."""
        entries = self._entries(self._incidents.values())
        self._index.rebuild(entries)
        self._strangers = 0
        return len(entries)

    def _entries(self, incidents: Iterable[KnownIncident]) -> list[Entry]:
        todo = [(key, text, i) for i in incidents for key, text in zip(_keys(i), passages(i), strict=True)]
        vectors = self.embedder.embed([text for _, text, _ in todo]) if todo else []
        return [
            Entry(key, vector, {"incident": i.id, "failure_type": i.failure_type})
            for (key, _, i), vector in zip(todo, vectors, strict=True)
        ]


def _keys(incident: KnownIncident) -> Sequence[str]:
    """Ids of its passages in the index: a passage that changes gets another id."""
    return [f"{incident.id}@{hashlib.sha256(text.encode()).hexdigest()[:16]}" for text in passages(incident)]
