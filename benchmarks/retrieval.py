"""How well retrieval finds the right past incidents: python -m benchmarks.retrieval

Asks every labelled question of retrieval_queries.yaml of the shipped knowledge base, with each kind of likeness alone
and with all of them, and prints recall@5 (share of the right incidents among the first five) and MRR (mean of 1/place
of the first right one), over all questions and over the half that was not looked at while tuning. Then times and memory.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage import kb
from triage.domain import KnownIncident
from triage.retrieve.embedding import MINILM, load_embedder
from triage.retrieve.index import MemoryIndex
from triage.retrieve.rank import Query
from triage.retrieve.retriever import Retriever, open_retriever

QUERIES = Path(__file__).with_name("retrieval_queries.yaml")
K = 5
Ranking = list[str]


@dataclass(frozen=True, slots=True)
class Labelled:
    query: Query
    right: tuple[str, ...]
    unseen: bool  # not looked at while tuning


@dataclass(frozen=True, slots=True)
class Quality:
    recall: float
    mrr: float


def questions() -> list[Labelled]:
    return [_labelled(entry, i % 2 == 1) for i, entry in enumerate(kb.read_yaml(QUERIES))]


def _labelled(entry: Mapping[str, Any], unseen: bool) -> Labelled:
    query = Query(
        entry["text"], entry.get("type", ""), entry.get("cause", ""), error_strings=tuple(entry.get("errors", ()))
    )
    return Labelled(query, tuple(entry["right"]), unseen)


def categories() -> dict[str, str]:
    return {name: kind.category for name, kind in kb.taxonomy().types.items()}


def vague() -> list[str]:
    return [name for name, kind in kb.taxonomy().types.items() if kind.symptom or name == "hang"]


def retriever_in_memory(incidents: Sequence[KnownIncident]) -> Retriever:
    return Retriever(MemoryIndex(), load_embedder(), incidents, categories(), vague())


def rankings(retriever: Retriever) -> dict[str, Callable[[Query], Ranking]]:
    """Each way to rank, by name."""
    bare = retriever.ranker

    def by(scores: Callable[[Query], Mapping[str, float]]) -> Callable[[Query], Ranking]:
        return lambda query: [name for name, _ in sorted(scores(query).items(), key=lambda item: (-item[1], item[0]))]

    return {
        "dense": by(retriever.cosines),
        "lexical": by(bare.lexical),
        "structured": by(bare.structured),
        "hybrid": lambda query: [similar.incident for similar in retriever.similar(query, K, min_score=0)],
    }


def quality(rank: Callable[[Query], Ranking], asked: Sequence[Labelled]) -> Quality:
    recall = mrr = 0.0
    for question in asked:
        found = rank(question.query)
        recall += len(set(found[:K]) & set(question.right)) / len(question.right)
        mrr += max((1 / (found.index(name) + 1) for name in question.right if name in found), default=0.0)
    return Quality(recall / len(asked), mrr / len(asked))


def table(incidents: Sequence[KnownIncident]) -> str:
    asked = questions()
    unseen = [question for question in asked if question.unseen]
    rows = [f"{'ranking':<12}{'recall@5':>9}{'MRR':>7}   {'recall@5':>9}{'MRR':>7}   (right: the unseen half)"]
    for name, rank in rankings(retriever_in_memory(incidents)).items():
        every, half = quality(rank, asked), quality(rank, unseen)
        rows.append(f"{name:<12}{every.recall:>9.3f}{every.mrr:>7.3f}   {half.recall:>9.3f}{half.mrr:>7.3f}")
    return "\n".join([f"{len(asked)} questions, {len(incidents)} incidents", *rows])


def costs(incidents: Sequence[KnownIncident]) -> str:
    """Seconds and peak memory of the first use, and of the next question, with the index in Chroma."""
    with tempfile.TemporaryDirectory() as home:
        begun = time.perf_counter()
        retriever = open_retriever(Path(home), "", MINILM, incidents, categories=categories(), vague=vague())
        written = retriever.sync()
        first = time.perf_counter() - begun
        begun = time.perf_counter()
        asked = questions()
        for question in asked:
            retriever.similar(question.query)
        each = (time.perf_counter() - begun) / len(asked)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)
    return (
        f"first use: {written} vectors in {first:.2f} s, imports included; then {each * 1000:.0f} ms a question; "
        f"peak memory {peak:.0f} MiB"
    )


if __name__ == "__main__":
    known = kb.known_incidents()
    print(costs(known))
    print(table(known))
