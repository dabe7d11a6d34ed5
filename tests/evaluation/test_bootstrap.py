from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from triage.evaluation.bootstrap import (
    Draws,
    Labels,
    macro_f1,
    macro_f1_difference,
    mcnemar,
    quantile,
    ratio,
    ratio_difference,
    wilson,
)


def _parts(draws: Draws, values: dict[str, float]):
    return draws.parts((case, value, 1.0) for case, value in values.items())


def test_every_draw_holds_as_many_cases_as_there_are_and_the_seed_decides_which() -> None:
    draws = Draws("abcd", 50, seed=3)
    assert draws.counts.shape == (50, 4)
    assert (draws.counts.sum(axis=1) == 4).all()
    assert (draws.counts == Draws("abcd", 50, seed=3).counts).all()
    assert (draws.counts != Draws("abcd", 50, seed=4).counts).any()


def test_the_interval_of_two_cases_is_that_of_the_four_possible_draws() -> None:
    """One right, one wrong: draws give 0 (1/4), 0.5 (1/2), 1 (1/4), so 2.5 % and 97.5 % are 0 and 1."""
    draws = Draws("ab", 4000)
    found = ratio(_parts(draws, {"a": 1, "b": 0}), draws, "mean")
    assert found is not None
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.0, 1.0, 2)
    shares = draws.counts @ np.array([1.0, 0.0]) / 2
    assert [float((shares == x).mean()) for x in (0, 0.5, 1)] == pytest.approx([0.25, 0.5, 0.25], abs=0.03)


def test_the_interval_of_a_mean_is_near_the_normal_one() -> None:
    """60 of 100 right: 0.6 +- 1.96 * sqrt(0.6 * 0.4 / 100) = 0.504 .. 0.696."""
    cases = [str(i) for i in range(100)]
    draws = Draws(cases, 5000)
    found = ratio(_parts(draws, {c: float(i < 60) for i, c in enumerate(cases)}), draws, "mean")
    assert found is not None and found.low == pytest.approx(0.504, abs=0.015)
    assert found.high == pytest.approx(0.696, abs=0.015)


def test_repeats_of_a_case_count_as_one_case() -> None:
    """Two cases with ten equal repeats each know as much as two cases, not twenty."""
    draws = Draws("ab", 2000)
    rows = [(case, value, 1.0) for case, value in (("a", 1.0), ("b", 0.0)) for _ in range(10)]
    mean, share = ratio(draws.parts(rows), draws, "mean"), ratio(draws.parts(rows), draws)
    assert mean is not None and share is not None
    assert (mean.value, mean.low, mean.high, mean.n) == (0.5, 0.0, 1.0, 2)
    assert (share.value, share.low, share.high, share.n) == (0.5, *wilson(0.5, 2), 2)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    # (p + z2/2n -+ z sqrt(p(1-p)/n + z2/4n2)) / (1 + z2/n); 0 of n gives z2 / (n + z2): 3.8415 / 18.8415 = 0.2039
    [(3, 15, 0.0705, 0.4519), (0, 15, 0.0, 0.2039), (20, 20, 0.8389, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_a_share_has_wilsons_interval_whatever_was_drawn(hits: int, n: int, low: float, high: float) -> None:
    """81 of 263: Newcombe (1998), method 3: 0.2553 to 0.3662."""
    cases = [str(i) for i in range(n)]
    for seed in (1, 2):
        draws = Draws([*cases, "not labelled"], seed=seed)
        found = ratio(_parts(draws, {c: float(i < hits) for i, c in enumerate(cases)}), draws)
        assert found is not None
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_a_share_that_one_heavy_case_decides_is_as_unsure_as_few_cases() -> None:
    """Weights 9, 1: (9 + 1)^2 / (81 + 1) = 1.22 cases."""
    draws = Draws("ab")
    found = ratio(draws.parts([("a", 9.0, 9.0), ("b", 0.0, 1.0)]), draws)
    assert found is not None and (found.low, found.high) == pytest.approx(wilson(0.9, 100 / 82))


def test_what_is_no_share_keeps_its_own_interval() -> None:
    draws = Draws("abc")
    found = ratio(_parts(draws, dict.fromkeys("abc", 0.0)), draws, "amount")
    assert found is not None and (found.low, found.high) == (0.0, 0.0)


def test_weights_move_the_value_to_the_heavy_case() -> None:
    """(1 * 900 + 0 * 100) / 1000."""
    draws = Draws("ab")
    found = ratio(draws.parts([("a", 900.0, 900.0), ("b", 0.0, 100.0)]), draws)
    assert found is not None and found.value == pytest.approx(0.9)


def test_nothing_labelled_is_no_figure() -> None:
    draws = Draws("ab")
    assert ratio(draws.parts([]), draws) is None
    assert quantile(draws.parts([]).case, draws.parts([]).num, 0.5, draws) is None
    assert ratio(Draws([]).parts([]), Draws([])) is None


def test_draws_without_a_counting_case_are_left_out() -> None:
    """Only one of five cases is labelled: about a third of the draws hold none of it."""
    draws = Draws("abcde")
    found = ratio(_parts(draws, {"a": 1.0}), draws)
    assert found is not None and found.value == 1.0 and found.n == 1 and not math.isnan(found.low or math.nan)


@pytest.mark.parametrize("q", [0.5, 0.95, 0.0, 1.0])
def test_quantiles_over_draws_are_those_of_the_records_laid_out(q: float) -> None:
    values = np.array([5.0, 1.0, 9.0, 2.0, 2.0, 40.0])
    names = ["a", "b", "c", "d", "e", "e"]  # e has two repeats
    draws = Draws(names, 300, seed=1)
    case = np.array([draws.index[n] for n in names])
    found = quantile(case, values, q, draws)
    laid_out = [np.quantile(np.repeat(values, draws.counts[i].astype(int)[case]), q) for i in range(300)]
    assert found is not None and found.value == np.quantile(values, q)
    assert (found.low, found.high) == tuple(np.quantile(laid_out, (0.025, 0.975)))


def test_macro_f1_by_hand() -> None:
    """want a a a b, got a a b b: a has TP 2, wanted 3, given 2: F1 4/5; b has TP 1, wanted 1, given 2: F1 2/3."""
    draws = Draws("1234")
    found = macro_f1(Labels.of(np.arange(4), list("aaab"), list("aabb")), draws)
    assert found is not None and found.value == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_macro_f1_counts_only_wanted_labels_but_a_stray_answer_costs_its_own() -> None:
    """want a b, got a z: a has F1 1, b has 0, z is no row of its own."""
    draws = Draws("12")
    found = macro_f1(Labels.of(np.arange(2), list("ab"), list("az")), draws)
    assert found is not None and found.value == 0.5


def test_macro_f1_is_resampled_as_if_each_draw_were_a_set_of_its_own() -> None:
    want, got = list("aabbc"), list("abbbc")
    draws = Draws("12345", 200, seed=5)
    found = macro_f1(Labels.of(np.arange(5), want, got), draws)
    by_hand = []
    for counts in draws.counts.astype(int):
        drawn = [pair for pair, k in zip(zip(want, got, strict=True), counts, strict=True) for _ in range(k)]
        scores = []
        for label in {w for w, _ in drawn}:
            hit = sum(w == g == label for w, g in drawn)
            scores.append(2 * hit / (sum(w == label for w, _ in drawn) + sum(g == label for _, g in drawn)))
        by_hand.append(sum(scores) / len(scores))
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(by_hand, (0.025, 0.975))))


def test_perfect_macro_f1_leaves_the_doubt_of_so_few_cases() -> None:
    found = macro_f1(Labels.of(np.arange(3), list("abc"), list("abc")), Draws("123"))
    assert found is not None and (found.value, found.high) == (1.0, 1.0) and (found.low or 1) < 0.5


def test_a_paired_difference_is_surer_than_two_intervals() -> None:
    """Two answers that differ in one of 40 cases: hardly any doubt about the difference, much about each."""
    cases = [str(i) for i in range(40)]
    draws = Draws(cases, 2000)
    a = _parts(draws, {c: float(i < 20) for i, c in enumerate(cases)})
    b = _parts(draws, {c: float(i < 21) for i, c in enumerate(cases)})
    found, one = ratio_difference(a, b, draws), ratio(a, draws, "mean")
    assert found is not None and one is not None
    assert found.value == pytest.approx(1 / 40) and found.low == 0.0 and found.high == pytest.approx(3 / 40, abs=0.026)
    assert (one.high or 0) - (one.low or 0) > 3 * ((found.high or 0) - (found.low or 0))


def test_a_paired_difference_of_macro_f1() -> None:
    draws = Draws("1234")
    worse = Labels.of(np.arange(4), list("aabb"), list("abbb"))
    perfect = Labels.of(np.arange(4), list("aabb"), list("aabb"))
    found = macro_f1_difference(worse, perfect, draws)
    assert found is not None
    assert found.value == pytest.approx(1 - (2 / 3 + 4 / 5) / 2) and (found.low or 0) >= 0


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (6, 0, 2 / 64), (3, 3, 1.0), (8, 1, 2 * (1 + 9) / 512)],
)
def test_mcnemar_is_the_coin_toss(better: int, worse: int, p: float) -> None:
    assert mcnemar(better, worse) == pytest.approx(p)
    assert mcnemar(worse, better) == pytest.approx(p)


def test_mcnemar_by_enumeration() -> None:
    """All 2**10 ways in which ten coins fall: as far from even as 8 to 2, or farther."""
    far = sum(abs(2 * sum(toss) - 10) >= 6 for toss in itertools.product((0, 1), repeat=10))
    assert mcnemar(8, 2) == pytest.approx(far / 2**10)


@pytest.mark.parametrize("n", [1, 3, 40])
def test_no_interval_of_a_share_or_mean_is_without_width(n: int) -> None:
    """Whatever all cases have in common: none, all, half over repeats; alone and as a difference."""
    draws = Draws(map(str, range(n)))
    none, full = (draws.parts((str(i), x, 1.0) for i in range(n)) for x in (0.0, 1.0))
    half = draws.parts((str(i), x, 1.0) for i in range(n) for x in (0.0, 1.0))
    for kind in ("share", "mean"):
        for parts in (none, full, half):
            found = ratio(parts, draws, kind)
            assert found is not None and 0 <= (found.low or 0) < (found.high or 0) <= 1
        for a, b, value in ((none, none, 0.0), (none, full, 1.0), (full, none, -1.0), (half, full, 0.5)):
            change = ratio_difference(a, b, draws, kind)
            assert change is not None and change.value == value
            assert -1 <= (change.low or 0) < (change.high or 0) <= 1
            assert (change.low or 0) <= value <= (change.high or 0)
    wrong = Labels.of(np.arange(n), ["a"] * n, ["b"] * n)
    f1 = macro_f1(wrong, draws)
    assert f1 is not None and (f1.low, f1.high) == pytest.approx(wilson(0.0, n))
    same = macro_f1_difference(wrong, wrong, draws)
    assert same is not None and (same.low or 0) < 0 < (same.high or 0)


def test_one_case_has_no_interval_of_seconds() -> None:
    draws = Draws("a")
    parts = _parts(draws, {"a": 3.0})
    for found in (ratio(parts, draws, "amount"), quantile(parts.case, parts.num, 0.5, draws)):
        assert found is not None and found.as_json() == {"value": 3.0, "low": None, "high": None, "n": 1}
    change = ratio_difference(parts, parts, draws, "amount")
    assert change is not None and (change.as_json()["low"], change.as_json()["high"]) == (None, None)
