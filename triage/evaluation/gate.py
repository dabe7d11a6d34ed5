"""Floors and ceilings that a run must keep: eval/gate.yaml.

    schema: triage.gate/1
    splits:
      all:
        type_accepted: {min: 0.85, n: 40}     # a floor; n: at least so many cases must be labelled for it
        false_alarm: {max: 0}                 # a ceiling
      tag:misleading:
        type_accepted: {min: 0.7}
    margins:                                  # the tool minus a baseline, on the same cases
      keyword-table:
        type_accepted: {min: 0.05}

What cannot be checked fails: a metric that no case is labelled for, a split that the run does not have.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage import kb
from triage.errors import InputError, KnowledgeError
from triage.evaluation import figures, metrics
from triage.evaluation.schema import MOST, short
from triage.text import how_many

SCHEMA = "triage.gate/1"
_EPSILON = 1e-6  # figures are rounded to so many digits
_KEYS = ("min", "max", "n")


@dataclass(frozen=True, slots=True)
class Bound:
    """A floor, a ceiling or both for one metric. section: "splits" or "margins"; part: the split, or the baseline."""

    section: str
    part: str
    metric: str
    floor: float | None = None
    ceiling: float | None = None
    cases: int = 0

    @property
    def name(self) -> str:
        where = ("" if self.part == "all" else f"{self.part} ") if self.section == "splits" else ""
        over = f" over {self.part}" if self.section == "margins" else ""
        return f"{figures.figure(self.metric).label}{over} ({where}{self.metric})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What held and what did not, in words."""

    passes: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failures


def load_gate(path: Path) -> tuple[Bound, ...]:
    """The bounds of a gate file. Errors: InputError that names the field."""
    try:
        doc = kb.read_yaml(path)
    except KnowledgeError as error:
        raise InputError(error.message, "give a gate file; docs/evaluation.md has a small one to begin with") from None
    if not isinstance(doc, Mapping) or doc.get("schema") != SCHEMA:
        raise InputError(f"{path}: is no gate", f"it must begin with schema: {SCHEMA}")
    for name in doc:
        if name not in ("schema", "splits", "margins"):
            raise InputError(f"{path}: {name}: unknown field", "use splits and margins")
    try:
        found = tuple(_bounds(doc, "splits", metrics.metric_names())) + tuple(
            _bounds(doc, "margins", list(metrics.AGAINST))
        )
    except ValueError as error:
        raise InputError(f"{path}: {error}", "see triage/evaluation/gate.py for the form") from None
    if not found:
        raise InputError(f"{path}: bounds nothing", "name a split, a metric and its min or max")
    return found


def check(found: Mapping[str, Any], gate: tuple[Bound, ...], missing: str = "") -> Verdict:
    """The figures of a run (metrics.score) against the bounds. missing: what an interrupted run lacks, which fails it."""
    passes: list[str] = []
    failures: list[str] = [missing] if missing else []
    for bound in gate:
        parts = found.get(bound.section) or {}
        part = parts.get(bound.part)
        if part is None:
            failures.append(f"{bound.name}: cannot be checked, the run has no {_what(bound)} {bound.part!r}")
            continue
        figure = part.get(bound.metric)
        if figure is None:
            why = "no case is labelled for it" if found.get("cases") else "no case has run"
            failures.append(f"{bound.name}: cannot be checked, {why}")
            continue
        wrong = _wrong(bound, float(figure["value"]), int(figure["n"]))
        (failures if wrong else passes).append(f"{bound.name}: {_shown(bound, figure)}{wrong or _held(bound)}")
    return Verdict(tuple(passes), tuple(failures))


def as_text(verdict: Verdict) -> str:
    """Failures first, then the verdict."""
    lines = [f"FAIL  {text}" for text in verdict.failures] + [f"ok    {text}" for text in verdict.passes]
    total = len(verdict.passes) + len(verdict.failures)
    if verdict.passed:
        lines.append(f"gate: passed, {'the one bound holds' if total == 1 else f'all {total} bounds hold'}")
    else:
        lines.append(f"gate: not passed, {len(verdict.failures)} of {how_many(total, 'check')} failed")
    return "\n".join(lines) + "\n"


def _wrong(bound: Bound, value: float, n: int) -> str:
    if n < bound.cases:
        return f"; needs {how_many(bound.cases, 'case')}"
    if bound.floor is not None and value < bound.floor - _EPSILON:
        return f"; below its floor of {_exact(bound, bound.floor)}"
    if bound.ceiling is not None and value > bound.ceiling + _EPSILON:
        return f"; above its ceiling of {_exact(bound, bound.ceiling)}"
    return ""


def _held(bound: Bound) -> str:
    limits = [f"at least {_exact(bound, bound.floor)}"] if bound.floor is not None else []
    limits += [f"at most {_exact(bound, bound.ceiling)}"] if bound.ceiling is not None else []
    return f" ({', '.join(limits)})"


def _shown(bound: Bound, figure: Mapping[str, Any]) -> str:
    low, high = figure.get("low"), figure.get("high")
    span = f" ({_exact(bound, low)} to {_exact(bound, high)})" if low is not None and high is not None else ""
    return f"{_exact(bound, figure['value'])}{span} on {how_many(int(figure['n']), 'case')}"


def _exact(bound: Bound, value: float) -> str:
    """With the digits that tell one case of many."""
    unit = figures.figure(bound.metric).unit
    return f"{value * 100:.4g}%" if unit == "share" else f"{value:.4g}"


def _what(bound: Bound) -> str:
    return "split" if bound.section == "splits" else "baseline"


def _bounds(doc: Mapping[str, Any], section: str, known: list[str]) -> Iterator[Bound]:
    for part, entries in _mapping(doc.get(section), section).items():
        for metric, entry in _mapping(entries, f"{section}.{part}").items():
            where = f"{section}.{part}.{metric}"
            if metric not in known:
                near = difflib.get_close_matches(str(metric), known, n=1)
                raise ValueError(f"{where}: unknown metric" + (f", did you mean {near[0]}?" if near else ""))
            limits = _mapping(entry, where)
            for key, value in limits.items():
                if key not in _KEYS:
                    raise ValueError(f"{where}.{key}: unknown field, use {', '.join(_KEYS)}")
                if type(value) not in (int, float) or not abs(value) <= MOST:
                    raise ValueError(f"{where}.{key}: must be a number, not {short(value)}")
            if (n := limits.get("n", 0)) != int(n) or n < 0:
                raise ValueError(f"{where}.n: must be a whole number of cases, not {n:g}")
            floor, ceiling = limits.get("min"), limits.get("max")
            if floor is None and ceiling is None:
                raise ValueError(f"{where}: needs min or max")
            if floor is not None and ceiling is not None and floor > ceiling:
                raise ValueError(f"{where}: min {floor:g} is above max {ceiling:g}")
            yield Bound(section, str(part), str(metric), floor, ceiling, int(limits.get("n", 0)))


def _mapping(value: Any, where: str) -> Mapping[Any, Any]:
    if value is None and where in ("splits", "margins"):
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: must be a mapping, not {short(value)}")
    return value
