"""What fixed it last time, as a step."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from triage.diagnose.precedent import with_precedent
from triage.domain import Diagnosis, Remedy, Similar

LOOK, ACT = Remedy("Look at the counters", "", "read-only"), Remedy("Restart the job", "", "reversible")
SIMILAR = Similar(
    "17", "ECC error", 0.9, "same fingerprint", "confirmed", fix="swapped\nGPU 3", worked="yes",
    told_at=datetime(2026, 6, 3, tzinfo=UTC), same_fingerprint=True,
)  # fmt: skip
RESULT = Diagnosis(
    "failed", "ecc-error", "infrastructure", "hardware-failure", "established", "A GPU failed.", "restart-excluding",
    chain=("E2", "E3"), remediation=(LOOK, ACT, LOOK), similar=(SIMILAR,),
)  # fmt: skip


def test_it_stands_after_the_looking_and_before_what_changes_something() -> None:
    steps = with_precedent(RESULT).remediation
    assert [step.step for step in steps] == [
        LOOK.step, "Do what fixed it last time: swapped GPU 3", ACT.step, LOOK.step,
    ]  # fmt: skip
    assert (steps[1].incidents, steps[1].evidence, steps[1].risk) == (("17",), ("E2",), "reversible")
    assert steps[1].why == "incident 17 failed in the same way, and this was said to have worked on 2026-06-03"
    assert steps[1].command == "", "a person's words are no command"


def test_what_a_signature_learned_of_it_is_not_said_twice() -> None:
    taught = Remedy("as done in incident 17: swapped GPU 3", "", "reversible")
    steps = with_precedent(replace(RESULT, remediation=(LOOK, taught, ACT))).remediation
    assert [step.step for step in steps] == [LOOK.step, "Do what fixed it last time: swapped GPU 3", ACT.step]


@pytest.mark.parametrize(
    "change",
    [{"same_fingerprint": False}, {"worked": "no"}, {"worked": "unknown"}, {"outcome": "rejected"}, {"fix": " "}],
    ids=str,
)
def test_only_a_fix_of_the_same_failure_that_worked_is_proposed(change: dict[str, object]) -> None:
    result = replace(RESULT, similar=(replace(SIMILAR, **change),))  # type: ignore[arg-type]
    assert with_precedent(result) is result


@pytest.mark.parametrize("fix", ["rm -rf the cache", "deleted the shard", "Killed the leftover process", "reimaged it"])
def test_what_cannot_be_taken_back_is_told_so(fix: str) -> None:
    (step,) = with_precedent(replace(RESULT, remediation=(), similar=(replace(SIMILAR, fix=fix),))).remediation
    assert step.risk == "destructive"
