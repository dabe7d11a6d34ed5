"""How two runs were made, side by side: what differs, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Fields of run.json that decide what a diagnosis says: records made under different values cannot stand in one run.
DECIDING = {
    "version": "version", "commit": "commit", "code_sha256": "code", "kb_sha256": "knowledge", "model": "model", "settings": "setting",
    "prompts": "prompts", "similar": "similar incidents", "baselines": "baselines",
}  # fmt: skip
# Those that change times and memory, or the drawing of intervals.
SURROUNDING = {
    "repeats": "repeats", "jobs": "jobs", "timeout": "timeout", "seed": "seed", "python": "Python", "platform": "platform", "cpus": "CPUs",
    "packages": "package",
}  # fmt: skip
_HASH = 12
_FLAGS = {"similar": "--no-similar", "baselines": "--no-baselines"}


@dataclass(frozen=True, slots=True)
class Difference:
    """field: of run.json; label, a, b: for readers."""

    field: str
    label: str
    a: str
    b: str


def differences(a: Mapping[str, Any], b: Mapping[str, Any], fields: Mapping[str, str]) -> list[Difference]:
    """The fields that differ; one of settings and packages each. A field that one run does not tell is left out."""
    return [
        d for field, label in fields.items() if field in a and field in b for d in _of(field, label, a[field], b[field])
    ]


def _of(field: str, label: str, a: Any, b: Any) -> Iterator[Difference]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in sorted({*a, *b}):
            yield from _of(field, f"{label} {name}", a.get(name), b.get(name))
    elif a != b:
        yield Difference(field, label, shown(field, a), shown(field, b))


def shown(field: str, value: Any) -> str:
    """A value of run.json for a line of text."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field == "commit" or field.endswith("_sha256"):
        return str(value)[:_HASH]
    if isinstance(value, list):
        whole = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        return f"{len(value)} ({whole[:_HASH]})"
    return str(value)


def refusal(found: Iterable[Difference]) -> tuple[str, str]:
    """Why a run that was begun otherwise cannot be gone on with, and what to do."""
    found = list(found)
    words, hints = [], []
    for d in found:
        if flag := _FLAGS.get(d.field):
            words.append(f"{'with' if d.a == 'no' else 'without'} {flag}")
            hints.append(f"{'add' if d.a == 'no' else 'leave out'} {flag}")
        elif d.field == "model":
            words.append(f"with the model {d.a}, not {d.b}")
            hints.append(f"add --llm {d.a}")
        else:
            words.append(f"with {d.label} {d.a}, now {d.b}")
    flags_only = len(hints) == len(found)
    return f"it was made {', '.join(words)}", ", ".join(hints) if flags_only else "give another --out"


def summary(run: Mapping[str, Any]) -> str:
    """A run in a line: when, by which program and knowledge, with which model."""
    told = [str(run.get("started") or "")[:16].replace("T", " ")]
    for field in ("version", "commit", "kb_sha256", "model"):
        changed = " with local changes" if field == "commit" and run.get("changed") else ""
        told.append(f"{DECIDING[field]} {shown(field, run.get(field))}{changed}" if run.get(field) else "")
    return ", ".join(filter(None, told))
