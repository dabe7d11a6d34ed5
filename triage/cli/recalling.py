"""Wires what finds past incidents: those of the knowledge base, the user's own, and those that were recorded."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from triage import kb
from triage.config import Settings
from triage.diagnose import recurrence
from triage.domain import Diagnosis, KnownIncident, PastFailure, Similar
from triage.errors import IndexUnavailableError, StoreError

if TYPE_CHECKING:
    from triage.retrieve.rank import Query
    from triage.retrieve.recall import Past
    from triage.retrieve.retriever import Retriever

MAX_SIMILAR = 3
Found = tuple[tuple[Similar, ...], tuple[str, ...]]  # similar incidents, and what was not searched


def of_diagnosis(chosen: Settings, result: Diagnosis, recorded: bool = True) -> Found:
    """Past incidents like this failure, which is not among them itself. recorded: those of the database too."""
    from triage.retrieve.retriever import query_of

    query = replace(query_of(result), incident=result.incident or (_own(chosen, result) if recorded else None))

    def same_event(past: PastFailure) -> bool:
        return recurrence.same_event(past, result)

    return similar(chosen, query, MAX_SIMILAR, same_event=same_event, recorded=recorded)


def _own(chosen: Settings, result: Diagnosis) -> int | None:
    """The incident that the diagnosis will be recorded under, if that exists."""
    from triage.cli import wiring
    from triage.store.known import KnownReader

    if not wiring.made(chosen):
        return None
    with contextlib.suppress(StoreError), KnownReader.open(chosen.database_url) as reader:
        return reader.own(result, wiring.job_of(result), timedelta(hours=chosen.merge_hours))
    return None  # what is wrong is said by the search


def similar(
    chosen: Settings,
    query: Query,
    k: int,
    min_score: float | None = None,
    same_event: Callable[[PastFailure], bool] | None = None,
    recorded: bool = True,
) -> Found:
    """Past incidents like the query. What cannot be used is left out, with a note."""
    from triage.retrieve.rank import MIN_SCORE
    from triage.retrieve.recall import Recall, never

    own, problems = kb.user_incidents(chosen.home)
    known = retriever(chosen, own)
    with contextlib.ExitStack() as stack:
        past = None
        if recorded:
            try:
                past = stack.enter_context(opened(chosen, known))
            except StoreError as error:
                problems = (*problems, f"recorded incidents were not searched: {error}")
        recall = Recall(known, past, chosen.half_life)
        least = MIN_SCORE if min_score is None else min_score
        answer = recall.similar(query, k, least, same_event or never)
    return answer.similar, (*problems, *answer.notes)


@contextlib.contextmanager
def opened(chosen: Settings, known: Retriever) -> Iterator[Past | None]:
    """The recorded incidents; None where there is no database yet: asking must not make it. Errors: StoreError."""
    from triage.cli import wiring
    from triage.retrieve.archive import ArchiveIndex
    from triage.retrieve.recall import Past
    from triage.retrieve.retriever import open_index
    from triage.store import engine
    from triage.store.known import KnownReader

    if not wiring.made(chosen):
        yield None
        return
    url = engine.parse(chosen.database_url)
    # Each database has its own part: one home, or one server, may serve several.
    part = f"recorded-{hashlib.sha256(engine.shown(url).encode()).hexdigest()[:12]}"
    index = open_index(chosen.home, chosen.chroma_url, known.embedder, offline=chosen.offline, part=part)
    with KnownReader.open(chosen.database_url) as reader:
        yield Past(reader, ArchiveIndex(index, known.embedder, reader))


def keep(chosen: Settings) -> None:
    """Puts what was just recorded into the index. Where that fails the next question does it, and says if it cannot."""
    with contextlib.suppress(IndexUnavailableError, StoreError), opened(chosen, _own_retriever(chosen)) as past:
        if past:
            past.index.heal()


def checked(chosen: Settings) -> str:
    """Whether the index can be used and agrees with the database, in words. Errors: IndexUnavailableError, StoreError."""
    known = _own_retriever(chosen)
    known.sync()
    with opened(chosen, known) as past:
        found = past.index.mismatch() if past else None
    if found is None or not (found.missing or found.extra):
        return f"ok{f' ({found})' if found else ''}"
    return f"{found}; the next question mends a few, `triage kb reindex` all"


def reindex(chosen: Settings, tell: Callable[[str], None]) -> tuple[int, int]:
    """Builds both parts of the index anew; entries of the knowledge base, recorded incidents.

    Errors: IndexUnavailableError, StoreError.
    """
    known = _own_retriever(chosen)
    entries = known.rebuild()
    with opened(chosen, known) as past:
        total = past.archive.count() if past else 0
        done = past.index.rebuild(lambda n: tell(f"recorded incidents: {n} of {total}")) if past else 0
    return entries, done


def _own_retriever(chosen: Settings) -> Retriever:
    return retriever(chosen, kb.user_incidents(chosen.home)[0])


def retriever(chosen: Settings, own: Iterable[KnownIncident] = ()) -> Retriever:
    """own: incidents of the user, beside those that triage ships. Asked again for the same, the same one."""
    return _retriever(chosen.home, chosen.chroma_url, chosen.embedding, chosen.offline, tuple(own))


@functools.lru_cache(1)
def _retriever(home: Path, chroma_url: str, embedding: str, offline: bool, own: tuple[KnownIncident, ...]) -> Retriever:
    from triage.retrieve.retriever import open_retriever

    types = kb.taxonomy().types
    return open_retriever(
        home,
        chroma_url,
        embedding,
        (*kb.known_incidents(), *own),
        categories={name: kind.category for name, kind in types.items()},
        vague=[name for name, kind in types.items() if kind.symptom or name == "hang"],
        offline=offline,
    )
