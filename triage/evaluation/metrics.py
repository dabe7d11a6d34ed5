"""The figures of a run from its records alone: `triage.metrics/1`.

Measures of one case stand in measures.py and diagnosed.py, what a run costs in quantities.py; here they become figures
with intervals for each set of cases, for each type, for the baselines, and for the tool against each baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from triage import kb
from triage.evaluation import bootstrap, confusion, paired
from triage.evaluation.answers import Answer, Record, latest, of_baseline, of_tool, texts
from triage.evaluation.bootstrap import COUNT, LEVEL, Draws, Estimate, Labels
from triage.evaluation.diagnosed import DIAGNOSED
from triage.evaluation.measures import LABELLED, Measure, category_measure
from triage.evaluation.quantities import QUANTITIES

SCHEMA = "triage.metrics/1"
ABOUT_TYPE = ("type_accepted", "outcome", "root_hit", "any_hit", "action")  # shown for each type
AGAINST = ("type_exact", "type_accepted", "outcome", "root_hit", "any_hit", "action", "false_alarm", "missed_failure")
Metrics = dict[str, Any]


def score(
    records: Iterable[Record], *, seed: int = 0, resamples: int = COUNT, categories: Mapping[str, str] | None = None
) -> Metrics:
    """All figures of a run, ready for JSON.

    {"schema", "seed", "resamples", "level", "cases", "records", "repeats",
     "splits": {"all" | "failing" | "dev" | "test" | "real" | "synthetic" | "tag:X": {metric: figure or None}},
     "types": {type: figures}, "confusion": {...}, "baselines": {name: {metric: figure or None}},
     "margins": {name: {metric: tool minus baseline, paired}}, "definitions": {metric: {"text", "better", "interval"}}}
    A figure is {"value", "low", "high", "n"}: low and high at `level` are Wilson's for a share of yes/no answers, of the
    bootstrap over cases for the rest, None for a maximum and for seconds of one case; n the cases that count. None: nothing is labelled for it.
    categories: failure type -> category; that of the taxonomy by default.
    """
    kept = latest(records)
    answers = [of_tool(r) for r in kept]
    labelled = (*LABELLED, category_measure(taxonomy_categories() if categories is None else categories))
    draws = Draws((a.case for a in answers), resamples, seed)
    names = list(dict.fromkeys(name for r in kept for name in r.get("baselines") or {}))
    said = {name: [a for r in kept if (a := of_baseline(r, name)) is not None] for name in names}
    about = [m for m in labelled if m.name in ABOUT_TYPE]
    return {
        "schema": SCHEMA,
        "seed": seed,
        "resamples": resamples,
        "level": LEVEL,
        "cases": len(draws.index),
        "records": len(kept),
        "repeats": 1 + max((a.repeat for a in answers), default=0),
        "splits": {
            name: _diagnosis(part, labelled, Draws((a.case for a in part), resamples, seed))
            for name, part in splits(answers).items()
        },
        "types": confusion.by_type(answers, about, draws),
        "confusion": confusion.confusion(answers),
        "baselines": {name: _figures(found, labelled, draws) | _spent(found, draws) for name, found in said.items()},
        "margins": {name: margins(found, answers, labelled, draws) for name, found in said.items()},
        "definitions": definitions(),
    }


def splits(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """The sets of cases that figures are given for; a case is in several. Only sets that hold some, "all" always."""
    found: dict[str, list[Answer]] = {"all": list(answers), "failing": []}
    for name in ("dev", "test", "real", "synthetic"):
        found[name] = []
    for a in answers:
        belongs = [str(a.record.get("split") or ""), "synthetic" if a.record.get("synthetic") else "real"]
        belongs += ["failing"] if a.want.get("outcome") and not a.healthy else []
        belongs += sorted(f"tag:{tag}" for tag in set(texts(a.record.get("tags"))))
        for name in filter(None, belongs):
            found.setdefault(name, []).append(a)
    return {name: part for name, part in found.items() if part or name == "all"}


def margins(
    baseline: Sequence[Answer], tool: Sequence[Answer], measures: Sequence[Measure], draws: Draws
) -> dict[str, Any]:
    """The tool minus a baseline on the same cases (paired.difference)."""
    return {m.name: paired.difference(m, baseline, tool, draws) for m in measures if m.name in AGAINST}


def metric_names() -> list[str]:
    """Every name that may stand in a split."""
    shares = [m.name for m in (*LABELLED, category_measure({}), *DIAGNOSED)]
    return [*shares, *_MACRO, *(f"{name}_gpu" for name in shares), *QUANTITIES]


def definitions() -> dict[str, dict[str, str]]:
    """What each metric means, which way is better ("higher", "lower" or "") and what interval it has (INTERVALS)."""
    found = {
        m.name: {"text": m.definition, "better": str(m.better), "interval": INTERVALS[m.kind]}
        for m in (*LABELLED, category_measure({}), *DIAGNOSED)
    }
    found |= {f"{name}_gpu": {**entry, "text": f"{entry['text']} {_WEIGHTED}"} for name, entry in found.items()}
    found |= {name: {"text": text, "better": "higher", "interval": INTERVALS["mean"]} for name, text in _MACRO.items()}
    for name, (quantity, better, kind) in QUANTITIES.items():
        text = " ".join((quantity.__doc__ or "").split())
        found[name] = {"text": text, "better": better, "interval": INTERVALS[kind]}
    return found


INTERVALS = {
    "share": "Wilson",
    "mean": "bootstrap over cases; Wilson where all cases have the same",
    "amount": "bootstrap over cases",
    "": "none",
}
_WEIGHTED = "Each case weighs its GPU-hours; cases without them do not count."
_MACRO = {
    "macro_f1": "The mean over the labelled failure types of the F1 of each: rare types weigh as much as common ones.",
    "macro_f1_accepted": "macro_f1 where an answer that the label accepts counts as the label.",
}


def taxonomy_categories() -> dict[str, str]:
    """Failure type -> category."""
    return {name: kind.category for name, kind in kb.taxonomy().types.items()}


def _diagnosis(answers: Sequence[Answer], labelled: Sequence[Measure], draws: Draws) -> dict[str, Any]:
    found = _figures(answers, (*labelled, *DIAGNOSED), draws)
    return found | {name: _json(quantity(answers, draws)) for name, (quantity, _, _) in QUANTITIES.items()}


def _figures(answers: Sequence[Answer], measures: Sequence[Measure], draws: Draws) -> dict[str, Any]:
    found = {m.name: _json(confusion.estimate(m, answers, draws)) for m in measures}
    exact, accepted = labels(answers, draws), labels(answers, draws, accepted=True)
    found["macro_f1"] = _json(bootstrap.macro_f1(exact, draws))
    found["macro_f1_accepted"] = _json(bootstrap.macro_f1(accepted, draws))
    return found | {f"{m.name}_gpu": _json(confusion.estimate(m, answers, draws, weighted=True)) for m in measures}


def _spent(answers: Sequence[Answer], draws: Draws) -> dict[str, Any]:
    """Tokens and cost of a baseline that asks a model; nothing of the others."""
    found = {name: _json(QUANTITIES[name][0](answers, draws)) for name in ("tokens", "cost")}
    return {name: figure for name, figure in found.items() if figure}


def labels(answers: Sequence[Answer], draws: Draws, accepted: bool = False) -> Labels:
    """Wanted and given types for macro-F1; accepted: an answer that the label accepts counts as the label."""
    known = [a for a in answers if a.want_type]
    case = draws.parts((a.case, 0.0, 0.0) for a in known).case
    got = [a.want_type if accepted and a.failure_type in a.accepted_types else a.failure_type for a in known]
    return Labels.of(case, [a.want_type for a in known], got)


def _json(found: Estimate | None) -> dict[str, Any] | None:
    return found.as_json() if found else None
