"""Retrieval on labelled questions: those in other words than the knowledge base uses, and pairs of cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import retrieval
from benchmarks import retrieval_history as history
from triage import kb
from triage.retrieve.rank import Query
from triage.retrieve.retriever import Retriever


@pytest.fixture(scope="module")
def retriever() -> Retriever:
    return retrieval.retriever_in_memory(kb.known_incidents())


def test_every_question_names_incidents_that_exist() -> None:
    asked = retrieval.questions()
    known = {incident.id for incident in kb.known_incidents()}
    assert len(asked) >= 25
    assert {name for question in asked for name in question.right} <= known


def test_hybrid_is_better_than_each_kind_alone(retriever: Retriever) -> None:
    asked = retrieval.questions()
    for part in (asked, [question for question in asked if question.unseen]):
        found = {name: retrieval.quality(rank, part) for name, rank in retrieval.rankings(retriever).items()}
        for alone in ("dense", "lexical", "structured"):
            assert found["hybrid"].recall >= found[alone].recall, alone
            assert found["hybrid"].mrr >= found[alone].mrr, alone
        assert found["hybrid"].recall >= 0.85
        assert found["hybrid"].mrr >= 0.75


def test_the_pairs_name_what_exists_and_each_case_once() -> None:
    groups = kb.read_yaml(retrieval.PAIRS)
    cases = [case for group in groups for case in group["cases"]]
    incidents = {name for group in groups for name in group.get("incidents", ())}
    assert len(cases) == len(set(cases))
    assert set(cases) <= {folder.name for folder in history.CASES.iterdir()}
    assert incidents <= {incident.id for incident in kb.known_incidents()}
    assert all(len(group["cases"]) + len(group.get("incidents", ())) > 1 for group in groups)
    assert len(cases) + len(retrieval.questions()) >= 120


def test_figures_of_one_question() -> None:
    assert retrieval.figures(["x", "a", "y", "b"], ["a", "b"]) == (1.0, 0.5)
    assert retrieval.figures([*"uvwxy", "a"], ["a"]) == (0.0, 1 / 6)
    assert retrieval.figures([*"abcde"], [*"abcdefgh"])[0] == 1.0, "no more than five can be among five"
    assert retrieval.figures(["twin"], ["a"], {"a": "f", "twin": "f"}) == (1.0, 1.0), "shown as one"
    assert retrieval.figures([], ["a"]) == (0.0, 0.0)


@pytest.mark.service
def test_recorded_outcomes_make_the_best_of_the_rankings(tmp_path: Path) -> None:
    """Two minutes: all cases are diagnosed."""
    _asked, found = retrieval.ways(history.diagnosed(), tmp_path)
    means = {name: np.mean(each, axis=0) for name, each in found.items()}
    best = means["hybrid with outcomes"]
    assert all((best >= mean).all() for mean in means.values()), means
    assert (best - means["dense"] > 0.15).all(), means
    assert best[0] >= 0.8 and best[1] >= 0.8, means


NOTHING_SIMILAR = [
    Query("how to bake bread"),
    Query("The printer on the second floor is out of paper"),
    Query("name 'foo' is not defined", "name-error", "software-bug", (), ("NameError: name 'foo' is not defined",)),
    Query(
        "a module is missing",
        "import-error",
        "config-error",
        (),
        ("ModuleNotFoundError: No module named 'flash_attn'",),
    ),
    Query("division by zero in the metrics code", "zero-division-error", "software-bug"),
]


@pytest.mark.parametrize("query", NOTHING_SIMILAR, ids=lambda query: query.text[:20])
def test_what_the_knowledge_base_does_not_know_finds_nothing(retriever: Retriever, query: Query) -> None:
    assert retriever.similar(query) == ()
