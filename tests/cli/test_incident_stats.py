"""`triage incidents stats`: what is printed, and which nodes stand out."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tests.databases import lay_down
from tests.store.samples import ECC, OOM
from triage import report
from triage.cli import incidents
from triage.cli.incident_stats import suspicious
from triage.domain import Suspects
from triage.store.incidents import IncidentStore
from triage.store.stats import NodeCount
from triage.store.values import JobRef, Verdict

WELL = replace(OOM, outcome="healthy", failure_type="healthy", root_cause_class="none", evidence=())


def run(*words: str) -> str:
    done = CliRunner().invoke(incidents.app, ["stats", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def store() -> Iterator[IncidentStore]:
    with IncidentStore.open(lay_down(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db")) as opened:
        yield opened


def add(store: IncidentStore, node: str, bad: int, well: int) -> None:
    failed = replace(ECC, suspects=Suspects(nodes=(node,)), evidence=())
    for d in [failed] * bad + [WELL] * well:
        store.record(d, report.to_json(d), JobRef(owner="ada", nodes=(node,)))


def test_a_node_that_fails_more_often_than_its_jobs_explain_is_named(store: IncidentStore) -> None:
    for i in range(10):
        add(store, f"gpu-{i:02}", 1, 9)
    add(store, "gpu-bad", 8, 2)

    text = run()
    found = json.loads(run("--format", "json"))["nodes"]

    assert [(n["node"], n["failures"], n["jobs"]) for n in found["unusual"]] == [("gpu-bad", 8, 10)]
    assert found["unusual"][0]["expected"] == pytest.approx(18 * 10 / 110)
    line = next(x for x in text.splitlines() if x.startswith("gpu-bad") and "1.6" in x)
    assert line.split()[:4] == ["gpu-bad", "8", "1.6", "10"]


def test_without_jobs_that_went_well_nothing_is_said_of_nodes(store: IncidentStore) -> None:
    add(store, "gpu-bad", 9, 0)
    add(store, "gpu-01", 1, 0)

    assert "Which nodes fail too often is not known: no recorded job that went well names its nodes." in run()
    assert json.loads(run("--format", "json"))["nodes"]["unusual"] is None


def test_figures_come_with_their_number_and_interval_and_none_without(store: IncidentStore) -> None:
    add(store, "gpu-01", 2, 1)
    assert "How right" not in run()
    assert json.loads(run("--format", "json"))["accuracy"]["confirmed"] == {
        "k": 0,
        "n": 0,
        "share": None,
        "low": None,
        "high": None,
    }

    store.resolve(1, Verdict("confirmed", "ada"))

    assert "diagnosis confirmed              100.0%   1  20.7% to 100.0%" in run()
    assert "| diagnosis confirmed | 100.0% | 1 | 20.7% to 100.0% |" in run("--format", "markdown")


def test_the_beginning_of_the_text(store: IncidentStore) -> None:
    add(store, "gpu-01", 2, 1)
    assert run("--top", "1").startswith(
        "2 incidents among 3 diagnosed jobs (3 runs)\n\n"
        "Outcome  incidents  GPU-hours\nfailed           2\n... and 1 more\n\n"
        "Failure type  incidents  GPU-hours\necc-error             2\n"
    )


def test_an_empty_database_says_what_to_do() -> None:
    done = CliRunner().invoke(incidents.app, ["stats"])
    assert done.stdout == ""
    assert done.stderr == "triage: no incident is recorded yet; `triage diagnose PATH...` records one\n"
    assert json.loads(run("--format", "json"))["jobs"] == 0


def test_nodes_that_are_all_alike_are_left_in_peace() -> None:
    """In a hundred fleets without a bad node, about five may hold a node that is named."""
    wrong = 0
    for fleet in range(100):
        chance = random.Random(fleet)
        jobs = [chance.randrange(5, 60) for _ in range(200)]
        nodes = [NodeCount(f"n{i}", sum(chance.random() < 0.03 for _ in range(n)), n) for i, n in enumerate(jobs)]
        wrong += bool(suspicious(nodes))
    assert wrong <= 9


def test_a_bad_node_in_a_large_fleet_is_found() -> None:
    chance = random.Random(1)
    nodes = [NodeCount(f"n{i}", sum(chance.random() < 0.02 for _ in range(40)), 40) for i in range(500)]
    assert [s.node for s in suspicious([*nodes, NodeCount("bad", 10, 40)])] == ["bad"]
