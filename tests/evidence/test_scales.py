"""A dynamic loss scale that ran out."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.helpers import lines
from triage.evidence.scales import run_out

APEX = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}"
FAIRSEQ = "2021-05-01 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: {}"
DEEPSPEED = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to {}"


def fall(begin: float, end: float, form: str = APEX) -> Iterable[str]:
    while begin >= end:
        yield form.format(begin)
        begin /= 2


@pytest.mark.parametrize("form", [APEX, FAIRSEQ, DEEPSPEED])
def test_the_fall_began_where_the_scale_was_last_whole(form: str) -> None:
    routine = [*fall(2.0**20, 2.0**17, form), "step 900 loss 2.1"]
    found = run_out(lines("\n".join([*routine, *fall(2.0**18, 1e-12, form)])))
    assert found is not None and found.number == len(routine) + 1


def test_a_scale_that_is_let_go_to_nothing_ran_out() -> None:
    assert run_out(lines("\n".join([*fall(1e-4, 1e-7), APEX.format("0.0")]))) is not None


@pytest.mark.parametrize(
    "texts",
    [
        [*fall(2.0**24, 2.0**10)],
        [*fall(2.0**16, 1.0), *fall(2.0**16, 1.0)],
        [APEX.format("1e-07")],
        ["reducing to 0.0 the weight of the penalty"] * 9,
        ["reducing to 10.0.0.1 the scale of addresses"] * 9,
    ],
)
def test_routine_overflows_are_none(texts: list[str]) -> None:
    assert run_out(lines("\n".join(texts))) is None
