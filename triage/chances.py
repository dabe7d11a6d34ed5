"""Intervals and tests for counts. Pure, and without numpy, which costs more to load than a database takes to answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

Z = 1.959963984540054  # 95 %


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's score interval for a share seen in n cases; n may be an effective number."""
    square = Z**2 / n
    middle = (share + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return (0.0 if share <= 0 else middle - half), (1.0 if share >= 1 else middle + half)


def at_least(k: int, n: int, share: float) -> float:
    """The chance of k or more of n, each with this chance; exact but for rounding."""
    if k <= 0:
        return 1.0
    if share <= 0 or k > n:
        return 0.0
    if share >= 1:
        return 1.0
    if k <= n * share:  # the other side is the shorter sum
        return max(0.0, 1.0 - _sum_up(n - k + 1, n, 1 - share))
    return _sum_up(k, n, share)


def _sum_up(k: int, n: int, share: float) -> float:
    """P(X >= k) for k above the mean, where each term is smaller than the one before."""
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    term = math.exp(choose + k * math.log(share) + (n - k) * math.log1p(-share))
    odds, total = share / (1 - share), 0.0
    for i in range(k, n + 1):
        total += term
        if term < total * 1e-17:
            break
        term *= (n - i) / (i + 1) * odds
    return min(total, 1.0)


def holm(chances: Sequence[float]) -> list[float]:
    """Each chance as it counts when all are asked at once: below 0.05 in one such set of twenty by accident, whatever depends on what."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted, least = [0.0] * len(chances), 0.0
    for place, at in enumerate(order):
        least = max(least, min(1.0, chances[at] * (len(chances) - place)))
        adjusted[at] = least
    return adjusted
