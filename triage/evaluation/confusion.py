"""Which failure type was taken for which, as data: a matrix, and the figures of each type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from triage.evaluation import bootstrap
from triage.evaluation.answers import Answer
from triage.evaluation.bootstrap import Draws, Estimate
from triage.evaluation.measures import Measure, type_accepted

NO_ANSWER = "(no answer)"


def got_type(a: Answer) -> str:
    return a.failure_type or NO_ANSWER


def confusion(answers: Sequence[Answer]) -> dict[str, Any]:
    """{"labels": types wanted or given, sorted; "counts": rows wanted, columns given; "cells": those not empty, with
    how many of them the label accepts and the cases}."""
    cells: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for a in answers:
        if a.want_type:
            cells[a.want_type, got_type(a)].append(a)
    labels = sorted({name for pair in cells for name in pair})
    return {
        "labels": labels,
        "counts": [[len(cells.get((want, got), ())) for got in labels] for want in labels],
        "cells": [
            {
                "want": want,
                "got": got,
                "n": len(found),
                "accepted": sum(bool(type_accepted(a)) for a in found),
                "cases": list(dict.fromkeys(a.case for a in found)),
            }
            for (want, got), found in sorted(cells.items())
        ],
    }


def by_type(answers: Sequence[Answer], measures: Sequence[Measure], draws: Draws) -> dict[str, dict[str, Any]]:
    """The figures of each wanted or given type: n (records that want it), predicted (that were given it), precision,
    recall and f1 (exact), and the measures over the records that want it."""
    known = [a for a in answers if a.want_type]
    found = {}
    for kind in sorted({name for a in known for name in (a.want_type, a.failure_type) if name}):
        wanted = [a for a in known if a.want_type == kind]
        given = [a for a in known if a.failure_type == kind]
        found[kind] = {
            "n": len(wanted),
            "predicted": len(given),
            "precision": _json(_share(given, kind, draws)),
            "recall": _json(_share(wanted, kind, draws)),
            "f1": _json(_f1(known, kind, draws)),
            **{m.name: _json(estimate(m, wanted, draws)) for m in measures},
        }
    return found


def estimate(measure: Measure, answers: Sequence[Answer], draws: Draws, weighted: bool = False) -> Estimate | None:
    """The mean of a measure over the records that count; weighted: by their GPU-hours, where they are known."""
    rows = []
    for a in answers:
        weight = gpu_hours(a) if weighted else 1.0
        if weight and (value := measure(a)) is not None:
            rows.append((a.case, value * weight, weight))
    return bootstrap.ratio(draws.parts(rows), draws, measure.kind)


def gpu_hours(a: Answer) -> float:
    found = a.record.get("gpu_hours")
    return float(found) if isinstance(found, (int, float)) and found > 0 else 0.0


def _share(answers: Sequence[Answer], kind: str, draws: Draws) -> Estimate | None:
    right = [(a.case, float(a.want_type == kind == a.failure_type), 1.0) for a in answers]
    return bootstrap.ratio(draws.parts(right), draws)


def _f1(answers: Sequence[Answer], kind: str, draws: Draws) -> Estimate | None:
    """2 TP / (wanted + given), which is a ratio of sums like any other."""
    rows = []
    for a in answers:
        want, got = a.want_type == kind, a.failure_type == kind
        rows.append((a.case, 2.0 * (want and got), float(want) + float(got)))
    return bootstrap.ratio(draws.parts(rows), draws, "mean")


def _json(found: Estimate | None) -> dict[str, Any] | None:
    return found.as_json() if found else None
