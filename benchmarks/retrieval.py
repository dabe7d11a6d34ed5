"""How well retrieval finds the right past incidents: python -m benchmarks.retrieval [--keep FILE]

Questions: those in words of retrieval_queries.yaml, and the diagnosis of each shipped case that stands in a group of
eval/retrieval/pairs.yaml. Each is asked of the shipped knowledge base and of a simulated half year of recorded incidents
(retrieval_history.py), of which the case itself is left out. Printed for each way to rank: recall@5 (share of the right
incidents among the first five, of at most five) and MRR (mean of 1/place of the first right one), for the dev half on which
the weights were chosen and for the test half; intervals of 95 %, drawn by mechanism. Then times and memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import retrieval_history as history
from triage import kb
from triage.domain import KnownIncident
from triage.evaluation.bootstrap import Draws, Estimate, ratio, ratio_difference
from triage.retrieve.archive import ArchiveIndex
from triage.retrieve.embedding import MINILM, load_embedder
from triage.retrieve.index import MemoryIndex
from triage.retrieve.rank import Mark, Query
from triage.retrieve.recall import Past, Recall
from triage.retrieve.retriever import Retriever, open_retriever, query_of
from triage.store.known import KnownReader

QUERIES = Path(__file__).with_name("retrieval_queries.yaml")
PAIRS = Path(__file__).resolve().parents[1] / "eval" / "retrieval" / "pairs.yaml"
K = 5
Ranking = list[str]  # names of incidents, best first; of a recorded one the case
Rank = Callable[[Query], Ranking]


@dataclass(frozen=True, slots=True)
class Labelled:
    """unseen: not looked at while tuning; mechanism: what is drawn together for intervals."""

    query: Query
    right: tuple[str, ...]
    unseen: bool
    mechanism: str = ""


@dataclass(frozen=True, slots=True)
class Quality:
    recall: float
    mrr: float


def questions() -> list[Labelled]:
    """Those in words."""
    return [_labelled(entry, i) for i, entry in enumerate(kb.read_yaml(QUERIES))]


def _labelled(entry: Mapping[str, Any], place: int) -> Labelled:
    query = Query(
        entry["text"], entry.get("type", ""), entry.get("cause", ""), error_strings=tuple(entry.get("errors", ()))
    )
    return Labelled(query, tuple(entry["right"]), place % 2 == 1, f"words {place}")


def case_questions(found: Sequence[history.Diagnosed], ids: Mapping[str, int]) -> Iterator[Labelled]:
    """The diagnosis of each case of a group; ids: under which the cases are recorded."""
    by_id = {item.case.id: item for item in found}
    for group in kb.read_yaml(PAIRS):
        for case in group["cases"]:
            right = (*(other for other in group["cases"] if other != case), *group.get("incidents", ()))
            query = replace(query_of(by_id[case].whole), incident=ids[case])
            yield Labelled(query, right, by_id[case].case.split == "test", group["id"])


def categories() -> dict[str, str]:
    return {name: kind.category for name, kind in kb.taxonomy().types.items()}


def vague() -> list[str]:
    return [name for name, kind in kb.taxonomy().types.items() if kind.symptom or name == "hang"]


def retriever_in_memory(incidents: Sequence[KnownIncident]) -> Retriever:
    return Retriever(MemoryIndex(), load_embedder(), incidents, categories(), vague())


def rankings(retriever: Retriever) -> dict[str, Rank]:
    """Each way to rank the knowledge base alone, by name."""
    bare = retriever.ranker
    return {
        "dense": lambda query: _best(retriever.cosines(query)),
        "lexical": lambda query: _best(bare.lexical(query)),
        "structured": lambda query: _best(bare.structured(query)),
        "hybrid": lambda query: [similar.incident for similar in retriever.similar(query, K, min_score=0)],
    }


def _best(scores: Mapping[str, float]) -> Ranking:
    return [name for name, _ in sorted(scores.items(), key=lambda item: (-item[1], item[0]))]


class Installation:
    """The knowledge base and one recorded history. names: the case of each incident."""

    def __init__(self, retriever: Retriever, url: str, names: Mapping[int, str]) -> None:
        self._known = retriever
        self._names = names
        self._reader = KnownReader.open(url)
        index = ArchiveIndex(MemoryIndex(), retriever.embedder, self._reader)
        index.rebuild()
        self._past = Past(self._reader, index)
        self._recall = Recall(retriever, self._past, now=lambda: history.NOW)
        everything = self._reader.after(0, 10_000)
        self._family = {str(r.incident): r.fingerprint or str(r.incident) for r in everything}
        marks = {r.story.id: Mark(r.fingerprint, r.signatures, r.said_type) for r in everything}
        self._all = retriever.ranker.beside([r.story for r in everything], marks)

    def dense(self, query: Query) -> Ranking:
        vectors = self._known.vectors(query)
        recorded = {str(i): c for i, c in self._past.index.nearest(vectors).items()}
        return self._named(_best({**recorded, **self._known.nearest(vectors)}), query)

    def lexical(self, query: Query) -> Ranking:
        return self._named(_best({**self._all.lexical(query), **self._known.ranker.lexical(query)}), query)

    def hybrid(self, query: Query) -> Ranking:
        found = self._recall.similar(query, 4 * K, min_score=0).similar
        return self._named([s.incident for s in found], query)

    def _named(self, ranking: Ranking, query: Query) -> Ranking:
        """Without the case itself, and of incidents with one fingerprint the first: all are shown as one."""
        shown: dict[str, str] = {}
        for incident in ranking:
            if incident != str(query.incident):
                shown.setdefault(self._family.get(incident, incident), incident)
        return [self._names.get(int(i), f"look-alike {i}") if i.isdigit() else i for i in shown.values()]

    def as_one(self, names: Mapping[str, int]) -> dict[str, str]:
        """Of each case the one that stands for its fingerprint in a ranking may be another: their families."""
        return {case: self._family[str(i)] for case, i in names.items()}


def figures(found: Ranking, right: Sequence[str], family: Mapping[str, str] | None = None) -> tuple[float, float]:
    """recall@5 and 1/place of one question. family: incidents of one are found together."""
    of = family or {}
    wanted = {of.get(name, name) for name in right}
    ranking = [of.get(name, name) for name in found]
    places = [place for place, name in enumerate(ranking, 1) if name in wanted]
    return sum(place <= K for place in places) / min(K, len(wanted)), 1 / places[0] if places else 0.0


def quality(rank: Rank, asked: Sequence[Labelled]) -> Quality:
    each = [figures(rank(question.query), question.right) for question in asked]
    return Quality(sum(r for r, _ in each) / len(each), sum(m for _, m in each) / len(each))


def ways(
    found: Sequence[history.Diagnosed], folder: Path
) -> tuple[list[Labelled], dict[str, list[tuple[float, float]]]]:
    """All questions, and recall@5 and 1/place of each for each way to rank."""
    known = retriever_in_memory(kb.known_incidents())
    ids = history.record(f"sqlite:///{folder}/told.db", found, told=True)
    history.record(f"sqlite:///{folder}/untold.db", found, told=False)
    names = {incident: case for case, incident in ids.items()}
    told = Installation(known, f"sqlite:///{folder}/told.db", names)
    untold = Installation(known, f"sqlite:///{folder}/untold.db", names)
    asked = [*questions(), *case_questions(found, ids)]
    ranks: dict[str, Rank] = {
        "dense": untold.dense,
        "lexical": untold.lexical,
        "hybrid": untold.hybrid,
        "hybrid with outcomes": told.hybrid,
    }
    family = told.as_one(ids)
    return asked, {name: [figures(rank(q.query), q.right, family) for q in asked] for name, rank in ranks.items()}


def table(asked: Sequence[Labelled], found: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    rows = [f"{len(asked)} questions, {sum(q.unseen for q in asked)} of them of the test half"]
    halves: Mapping[str, Callable[[Labelled], bool]] = {
        "dev": lambda q: not q.unseen, "test": lambda q: q.unseen, "all": lambda _q: True,
    }  # fmt: skip
    for half, chosen in halves.items():
        places = [i for i, q in enumerate(asked) if chosen(q)]
        draws = Draws(asked[i].mechanism for i in places)
        rows.append(f"\n{half:<22}{'recall@5':<24}{'MRR':<24}")
        parts = {
            name: [draws.parts((asked[i].mechanism, each[i][what], 1.0) for i in places) for what in (0, 1)]
            for name, each in found.items()
        }
        for name, (recall, mrr) in parts.items():
            rows.append(f"{name:<22}{_said(ratio(recall, draws, 'mean'))}{_said(ratio(mrr, draws, 'mean'))}")
        best, dense = parts["hybrid with outcomes"], parts["dense"]
        more = [ratio_difference(a, b, draws, "mean") for a, b in zip(dense, best, strict=True)]
        rows.append(f"{'better than dense by':<22}{_said(more[0])}{_said(more[1])}")
    return "\n".join(rows)


def _said(estimate: Estimate | None) -> str:
    assert estimate is not None and estimate.low is not None and estimate.high is not None
    return f"{f'{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})':<24}"


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--keep", type=Path, help="a file that the diagnoses of the cases are kept in, for the next run"
    )
    keep = parser.parse_args().keep
    print(costs(kb.known_incidents()))
    with tempfile.TemporaryDirectory() as folder:
        print(table(*ways(history.diagnosed(keep), Path(folder))))


if __name__ == "__main__":
    main()
