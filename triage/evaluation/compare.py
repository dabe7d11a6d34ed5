"""Two runs on the same cases: what got better and worse, case by case, and whether the difference may be chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from triage.errors import InputError
from triage.evaluation import bootstrap, made, metrics, paired
from triage.evaluation.answers import Answer, Record, latest, of_tool
from triage.evaluation.bootstrap import COUNT, Draws
from triage.evaluation.diagnosed import DIAGNOSED
from triage.evaluation.measures import LABELLED, Measure, category_measure
from triage.evaluation.quantities import COSTS

SCHEMA = "triage.comparison/1"
DECIDES = ("type_accepted", "root_hit", "outcome")  # a case got better or worse by these
Comparison = dict[str, Any]


def compare(
    before: Iterable[Record],
    after: Iterable[Record],
    *,
    runs: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
    seed: int = 0,
    resamples: int = COUNT,
    categories: Mapping[str, str] | None = None,
) -> Comparison:
    """Run A (before) and run B (after), ready for JSON.

    {"schema", "runs": how A and B were made, "cases": {"both", "only_a", "only_b", "changed"}, "warnings": [words],
     "metrics": {metric: paired.difference or None}, "better" | "worse" | "mixed" | "other": [one entry a case], "same": cases}
    An entry: {"case", "tags", "marks": {metric of DECIDES: "better" | "worse" | "same" | None}, "changed": {metric: "better" |
    "worse"} of any measure, "want", "before", "after"}. other: cases that changed, but in none of DECIDES.
    runs: run.json of both; then "runs" is {"a", "b", "differences": [{"field", "label", "a", "b"}]}, else None.
    A case whose content or label changed (its sha256) cannot be compared: it is named and left out.
    Errors: InputError when no case is in both.
    """
    a, b = _by_case(before), _by_case(after)
    changed = [c for c in a if c in b and _hashes(a[c]) != _hashes(b[c])]
    both = [c for c in a if c in b and c not in changed]
    only_a, only_b = [c for c in a if c not in b], [c for c in b if c not in a]
    if not both:
        raise InputError(_nothing(changed), "compare two runs of the same cases")
    one, two = [x for c in both for x in a[c]], [x for c in both for x in b[c]]
    draws = Draws(both, resamples, seed)
    measures = (
        *LABELLED,
        category_measure(metrics.taxonomy_categories() if categories is None else categories),
        *DIAGNOSED,
    )
    found: dict[str, list[dict[str, Any]]] = {"better": [], "worse": [], "mixed": [], "other": [], "same": []}
    for case in both:
        entry = _entry(case, a[case], b[case], [m for m in measures if m.better])
        found[_verdict(entry)].append(entry)
    return {
        "schema": SCHEMA,
        "runs": _made(*runs) if runs else None,
        "cases": {"both": len(both), "only_a": only_a, "only_b": only_b, "changed": changed},
        "warnings": _warnings(changed, only_a, only_b, one, two),
        "metrics": _differences(measures, one, two, draws),
        **{name: found[name] for name in ("better", "worse", "mixed", "other")},
        "same": len(found["same"]),
    }


def _differences(
    measures: Sequence[Measure], one: Sequence[Answer], two: Sequence[Answer], draws: Draws
) -> dict[str, Any]:
    found = {m.name: paired.difference(m, one, two, draws) for m in measures}
    for name, accepted in (("macro_f1", False), ("macro_f1_accepted", True)):
        a, b = metrics.labels(one, draws, accepted), metrics.labels(two, draws, accepted)
        was, now = bootstrap.macro_f1(a, draws), bootstrap.macro_f1(b, draws)
        change = bootstrap.macro_f1_difference(a, b, draws)
        if was and now and change:
            counts = {"better": None, "worse": None, "p": None}
            found[name] = {"before": round(was.value, 6), "after": round(now.value, 6), **change.as_json(), **counts}
    return found | {m.name: paired.difference(m, one, two, draws) for m in COSTS}


def _entry(case: str, a: Sequence[Answer], b: Sequence[Answer], measures: Sequence[Measure]) -> dict[str, Any]:
    want = a[0].want
    marks = {m.name: _mark(m, a, b) for m in measures}
    return {
        "case": case,
        "tags": list(a[0].record.get("tags") or ()),
        "marks": {name: mark for name, mark in marks.items() if name in DECIDES},
        "changed": {name: mark for name, mark in marks.items() if mark in ("better", "worse")},
        "want": {"failure_type": want.get("failure_type"), "outcome": want.get("outcome")},
        "before": _said(a),
        "after": _said(b),
    }


def _mark(measure: Measure, a: Sequence[Answer], b: Sequence[Answer]) -> str | None:
    one, two = paired.per_case(measure, a), paired.per_case(measure, b)
    if not one or not two:
        return None
    better, worse = paired.better_worse(measure, one, two)
    return "better" if better else "worse" if worse else "same"


def _verdict(entry: Mapping[str, Any]) -> str:
    marks = entry["marks"].values()
    if "better" in marks and "worse" in marks:
        return "mixed"
    return "better" if "better" in marks else "worse" if "worse" in marks else "other" if entry["changed"] else "same"


def _made(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    told = [*made.DECIDING, *made.SURROUNDING, "started", "changed"]
    return {
        "a": {name: a.get(name) for name in told},
        "b": {name: b.get(name) for name in told},
        "differences": [asdict(d) for d in made.differences(a, b, made.DECIDING | made.SURROUNDING)],
    }


def _said(answers: Sequence[Answer]) -> dict[str, Any]:
    """What the first repeat said, and of how many."""
    first = answers[0]
    return {
        "failure_type": first.failure_type,
        "outcome": first.outcome,
        "status": first.status,
        "problem": str(first.record.get("problem") or ""),
        "repeats": len(answers),
    }


def _by_case(records: Iterable[Record]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = defaultdict(list)
    for record in latest(records):
        found[str(record["case"])].append(of_tool(record))
    return dict(sorted(found.items()))


def _hashes(answers: Sequence[Answer]) -> set[str]:
    return {str(a.record.get("sha256") or "") for a in answers}


def _nothing(changed: Sequence[str]) -> str:
    more = f": {named(changed)} changed between them" if changed else ""
    return f"the two runs have no case in common{more}"


def _warnings(
    changed: Sequence[str], only_a: Sequence[str], only_b: Sequence[str], one: Sequence[Answer], two: Sequence[Answer]
) -> list[str]:
    found = []
    if changed:
        found.append(f"changed between the runs (files or labels) and left out: {named(changed)}")
    if only_a:
        found.append(f"only in A and left out: {named(only_a)}")
    if only_b:
        found.append(f"only in B and left out: {named(only_b)}")
    if len(one) != len(two):
        found.append(f"A has {len(one)} records of these cases, B {len(two)}: repeats are averaged for each case")
    return found


def named(cases: Sequence[str], most: int = 5) -> str:
    """ "3 cases (a, b, c)"."""
    shown = ", ".join([*cases[:most], *(["..."] if len(cases) > most else [])])
    return f"{len(cases)} case{'s' if len(cases) != 1 else ''} ({shown})"
