"""Learned rules on both databases: what is in force, what is counted, and the way back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest

from tests.store import processes
from tests.store.samples import ECC, HUNG, JOB, OOM, OTHER_JOB, as_json, learned, steps
from triage.domain import Evidence
from triage.errors import NotFoundError
from triage.store.incidents import IncidentStore
from triage.store.rules import RuleStore


@pytest.fixture
def rules(migrated: None, url: str, clock: Callable[[], datetime]) -> Iterator[RuleStore]:
    with RuleStore.open(url, clock) as opened:
        yield opened


def states(rules: RuleStore) -> dict[str, str]:
    return {r.rule.id: r.state for r in rules.list()}


def test_what_was_added_comes_back_as_it_was(rules: RuleStore) -> None:
    given = learned(r"^step \d+ of shard \d+$", "shadow", "adopted")

    (stored,) = rules.add(JOB, [given], "log agent")

    assert stored.rule == dataclasses.replace(given.rule, id="learned.1")
    assert (stored.job, stored.state, stored.reason, stored.origin) == (JOB.key, "shadow", "adopted", given.origin)
    assert (stored.hits, stored.runs, stored.last_used) == (0, 0, None)
    assert rules.get("learned.1") == stored
    assert rules.job(JOB.key) == JOB
    (event,) = rules.history("learned.1")
    assert (event.who, event.what, event.before, event.after, event.reason) == (
        "log agent", "learn", "", "shadow", "adopted",
    )  # fmt: skip


def test_adding_again_changes_nothing_and_gives_what_is_there(rules: RuleStore) -> None:
    refused = learned("^.*$", "candidate", "matches unrelated text")
    first = rules.add(JOB, [refused, steps(1)], "log agent")

    again = rules.add(JOB, [steps(1), learned("^.*$", "active"), steps(1), steps(2)], "log agent")

    assert [r.rule.id for r in again] == ["learned.2", "learned.1", "learned.2", "learned.3"]
    assert again[1] == first[0]
    assert [len(rules.history(f"learned.{n}")) for n in (1, 2, 3)] == [1, 1, 1]


def test_the_same_pattern_of_another_job_is_another_rule(rules: RuleStore) -> None:
    rules.add(JOB, [steps(1)], "log agent")
    rules.add(OTHER_JOB, [steps(1)], "log agent")

    assert [(r.rule.id, r.job) for r in rules.list()] == [("learned.1", JOB.key), ("learned.2", OTHER_JOB.key)]


def test_a_pattern_with_a_secret_never_comes_into_force(rules: RuleStore) -> None:
    secret = "sk-abcdefghij0123456789KLMN"
    (stored,) = rules.add(JOB, [learned(f"^api_key: {secret}$")], "log agent")

    assert stored.state == "retired"
    assert secret not in stored.rule.pattern
    assert "secret" in stored.reason
    assert rules.add(JOB, [learned(f"^api_key: {secret}$")], "log agent") == (stored,)


def test_in_force_are_the_active_and_shadow_rules_of_the_job_and_those_alike(rules: RuleStore) -> None:
    rules.add(JOB, [steps(1), learned("^two$", "shadow"), learned("^x$", "candidate"), learned("^y$", "retired")], "a")
    rules.add(OTHER_JOB, [steps(1), steps(9), learned("^y$"), learned("^x$"), learned("^z$", "retired")], "a")

    assert [r.rule.id for r in rules.in_force(JOB.key)] == ["learned.1", "learned.2"]
    # A pattern that the job has already counts once; what it refused or retired is not taken from another.
    assert [r.rule.id for r in rules.in_force(JOB.key, [JOB.key, OTHER_JOB.key])] == [
        "learned.1", "learned.2", "learned.6",
    ]  # fmt: skip
    assert rules.in_force("unknown") == ()
    assert rules.jobs() == (JOB, OTHER_JOB)


def test_a_job_without_rules_in_force_is_none_to_be_like(rules: RuleStore) -> None:
    rules.add(JOB, [learned("^x$", "retired")], "a")

    assert rules.jobs() == ()
    assert rules.job(JOB.key) == JOB


def test_a_job_that_nothing_was_learned_from_is_known_all_the_same(rules: RuleStore) -> None:
    assert rules.job(JOB.key) is None

    assert rules.add(JOB, [], "log agent") == ()

    assert rules.job(JOB.key) == JOB
    assert rules.rollback("ada").moved == ()


def test_counts_add_up(rules: RuleStore, clock: Callable[[], datetime]) -> None:
    rules.add(JOB, [steps(1), steps(2)], "a")

    rules.count({"learned.1": 5, "learned.2": 0, "megatron.iteration": 9, "learned.77": 1})
    rules.count({"learned.1": 2_500_000_000})

    first, second = rules.list()
    assert (first.hits, first.runs, first.last_used) == (2_500_000_005, 2, clock.now)
    assert (second.hits, second.runs, second.last_used) == (0, 0, None)


def test_a_move_says_who_and_why(rules: RuleStore) -> None:
    rules.add(JOB, [learned("^x$", "shadow")], "log agent")

    moved = rules.move("learned.1", "active", "took 400 routine lines", "ada", "approve")
    again = rules.move("learned.1", "active", "once more", "bob", "approve")

    assert moved == again
    assert (moved.state, moved.reason, moved.approved_by) == ("active", "took 400 routine lines", "ada")
    assert [(e.who, e.what, e.before, e.after) for e in rules.history("learned.1")] == [
        ("log agent", "learn", "", "shadow"),
        ("ada", "approve", "shadow", "active"),
    ]


@pytest.mark.parametrize("rule", ["learned.9", "learned.", "learned.99999999999", "megatron.iteration", ""])
def test_a_rule_that_is_not_there(rules: RuleStore, rule: str) -> None:
    for ask in (rules.get, rules.history, lambda r: rules.move(r, "retired", "", "ada", "retire")):
        with pytest.raises(NotFoundError, match="no learned rule"):
            ask(rule)


def test_filters_of_the_list(rules: RuleStore) -> None:
    rules.add(JOB, [steps(1), learned("^50%_done$", "candidate", "too SHORT")], "a")
    rules.add(OTHER_JOB, [steps(2)], "a")

    def found(**wanted: str) -> list[str]:
        return [r.rule.id for r in rules.list(**wanted)]

    assert found(job=OTHER_JOB.key) == ["learned.3"]
    assert found(state="candidate") == found(text="0%_D") == found(text="too short") == ["learned.2"]
    assert found(source="mined") == []
    assert found(text="+ of shard", source="model") == ["learned.1", "learned.3"]
    assert [r.rule.id for r in rules.list(limit=1)] == ["learned.1"]


# ------------------------------------------------------------------------------------------------ rollback
def test_the_last_change_is_taken_back_as_a_whole_then_the_one_before(rules: RuleStore) -> None:
    rules.add(JOB, [steps(1), steps(2)], "log agent")
    rules.move("learned.1", "shadow", "doubtful", "ada", "retire")
    rules.add(JOB, [steps(3), steps(4)], "log agent")

    first = rules.rollback("ada")
    assert [(r.rule.id, r.state) for r in first.moved] == [("learned.3", "retired"), ("learned.4", "retired")]
    assert first.moved[0].reason.startswith("learn by log agent of 2026-03-01 ")

    assert [(r.rule.id, r.state) for r in rules.rollback("ada").moved] == [("learned.1", "active")]
    assert [r.rule.id for r in rules.rollback("ada").moved] == ["learned.1", "learned.2"]
    assert rules.rollback("ada").moved == ()
    assert set(states(rules).values()) == {"retired"}
    assert [e.what for e in rules.history("learned.1")] == ["learn", "retire", "rollback", "rollback"]


def test_back_to_an_earlier_time(rules: RuleStore, clock) -> None:
    rules.add(JOB, [steps(1), learned("^x$", "shadow")], "log agent")
    before = clock.now + timedelta(seconds=30)
    rules.move("learned.2", "active", "", "ada", "approve")
    rules.move("learned.1", "retired", "", "ada", "retire")
    rules.add(JOB, [steps(3)], "log agent")

    done = rules.rollback("bob", before)

    assert [r.rule.id for r in done.moved] == ["learned.1", "learned.2", "learned.3"]
    assert states(rules) == {"learned.1": "active", "learned.2": "shadow", "learned.3": "retired"}
    rules.rollback("bob")  # which is a change like any other
    assert states(rules) == {"learned.1": "retired", "learned.2": "active", "learned.3": "active"}


def test_what_an_incident_retired_stays_retired(rules: RuleStore, clock) -> None:
    rules.add(JOB, [steps(1), steps(2)], "log agent")
    before = clock.now + timedelta(seconds=30)
    rules.move("learned.1", "retired", "would have hidden E1 of incident 7", "triage", "incident")
    rules.move("learned.2", "retired", "", "ada", "retire")

    to_time = rules.rollback("ada", before)
    assert ([r.rule.id for r in to_time.moved], to_time.held) == (["learned.2"], ("learned.1",))
    assert states(rules) == {"learned.1": "retired", "learned.2": "active"}

    assert [r.rule.id for r in rules.rollback("ada").moved] == ["learned.2"]  # the rollback itself
    assert [r.rule.id for r in rules.rollback("ada").moved] == ["learned.2"]  # ada's retirement, not the incident's
    last = rules.rollback("ada")  # the learning
    assert ([r.rule.id for r in last.moved], states(rules)["learned.1"]) == (["learned.2"], "retired")


# ------------------------------------------------------------------------------------------------ many at once
def test_many_processes_lose_no_count(url: str, rules: RuleStore) -> None:
    rules.add(JOB, [steps(1), steps(2)], "a")

    for worker in [processes.start("count", url, "40") for _ in range(4)]:
        processes.end(worker)

    assert [(r.hits, r.runs) for r in rules.list()] == [(320, 160), (480, 160)]


def test_processes_that_learn_the_same_at_once_make_each_rule_once(url: str, rules: RuleStore) -> None:
    for worker in [processes.start("learn", url, "12") for _ in range(3)]:
        processes.end(worker)

    found = rules.list()
    assert len(found) == len({r.rule.pattern for r in found}) == 13
    assert all(len(rules.history(r.rule.id)) == 1 for r in found)


# ------------------------------------------------------------------------------------------------ protected lines
def test_protected_are_the_cited_lines_of_incidents_that_are_no_success(url: str, rules: RuleStore) -> None:
    secret = "hf_abcdefghijABCDEFGHIJ0123"
    still = Evidence("E1", "a.log", 9, "step 400 of 9000", "context", "hang", signature="end.stood-still")
    asked = Evidence("E2", "a.log", 12, f"login failed for {secret}", "root", "auth", signature="x")
    fine = dataclasses.replace(
        ECC, outcome="healthy", evidence=(dataclasses.replace(still, text="done", signature=""),)
    )
    with IncidentStore.open(url) as incidents:
        for diagnosis in (ECC, dataclasses.replace(HUNG, evidence=(still, asked)), fine, ECC, OOM):
            incidents.record(diagnosis, as_json(diagnosis))

    found = rules.protected_lines(but=["end.stood-still"])

    cited = {e.text for d in (ECC, OOM) for e in d.evidence}
    assert cited <= set(found)
    assert set(found) - cited == {"login failed for [redacted:hf-token]"}
    assert len(found) == len(set(found))
    assert "step 400 of 9000" in rules.protected_lines()
    assert len(rules.protected_lines(limit=2)) == 2
