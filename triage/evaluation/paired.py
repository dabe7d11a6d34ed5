"""Two answers to the same cases: what one got right that the other did not, and whether that may be chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from triage.evaluation import bootstrap
from triage.evaluation.answers import Answer
from triage.evaluation.bootstrap import Draws
from triage.evaluation.measures import Measure

_SAME = 1e-9


def per_case(measure: Measure, answers: Sequence[Answer]) -> dict[str, float]:
    """The mean of the measure over the repeats of each case that counts."""
    found: dict[str, list[float]] = defaultdict(list)
    for a in answers:
        if (value := measure(a)) is not None:
            found[a.case].append(value)
    return {case: sum(values) / len(values) for case, values in found.items()}


def better_worse(measure: Measure, before: Mapping[str, float], after: Mapping[str, float]) -> tuple[int, int]:
    """In how many cases `after` is better, and in how many worse, than `before`."""
    sign = -1 if measure.better == "lower" else 1
    steps = [sign * (after[c] - before[c]) for c in before if c in after]
    return sum(s > _SAME for s in steps), sum(s < -_SAME for s in steps)


def difference(
    measure: Measure, before: Sequence[Answer], after: Sequence[Answer], draws: Draws
) -> dict[str, Any] | None:
    """after minus before over the cases that count in both.

    {"before", "after", "value" (the difference), "low", "high" (paired bootstrap), "n", "better", "worse", "p"}.
    p: McNemar's exact test on the cases that are better or worse (a sign test where a measure lies between right and
    wrong); None for a measure that is no share of cases. better, worse, p: None where no way is better.
    None when no case counts in both.
    """
    one, two = per_case(measure, before), per_case(measure, after)
    cases = [c for c in one if c in two]
    a = draws.parts((c, one[c], 1.0) for c in cases)
    b = draws.parts((c, two[c], 1.0) for c in cases)
    found = bootstrap.ratio_difference(a, b, draws, measure.kind)
    if found is None:
        return None
    better, worse = better_worse(measure, one, two)
    counts = {"better": better, "worse": worse} if measure.better else {"better": None, "worse": None}
    tested = bool(measure.better) and measure.kind != "amount"
    return {
        "before": round(float(a.num.mean()), 6),
        "after": round(float(b.num.mean()), 6),
        **found.as_json(),
        **counts,
        "p": float(f"{bootstrap.mcnemar(better, worse):.3g}") if tested else None,
    }
