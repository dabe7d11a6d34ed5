"""Counts over incidents, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.store.samples import ECC, HUNG, OOM, as_json
from triage.domain import Suspects
from triage.store.incidents import IncidentStore
from triage.store.stats import Group, NodeCount, Share
from triage.store.values import Filters, JobRef, Verdict

WELL = replace(OOM, outcome="healthy", failure_type="healthy", root_cause_class="none", status="established")


@pytest.fixture
def clock():
    """A day later at each look; begins on a Thursday."""
    days = iter(range(100))
    return lambda: datetime(2026, 2, 26, 23, 30, tzinfo=UTC) + timedelta(days=next(days))


@pytest.fixture
def five(store: IncidentStore) -> IncidentStore:
    timed = replace(ECC, timing={"read": 1.0, "judge": 0.5}, suspects=Suspects(nodes=("gpu-017",)), evidence=())
    for d, job in (
        (timed, JobRef("1", owner="ada", gpu_hours=10.0, nodes=("gpu-017", "gpu-018"))),
        (timed, JobRef("2", owner="ada", gpu_hours=5.5, nodes=("gpu-017",))),
        (OOM, JobRef("3", owner="bob")),
        (HUNG, None),
        (WELL, JobRef("4", owner="bob", nodes=("gpu-018", "gpu-017"))),
    ):
        store.record(d, as_json(d), job)
    return store


def test_what_is_counted(five: IncidentStore) -> None:
    s = five.stats()

    assert (s.jobs, s.attempts) == (5, 5)
    assert s.outcomes == (Group("failed", 3, 15.5), Group("healthy", 1, None), Group("hung", 1, None))
    assert s.types == (Group("ecc-error", 2, 15.5), Group("hang", 1, None), Group("out-of-memory", 1, None))
    assert s.classes == (Group("hardware-failure", 2, 15.5), Group("resource-exhaustion", 2, None))
    assert s.owners == (Group("ada", 2, 15.5), Group("", 1, None), Group("bob", 1, None))
    assert s.weeks == (Group("2026-02-23", 4, 15.5),)  # the healthy job is no incident
    assert s.nodes == (NodeCount("gpu-017", 2, 3), NodeCount("gpu-018", 0, 2))
    assert (s.named, s.well_named) == (3, 1)
    assert (s.timed, s.median, s.most) == (2, 1.5, 1.5)
    assert (s.confirmed, s.no_human, s.by_status) == (Share(0, 0), Share(0, 0), {})


def test_weeks_begin_on_monday_in_utc(store: IncidentStore) -> None:
    for _ in range(5):
        store.record(OOM, as_json(OOM))  # Thursday to Monday, each at 23:30

    assert [(g.name, g.incidents) for g in store.stats().weeks] == [("2026-02-23", 4), ("2026-03-02", 1)]


def test_accuracy_by_what_turned_out(five: IncidentStore) -> None:
    five.resolve(1, Verdict("rejected", "ada"))
    five.resolve(1, Verdict("confirmed", "ada", worked="yes", via="next-run"))
    five.resolve(2, Verdict("corrected", "ada", failure_type="nvlink-error", worked="yes"))
    five.resolve(3, Verdict("corrected", "bob", cause="another tenant", root_cause_class="software-bug"))
    five.resolve(4, Verdict("rejected", "bob"))

    s = five.stats()

    assert s.confirmed == Share(1, 4)
    assert s.type_right == Share(2, 4)
    assert s.class_right == Share(1, 3)  # of the second nobody said the class
    assert s.by_status == {"established": Share(1, 2), "supported": Share(0, 2)}
    assert s.no_human == Share(1, 2)
    assert {Group("ecc-error", 1, 10.0), Group("nvlink-error", 1, 5.5)} <= set(s.types)  # what it truly was


def test_a_verdict_judges_the_reading_that_it_was_said_of(five: IncidentStore) -> None:
    five.resolve(3, Verdict("corrected", "ada", failure_type="ecc-error", root_cause_class="hardware-failure"))
    five.revise(3, ECC, as_json(ECC))  # right at the second time, which nobody said

    assert five.stats().type_right == Share(0, 1)


@pytest.mark.parametrize(
    ("filters", "jobs"),
    [
        ({"failure_type": "ecc-error"}, 2),
        ({"owner": "bob"}, 2),
        ({"node": "gpu-018"}, 2),
        ({"job": "3"}, 1),
        ({"verdict": "none"}, 5),
        ({"since": datetime(2026, 3, 1, tzinfo=UTC)}, 2),
        ({"until": datetime(2026, 3, 1, tzinfo=UTC)}, 3),
        ({"text": "rank 7"}, 1),
        ({"status": "unknown"}, 0),
    ],
)
def test_filters(five: IncidentStore, filters: dict[str, object], jobs: int) -> None:
    assert five.stats(Filters(**filters)).jobs == jobs


@pytest.mark.parametrize(
    ("days", "counted"),
    [
        ({"since": 27}, (4, 1, 1.5, Share(1, 2), (2, 1), (NodeCount("gpu-017", 1, 2), NodeCount("gpu-018", 0, 1)))),
        ({"since": 28}, (3, 0, None, Share(0, 1), (1, 1), (NodeCount("gpu-017", 0, 1), NodeCount("gpu-018", 0, 1)))),
        ({"until": 28}, (2, 2, 1.5, Share(1, 1), (2, 0), (NodeCount("gpu-017", 2, 2), NodeCount("gpu-018", 0, 1)))),
        ({"until": 27}, (1, 1, 1.5, Share(0, 0), (1, 0), (NodeCount("gpu-017", 1, 1), NodeCount("gpu-018", 0, 1)))),
    ],
)
def test_a_span_of_time_chooses_in_all_counts(
    five: IncidentStore, days: dict[str, int], counted: tuple[object, ...]
) -> None:
    five.resolve(2, Verdict("confirmed", "ada"))
    five.resolve(3, Verdict("rejected", "bob"))

    s = five.stats(Filters(**{side: datetime(2026, 2, day, tzinfo=UTC) for side, day in days.items()}))

    assert (s.attempts, s.timed, s.median, s.confirmed, (s.named, s.well_named), s.nodes) == counted


def test_a_filter_of_failures_leaves_the_jobs_that_ran(five: IncidentStore) -> None:
    s = five.stats(Filters(failure_type="ecc-error", owner="ada"))
    assert s.nodes == (NodeCount("gpu-017", 2, 2), NodeCount("gpu-018", 0, 1))
    assert s.well_named == 0
    assert five.stats(Filters(failure_type="hang")).nodes == (NodeCount("gpu-018", 0, 2), NodeCount("gpu-017", 0, 3))


def test_to_confirm_that_nothing_is_known_is_no_right_answer(store: IncidentStore) -> None:
    dark = replace(ECC, failure_type="unknown", root_cause_class="unknown", status="unknown")
    store.record(dark, as_json(dark))
    store.resolve(1, Verdict("confirmed", "ada"))
    s = store.stats()
    assert (s.confirmed, s.type_right, s.class_right) == (Share(1, 1), Share(0, 1), Share(0, 1))


def test_nothing(store: IncidentStore) -> None:
    s = store.stats()
    assert (s.jobs, s.types, s.median, s.nodes) == (0, (), None, ())
