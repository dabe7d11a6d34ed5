"""Retrieval on labelled questions, written in other words than the knowledge base uses; `-s` prints the table."""

from __future__ import annotations

import pytest

from benchmarks import retrieval
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
    print("\n" + retrieval.table(kb.known_incidents()))  # noqa: T201
    asked = retrieval.questions()
    for part in (asked, [question for question in asked if question.unseen]):
        found = {name: retrieval.quality(rank, part) for name, rank in retrieval.rankings(retriever).items()}
        for alone in ("dense", "lexical", "structured"):
            assert found["hybrid"].recall >= found[alone].recall, alone
            assert found["hybrid"].mrr >= found[alone].mrr, alone
        assert found["hybrid"].recall >= 0.85
        assert found["hybrid"].mrr >= 0.75


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
