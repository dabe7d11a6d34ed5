"""What became of a past incident, as a weight and in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.retrieve.recorded import recorded
from triage.domain import Misled
from triage.retrieve import outcome

NOW = datetime(2026, 7, 1, tzinfo=UTC)
FRESH = recorded(7, at=NOW)


def weight(**fields: object) -> float:
    return outcome.weight(recorded(7, at=NOW, **fields), NOW, 20)


def test_a_fix_that_worked_raises_and_a_rejection_lowers() -> None:
    assert (
        weight(verdict="confirmed", worked="yes") > weight(verdict="confirmed") > weight() > weight(verdict="rejected")
    )
    assert weight(verdict="confirmed", worked="no") < weight()
    assert weight(verdict="rejected", worked="yes") == weight(verdict="rejected"), "a fix of another failure"


def test_age_takes_half_of_what_it_takes_in_one_half_life() -> None:
    def of(days: float, half_life: float = 20) -> float:
        return outcome.weight(replace(FRESH, past=replace(FRESH.past, at=NOW - timedelta(days=days))), NOW, half_life)

    assert of(0) == 1
    assert of(20) == pytest.approx((1 + outcome.OLDEST) / 2)
    assert of(7, 7) == of(20)
    assert of(36500) == pytest.approx(outcome.OLDEST), "a rare failure keeps its precedent"
    assert of(-3) == 1, "a clock that is ahead makes nothing more than new"


def test_the_knowledge_base_does_not_age() -> None:
    assert outcome.weight_known(misled=False) == 1
    assert outcome.weight_known(misled=True) < 1


@pytest.mark.parametrize("weight", [0.3, 1.0, 1.5])
def test_a_weight_keeps_the_order_and_makes_nothing_of_nothing(weight: float) -> None:
    scores = [outcome.weighted(score, weight) for score in (0.0, 0.2, 0.5, 0.9, 1.0)]
    assert scores == sorted(scores) and scores[0] == 0 and scores[-1] == 1


def test_what_turned_out_otherwise_is_a_warning() -> None:
    assert list(outcome.warnings(recorded(7))) == []
    assert list(outcome.warnings(recorded(7, verdict="rejected", note="a riser"))) == [
        "looked the same but was not: that diagnosis was rejected (a riser)"
    ]
    corrected = recorded(7, verdict="corrected", said_type="ecc-error", cause="a loose riser")
    assert list(outcome.warnings(corrected)) == ["was first taken for ecc-error but turned out to be a loose riser"]
    (typed,) = outcome.warnings(recorded(7, verdict="corrected", said_type="ecc-error", failure_type="gpu-lost"))
    assert typed == "was first taken for ecc-error but turned out to be gpu-lost", "where no cause was told"
    (caused,) = outcome.warnings(recorded(7, verdict="corrected", cause="a loose riser"))
    assert caused == "its cause turned out another than was diagnosed: a loose riser"
    (classed,) = outcome.warnings(recorded(7, verdict="corrected", root_cause_class="config-error"))
    assert classed.endswith("than was diagnosed: of class config-error")
    failed = recorded(7, verdict="confirmed", worked="no", fix="restarted")
    assert list(outcome.warnings(failed)) == ["the fix tried then did not work: restarted"]
    assert "incident 12" in outcome.misled_words(Misled(12))
    later = recorded(7, verdict="confirmed", worked="yes", fix="swapped", in_vain=("restarted", "reseated"))
    assert [words.rpartition(": ")[2] for words in outcome.warnings(later)] == ["restarted", "reseated"]


def test_what_speaks_for_it_is_said_with_its_date() -> None:
    told = recorded(
        7, verdict="confirmed", worked="yes", fix="swapped\nthe GPU", told_at=datetime(2026, 6, 3, tzinfo=UTC)
    )
    assert list(outcome.notes(told, 1, NOW)) == ["the fix worked on 2026-06-03: swapped the GPU", "seen on 2026-07-01"]
    assert list(outcome.notes(recorded(7), 12, NOW)) == ["seen 12 times, last on 2026-07-01"]


def test_long_words_of_a_person_are_cut() -> None:
    assert len(outcome.short("word " * 500)) <= 160
