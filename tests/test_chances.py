"""Against sums that are written out with whole numbers."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest

from triage.chances import at_least, holm, wilson


@pytest.mark.parametrize("n", [1, 7, 60, 400])
@pytest.mark.parametrize("share", [Fraction(1, 1000), Fraction(1, 7), Fraction(1, 2), Fraction(19, 20)])
def test_the_chance_of_so_many_or_more_is_exact(n: int, share: Fraction) -> None:
    terms = [comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(n + 1)]
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        assert at_least(k, n, float(share)) == pytest.approx(float(sum(terms[k:])), rel=1e-9, abs=1e-13)


def test_the_ends() -> None:
    assert at_least(1, 10, 0.0) == 0.0
    assert at_least(10, 10, 1.0) == 1.0
    assert at_least(11, 10, 0.5) == 0.0
    assert at_least(5000, 100_000, 0.0005) < 1e-300 or at_least(5000, 100_000, 0.0005) == 0.0


def test_holm_against_its_definition() -> None:
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    chances = [random.Random(i).random() for i in range(30)]
    adjusted = holm(chances)
    assert all(a >= c for a, c in zip(adjusted, chances, strict=True))
    assert max(adjusted) <= 1.0
    assert sorted(range(30), key=chances.__getitem__) == sorted(range(30), key=lambda i: (adjusted[i], chances[i]))


@pytest.mark.parametrize(
    ("k", "n", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)]
)
def test_wilson(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k / n, n) == pytest.approx((low, high), abs=1e-4)
