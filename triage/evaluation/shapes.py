"""Whether the files of a run folder have the shape that their readers rely on: a person or another program may have edited them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triage.evaluation.schema import MOST, short

_PARTS = ("splits", "baselines", "margins")


def of_run(doc: Mapping[str, Any]) -> str:
    """What is wrong with run.json, in words; "" for nothing."""
    if not _whole(doc.get("seed")):
        return f"seed: must be a whole number that is not negative, not {short(doc.get('seed'))}"
    if not _whole(doc.get("repeats")) or not doc["repeats"]:
        return f"repeats: must be a whole number from 1, not {short(doc.get('repeats'))}"
    cases = doc.get("cases")
    if not isinstance(cases, list) or not all(_texts(case, "id", "sha256") for case in cases):
        return "cases: must be a list of cases, each with id and sha256"
    return ""


def of_record(doc: Any) -> str:
    """What is wrong with a line of records.jsonl."""
    if not isinstance(doc, Mapping):
        return "it is no object"
    for name in ("case", "sha256", "problem"):
        if not isinstance(doc.get(name), str):
            return f"{name}: must be text, not {short(doc.get(name))}"
    if not _whole(doc.get("repeat")):
        return f"repeat: must be a whole number that is not negative, not {short(doc.get('repeat'))}"
    hours = doc.get("gpu_hours")
    if hours is not None and (type(hours) not in (int, float) or not 0 <= hours <= MOST):
        return f"gpu_hours: must be a number from 0 to {MOST:.0e}, not {short(hours)}"
    return ""


def of_metrics(doc: Any) -> str:
    """What is wrong with metrics.json."""
    if not isinstance(doc, Mapping):
        return "is no JSON object"
    for part in _PARTS:
        sets = doc.get(part)
        if not isinstance(sets, Mapping):
            return f"{part}: must be an object"
        for name, found in sets.items():
            if not isinstance(found, Mapping):
                return f"{part}.{name}: must be an object"
            if wrong := next((f"{part}.{name}.{k}: is no figure" for k, v in found.items() if not _figure(v)), ""):
                return wrong
    return "" if "all" in doc["splits"] else "splits.all: is missing"


def _figure(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, Mapping) or not _whole(value.get("n")):
        return False
    return _number(value.get("value")) and all(value.get(x) is None or _number(value[x]) for x in ("low", "high"))


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e15


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 2**63


def _texts(value: Any, *names: str) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(name), str) for name in names)
