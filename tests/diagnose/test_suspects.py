"""Which rank and node: never without a line that says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, JobLog, LogFile, RawLine
from triage.evidence.match import Matcher
from triage.ingest.lines import LineParser

MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/gpfs/data/index.json'"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), kb.advice())


def said(knowledge: Knowledge, *texts: str) -> Diagnosis:
    raws = [RawLine(number, text.encode()) for number, text in enumerate(texts, 1)]
    parser = LineParser("job.log", "job")
    parser.learn(raw.raw for raw in raws)
    lines = tuple(replace(parser.parse(raw, None), hot=True) for raw in raws)
    return judge(JobLog((LogFile("job.log", "job", lines, 1, len(lines), last_line=len(lines)),)), knowledge)


def places(nodes: int, each: int = 4) -> list[str]:
    return [f"{rank}: solver rank {rank} of {nodes * each} on bn{rank // each:02d}" for rank in range(nodes * each)]


def test_a_node_all_of_whose_ranks_miss_what_the_others_find_is_the_suspect(knowledge: Knowledge) -> None:
    d = said(knowledge, *places(4), *[f"{rank}: {MISSING}" for rank in range(4, 8)])
    assert (d.failure_type, d.suspects.nodes) == ("file-not-found", ("bn01",))


@pytest.mark.parametrize(("nodes", "ranks"), [(2, range(4, 8)), (4, range(5, 8)), (4, range(16))])
def test_no_node_is_suspected_that_is_not_the_odd_one(knowledge: Knowledge, nodes: int, ranks: range) -> None:
    """One of two; a part of a node's ranks; all of them."""
    d = said(knowledge, *places(nodes), *[f"{rank}: {MISSING}" for rank in ranks])
    assert d.suspects.nodes == ()


def test_where_the_cause_names_no_rank_the_process_that_fell_first_does(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        "RuntimeError: CUDA error: device-side assert triggered",
        "srun: error: n2: task 3: Exited with exit code 1",
        "srun: error: n1: tasks 0-1: Exited with exit code 1",
        "srun: error: n2: task 2: Terminated",
    )
    assert d.suspects.ranks == (3,)


def test_tasks_that_are_launchers_are_no_ranks(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        "[rank9]: hello",
        "RuntimeError: CUDA error: device-side assert triggered",
        "srun: error: n2: task 1: Exited with exit code 1",
        "srun: error: n1: task 0: Terminated",
    )
    assert d.suspects.ranks == ()


def test_an_unknown_failure_still_says_which_rank_fell_first(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        "starting",
        *[f"{rank}: ready" for rank in range(8)],
        "srun: error: r319: task 5: Exited with exit code 1",
    )
    assert (d.failure_type, d.outcome, d.suspects.ranks) == ("unknown", "failed", (5,))
    assert any(e.line == 10 for e in d.evidence)
