"""Learned signatures on both databases: what is in force, what outcomes say, what expires, and the way back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest

from tests.store.samples import ECC, HUNG, JOB, OOM, as_json, signature, steps
from triage.domain import Evidence
from triage.errors import NotFoundError
from triage.store.incidents import IncidentStore
from triage.store.rules import RuleStore
from triage.store.signatures import SignatureStore

QUORUM = r"lattice \d+ lost its quorum"
ONE, TWO = "learned-signature.1", "learned-signature.2"


@pytest.fixture
def store(migrated: None, url: str, clock: Callable[[], datetime]) -> Iterator[SignatureStore]:
    """Beside two incidents."""
    with IncidentStore.open(url, clock) as incidents:
        for diagnosis in (ECC, HUNG):
            incidents.record(diagnosis, as_json(diagnosis))
    with SignatureStore.open(url, clock) as opened:
        yield opened


def test_what_was_added_comes_back_as_it_was(store: SignatureStore) -> None:
    given = signature(QUORUM, incident=1, who="ada", reason="held against all that is known", expires=store.until(90))

    stored = store.add(given, "ada")

    assert stored == dataclasses.replace(
        given,
        signature=dataclasses.replace(
            given.signature, id=ONE, weight=60, unless=stored.signature.unless, fingerprint=ECC.fingerprint
        ),
        created=stored.created,
    )
    assert store.get(ONE) == stored
    (event,) = store.history(ONE)
    assert (event.who, event.what, event.before, event.after) == ("ada", "learn", "", "candidate")


def test_the_same_pattern_and_type_again_is_the_one_that_is_there(store: SignatureStore) -> None:
    store.add(signature(QUORUM), "ada")
    store.move(ONE, "retired", "too wide", "ada", "retire")

    assert store.add(signature(QUORUM), "bob").state == "retired"
    assert store.add(signature(QUORUM, "storage-error"), "bob").id == TWO
    assert len(store.history(ONE)) == 2


def test_what_a_person_approved_weighs_more(store: SignatureStore) -> None:
    store.add(signature(QUORUM), "ada")

    by_outcomes = store.move(ONE, "active", "two outcomes", "triage", "confirm")
    by_ada = store.move(ONE, "active", "", "ada", "approve")

    assert (by_outcomes.signature.weight, by_outcomes.approved_by) == (60, "")
    assert (by_ada.signature.weight, by_ada.approved_by) == (75, "ada")


def test_outcomes_are_counted_once_an_incident_and_the_latest_counts(store: SignatureStore) -> None:
    store.add(signature(QUORUM, expires=store.until(90)), "ada")
    later = store.until(200)

    store.judge(1, [(ONE, "confirmed")], later)
    store.judge(1, [(ONE, "confirmed")], later)
    store.judge(2, [(ONE, "confirmed")], later)
    first = store.get(ONE)
    store.judge(2, [(ONE, "contradicted")], later)
    second = store.get(ONE)

    assert (first.confirmed, first.contradicted, first.expires) == (2, 0, later)
    assert (second.confirmed, second.contradicted) == (1, 1)
    assert store.incidents(ONE) == ((1, "confirmed"), (2, "contradicted"))


def test_a_candidate_expires_and_no_other(store: SignatureStore, url: str, clock) -> None:
    store.add(signature(QUORUM, expires=store.until(90)), "ada")
    store.add(signature("lattice gone", expires=store.until(90)), "ada")
    store.move(TWO, "active", "", "ada", "approve")

    assert store.expire() == ()
    with SignatureStore.open(url, lambda: clock() + timedelta(days=91)) as later:
        (given_up,) = later.expire()

    assert (given_up.id, given_up.state, given_up.reason) == (ONE, "retired", "nobody confirmed it in time")
    assert store.history(ONE)[-1].what == "expire"
    assert store.get(TWO).state == "active"


def test_rules_and_signatures_go_back_together(url: str, clock, store: SignatureStore) -> None:
    with RuleStore.open(url, clock) as rules:
        rules.add(JOB, [steps(1)], "log agent")
        store.add(signature(QUORUM), "ada")
        store.move(ONE, "active", "", "ada", "approve")
        rules.move("learned.1", "retired", "", "ada", "retire")

        undone = [[(thing.id, thing.state) for thing in rules.rollback("bob").moved] for _ in range(4)]
        assert undone == [
            [("learned.1", "active")], [(ONE, "candidate")], [(ONE, "retired")], [("learned.1", "retired")],
        ]  # fmt: skip
        assert store.get(ONE).approved_by == ""
        assert store.history(ONE)[-1].reason.startswith("learn by ada of ")


def test_what_an_outcome_contradicts_stays_retired(url: str, clock, store: SignatureStore) -> None:
    store.add(signature(QUORUM, state="active"), "ada")
    before = clock.now + timedelta(seconds=30)
    store.move(ONE, "retired", "incident 2 was rejected", "ada", "incident")

    with RuleStore.open(url, clock) as rules:
        assert rules.rollback("ada", before).held == (ONE,)
    assert store.get(ONE).state == "retired"


@pytest.mark.parametrize("name", ["learned-signature.9", "learned-signature.", "learned.1", "nccl.watchdog", ""])
def test_a_signature_that_is_not_there(store: SignatureStore, name: str) -> None:
    for ask in (store.get, store.history, lambda s: store.move(s, "retired", "", "ada", "retire")):
        with pytest.raises(NotFoundError, match="no learned signature"):
            ask(name)


def test_filters_of_the_list(store: SignatureStore) -> None:
    store.add(signature(QUORUM), "ada")
    store.add(signature("lattice gone", state="active", reason="SEEN twice"), "ada")

    assert [s.id for s in store.list(state="active")] == [s.id for s in store.list(text="seen t")] == [TWO]
    assert [s.id for s in store.list(source="mined", limit=1)] == [ONE]
    assert store.list(source="model") == ()


def test_no_secret_is_stored(store: SignatureStore) -> None:
    secret = "hf_abcdefghijABCDEFGHIJ0123"
    given = signature(QUORUM)
    origin = dataclasses.replace(given.origin, lines=(f"lattice 3 lost {secret}",))
    remedy = dataclasses.replace(given.signature, remedy=f"log in with {secret}")

    stored = store.add(dataclasses.replace(given, signature=remedy, origin=origin), "ada")

    assert secret not in repr(stored)


def test_a_forgotten_incident_leaves_the_signature(url: str, store: SignatureStore) -> None:
    store.add(signature(QUORUM, incident=1), "ada")
    store.judge(1, [(ONE, "confirmed")], store.until(90))

    with IncidentStore.open(url) as incidents:
        assert incidents.forget(1) == (ONE,)

    left = store.get(ONE)
    assert (left.incident, left.confirmed, left.signature.fingerprint) == (None, 0, "")


def test_cited_lines_of_healthy_and_other_incidents(url: str, store: SignatureStore) -> None:
    calm = Evidence("E1", "a.log", 9, "training done", "context", "healthy")
    with IncidentStore.open(url) as incidents:
        for diagnosis in (dataclasses.replace(OOM, outcome="healthy", evidence=(calm,)), ECC):
            incidents.record(diagnosis, as_json(diagnosis))

    assert store.cited_lines(healthy=True, roles=("root", "context")) == ("training done",)
    assert store.cited_lines(healthy=False, roles=("cascade",)) == (ECC.evidence[1].text,)
    assert len(store.cited_lines(healthy=False, roles=("root", "cascade"), limit=1)) == 1
