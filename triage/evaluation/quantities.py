"""What a run costs and keeps, over its records: bytes, seconds, memory, tokens, valid citations, steadiness over repeats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from triage.evaluation import bootstrap
from triage.evaluation.answers import Answer
from triage.evaluation.bootstrap import Draws, Estimate, Kind
from triage.evaluation.measures import Measure, type_accepted

Quantity = Callable[[Sequence[Answer], Draws], Estimate | None]


def bytes_removed(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """The share of the log's bytes that compression leaves out: the median over cases."""
    return _quantile(answers, draws, _removed, 0.5)


def decisive_kept(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """Of a case's decisive ranges, the share of which a line is in the compressed log: the mean over cases."""
    return _mean(answers, draws, _kept, "mean")


def citation_valid(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """Of all lines cited, the share that exist and whose text is in that line of the file."""
    rows = []
    for a in answers:
        found = a.record.get("citations")
        cited = _number(found.get("cited")) if isinstance(found, Mapping) else None
        if cited and isinstance(found, Mapping):
            rows.append((a.case, _number(found.get("valid")) or 0.0, cited))
    return bootstrap.ratio(draws.parts(rows), draws, "mean")


def seconds_median(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """Seconds of wall time a case: the median."""
    return _quantile(answers, draws, seconds, 0.5)


def seconds_p95(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """Seconds of wall time a case: the 95th percentile."""
    return _quantile(answers, draws, seconds, 0.95)


def peak_mb_max(answers: Sequence[Answer], draws: Draws) -> Estimate | None:  # noqa: ARG001 - one shape for all
    """The highest peak of memory of a case, in MB. A maximum has no interval."""
    found = [x for x in map(peak_mb, answers) if x is not None]
    return Estimate(max(found), None, None, len(found)) if found else None


def tokens(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """Tokens to and from the model a case: the mean over answers."""
    return _mean(answers, draws, _tokens)


def cost(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """What the model cost a case, in the currency of the settings: the mean over answers that say it."""
    return _mean(answers, draws, lambda a: _number(_usage(a).get("cost")))


def pass_at_1(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """With repeats: the chance that one try is accepted (type_accepted), the mean over cases."""
    tries = _tries(answers)
    if not _repeated(tries):
        return None
    return bootstrap.ratio(draws.parts((c, _accepted_share(t), 1.0) for c, t in tries.items()), draws, "mean")


def spread(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """With repeats: the standard deviation of type_accepted from one repeat of the whole run to the next."""
    if not _repeated(_tries(answers)):
        return None
    rounds: dict[int, list[tuple[str, float, float]]] = defaultdict(list)
    for a in answers:
        if (value := _accepted(a)) is not None:
            rounds[a.repeat].append((a.case, value, 1.0))
    parts = [draws.parts(rows) for rows in rounds.values()]
    if len(parts) < 2:
        return None
    drawn = np.std([bootstrap.ratios(p, draws) for p in parts], axis=0, ddof=1)
    value = np.std([p.num.sum() / p.den.sum() for p in parts], ddof=1)
    low, high = bootstrap.interval(drawn)
    return Estimate(float(value), low, high, len({a.case for a in answers}))


def flips(answers: Sequence[Answer], draws: Draws) -> Estimate | None:
    """With repeats: the share of cases whose tries do not all name the same failure type."""
    tries = {c: t for c, t in _tries(answers).items() if len(t) > 1}
    rows = [(c, float(len({a.failure_type for a in t}) > 1), 1.0) for c, t in tries.items()]
    return bootstrap.ratio(draws.parts(rows), draws) if rows else None


# name -> what measures it, which way is better, the kind of its interval ("": it has none)
QUANTITIES: Mapping[str, tuple[Quantity, str, Kind | Literal[""]]] = {
    "citation_valid": (citation_valid, "higher", "mean"),
    "bytes_removed": (bytes_removed, "higher", "amount"),
    "decisive_kept": (decisive_kept, "higher", "mean"),
    "seconds_median": (seconds_median, "lower", "amount"),
    "seconds_p95": (seconds_p95, "lower", "amount"),
    "peak_mb_max": (peak_mb_max, "lower", ""),
    "tokens": (tokens, "lower", "amount"),
    "cost": (cost, "lower", "amount"),
    "pass_at_1": (pass_at_1, "higher", "mean"),
    "spread": (spread, "lower", "amount"),
    "flips": (flips, "lower", "share"),
}


def seconds(a: Answer) -> float | None:
    """Seconds of wall time of the case."""
    return _number(a.record.get("seconds"))


def peak_mb(a: Answer) -> float | None:
    """The peak of memory of the case, in MB."""
    return _number(a.record.get("peak_mb"))


COSTS = (Measure("seconds", seconds, "lower", "amount"), Measure("peak_mb", peak_mb, "lower", "amount"))
"""What a case costs, to compare two runs by."""


# ------------------------------------------------------------------------------------------------ over answers
def _mean(
    answers: Sequence[Answer], draws: Draws, of: Callable[[Answer], float | None], kind: Kind = "amount"
) -> Estimate | None:
    rows = [(a.case, value, 1.0) for a in answers if (value := of(a)) is not None]
    return bootstrap.ratio(draws.parts(rows), draws, kind)


def _quantile(
    answers: Sequence[Answer], draws: Draws, of: Callable[[Answer], float | None], q: float
) -> Estimate | None:
    rows = [(a.case, value, 1.0) for a in answers if (value := of(a)) is not None]
    parts = draws.parts(rows)
    return bootstrap.quantile(parts.case, parts.num, q, draws)


def _tries(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = defaultdict(list)
    for a in answers:
        if _accepted(a) is not None:
            found[a.case].append(a)
    return found


def _repeated(tries: Mapping[str, list[Answer]]) -> bool:
    return any(len(t) > 1 for t in tries.values())


def _accepted(a: Answer) -> float | None:
    value = type_accepted(a)
    return value if value is None or a.answered else 0.0


def _accepted_share(tries: Sequence[Answer]) -> float:
    return sum(_accepted(a) or 0.0 for a in tries) / len(tries)


# ------------------------------------------------------------------------------------------------ of one record
def _removed(a: Answer) -> float | None:
    found = a.record.get("compressed")
    if not isinstance(found, Mapping) or not (size := _number(found.get("bytes_in"))):
        return None
    return 1 - (_number(found.get("bytes_kept")) or 0.0) / size


def _kept(a: Answer) -> float | None:
    found = a.record.get("compressed")
    ranges = found.get("decisive") if isinstance(found, Mapping) else None
    return sum(bool(r[3]) for r in ranges) / len(ranges) if ranges else None


def _tokens(a: Answer) -> float | None:
    found = [_number(_usage(a).get(k)) for k in ("tokens_in", "tokens_out")]
    return sum(x or 0.0 for x in found) if any(x is not None for x in found) else None


def _usage(a: Answer) -> Mapping[str, Any]:
    found = a.got.get("usage")
    return found if isinstance(found, Mapping) else {}


def _number(value: Any) -> float | None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else None
