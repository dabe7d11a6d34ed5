"""Intervals and paired tests. Pure numpy over numbers; nothing here knows what a metric means.

A share of yes/no answers has Wilson's interval, which depends on the counts alone; everything else is resampled.
A case is the unit: its repeats are drawn together, as they are not independent of each other. One set of draws serves
all the metrics of a set of cases, so that two answers to the same cases are compared on the same draws (paired).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from triage.chances import wilson

LEVEL = 0.95
COUNT = 1000
# share: the part of the cases for which something holds; mean: an average of values in 0..1; amount: of any values.
Kind = Literal["share", "mean", "amount"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval (LEVEL, two-sided); n: cases that counted. No interval: low and high are None."""

    value: float
    low: float | None
    high: float | None
    n: int

    def as_json(self) -> dict[str, Any]:
        return {"value": _round(self.value), "low": _round(self.low), "high": _round(self.high), "n": self.n}


@dataclass(frozen=True, slots=True)
class Parts:
    """One metric over records: the figure is sum(num) / sum(den). case: index of the record's case in the draws."""

    case: Ints
    num: Floats
    den: Floats


class Draws:
    """Cases drawn with replacement, `count` times. counts[i, j]: how often draw i holds case j."""

    def __init__(self, cases: Iterable[str], count: int = COUNT, seed: int = 0) -> None:
        self.index = {name: i for i, name in enumerate(dict.fromkeys(cases))}
        n = len(self.index)
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=count) if n else np.zeros((count, 0))
        self._by_case: Floats = np.ascontiguousarray(drawn.T, dtype=np.float64)  # most sums need few of the cases
        self.counts: Floats = self._by_case.T

    def parts(self, rows: Iterable[tuple[str, float, float]]) -> Parts:
        """rows: case, numerator, denominator."""
        found = list(rows)
        case = np.array([self.index[c] for c, _, _ in found], dtype=np.int64)
        num = np.array([float(x) for _, x, _ in found])
        return Parts(case, num, np.array([float(x) for _, _, x in found]))

    def rows(self, case: Ints) -> Floats:
        """How often each record is drawn: (draws, records)."""
        return self._by_case[case].T

    def sums(self, case: Ints, values: Floats) -> Floats:
        """The sum of the values of the records drawn, for each draw."""
        each = np.bincount(case, values, minlength=len(self.index))
        some = np.flatnonzero(each)
        found: Floats = each[some] @ (self._by_case if len(some) == len(each) else self._by_case[some])
        return found


def ratio(parts: Parts, draws: Draws, kind: Kind = "share") -> Estimate | None:
    """sum(num) / sum(den) with its interval; None when nothing counts.

    A share has Wilson's interval. A mean and an amount have that of the draws; where all cases have the same mean,
    resampling sees no doubt at all, and Wilson's stands in. The amount of one case has none.
    """
    total = float(parts.den.sum())
    if total <= 0:
        return None
    value = float(parts.num.sum()) / total
    weights = np.bincount(parts.case, parts.den)
    weights = weights[weights > 0]
    low, high = (math.nan, math.nan) if kind == "share" else interval(ratios(parts, draws))
    if kind == "share" or (kind == "mean" and _same(low, high)):
        low, high = wilson(value, _effective(weights))
    elif kind == "amount" and len(weights) == 1:
        low = high = math.nan
    return Estimate(value, low, high, len(weights))


def _same(low: float, high: float) -> bool:
    return math.isclose(low, high, abs_tol=1e-9)


def _effective(weights: npt.NDArray[Any]) -> float:
    """How many cases of equal weight tell as much (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def ratio_difference(a: Parts, b: Parts, draws: Draws, kind: Kind = "share") -> Estimate | None:
    """b minus a on the same draws. n: cases that count in both."""
    one, two = ratio(a, draws, "amount"), ratio(b, draws, "amount")
    if one is None or two is None:
        return None
    n = len(np.intersect1d(a.case, b.case))
    drawn = interval(ratios(b, draws) - ratios(a, draws))
    return Estimate(two.value - one.value, *_widened(two.value - one.value, drawn, n, kind), n)


def _widened(difference: float, drawn: tuple[float, float], n: int, kind: Kind) -> tuple[float, float]:
    """Where all cases differ alike, resampling sees no doubt: of n more cases, so many could still differ otherwise."""
    if not _same(*drawn):
        return drawn
    if kind == "amount":
        return drawn if n > 1 else (math.nan, math.nan)
    _, others = wilson(0.0, n)
    reach = others * (1 + abs(difference))  # one case more or less moves a difference of 1 by 2
    return max(-1.0, difference - reach), min(1.0, difference + reach)


def ratios(parts: Parts, draws: Draws) -> Floats:
    """The ratio in each draw; NaN where a draw holds no case that counts."""
    den = draws.sums(parts.case, parts.den)
    num = draws.sums(parts.case, parts.num)
    found: Floats = np.divide(num, den, out=np.full_like(den, np.nan), where=den > 0)
    return found


def interval(values: Floats) -> tuple[float, float]:
    """The percentile interval of what the draws gave, empty draws left out."""
    seen = values[~np.isnan(values)]
    if not len(seen):
        return math.nan, math.nan
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(seen, (tail, 1 - tail))
    return float(low), float(high)


def quantile(case: Ints, values: Floats, q: float, draws: Draws) -> Estimate | None:
    """The q-quantile (linear between neighbours) over records, and its interval."""
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    upto = np.cumsum(draws.rows(case[order]), axis=1)  # records drawn up to each value
    place = q * (upto[:, -1] - 1)
    lower, upper = _at(ordered, upto, np.floor(place)), _at(ordered, upto, np.ceil(place))
    drawn = lower + (upper - lower) * (place - np.floor(place))
    drawn[upto[:, -1] == 0] = np.nan
    low, high = interval(drawn)
    n = len(np.unique(case))
    if n == 1:
        low = high = math.nan
    return Estimate(float(np.quantile(values, q)), low, high, n)


def _at(ordered: Floats, upto: Floats, place: Floats) -> Floats:
    """The value at a 0-based place of each draw, if its records were laid out one by one."""
    behind = (upto <= place[:, None]).sum(axis=1)
    found: Floats = ordered[np.minimum(behind, len(ordered) - 1)]
    return found


# ------------------------------------------------------------------------------------------------ macro-F1
@dataclass(frozen=True, slots=True)
class Labels:
    """want and got of each record, as numbers of one list of labels; -1 in got: a label that is never wanted."""

    case: Ints
    want: Ints
    got: Ints

    @classmethod
    def of(cls, case: Ints, want: Sequence[str], got: Sequence[str]) -> Labels:
        index = {label: i for i, label in enumerate(sorted(set(want)))}
        return cls(case, np.array([index[w] for w in want]), np.array([index.get(g, -1) for g in got]))


def macro_f1(labels: Labels, draws: Draws) -> Estimate | None:
    """The mean of the F1 of each wanted label; in a draw, of each label that the draw holds."""
    if not len(labels.want):
        return None
    value = _macro_f1(labels, np.ones((1, len(labels.want))))[0]
    low, high = interval(_macro_f1(labels, draws.rows(labels.case)))
    n = len(np.unique(labels.case))
    if _same(low, high):
        low, high = wilson(float(value), n)
    return Estimate(float(value), low, high, n)


def macro_f1_difference(a: Labels, b: Labels, draws: Draws) -> Estimate | None:
    """b minus a on the same draws."""
    one, two = macro_f1(a, draws), macro_f1(b, draws)
    if one is None or two is None:
        return None
    drawn = interval(_macro_f1(b, draws.rows(b.case)) - _macro_f1(a, draws.rows(a.case)))
    return Estimate(two.value - one.value, *_widened(two.value - one.value, drawn, two.n, "mean"), two.n)


def _macro_f1(labels: Labels, weight: Floats) -> Floats:
    kinds = np.arange(labels.want.max() + 1)
    wanted = (labels.want[:, None] == kinds).astype(np.float64)
    given = (labels.got[:, None] == kinds).astype(np.float64)
    gold, said, both = weight @ wanted, weight @ given, weight @ (wanted * given)
    f1 = np.divide(2 * both, gold + said, out=np.zeros_like(gold), where=gold + said > 0)
    present = (gold > 0).sum(axis=1)
    total = np.where(gold > 0, f1, 0).sum(axis=1)
    found: Floats = np.divide(total, present, out=np.full(len(total), np.nan), where=present > 0)
    return found


# ------------------------------------------------------------------------------------------------ paired test
def mcnemar(better: int, worse: int) -> float:
    """The exact two-sided p of McNemar's test: cases that only one of two got right, tossed like a coin."""
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return min(1.0, float(2 * tail / 2**n))


def _round(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 6)
