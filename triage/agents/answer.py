"""What a model says of a failure, read out of its text and held to the labels. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from triage.domain import Outcome, Role
from triage.llm.parse import find_object
from triage.taxonomy import Taxonomy

MOST_CITED = 12
MOST_STEPS = 6
_CAUSE = 700
_STEP = 300
NO_CAUSE = frozenset({"healthy", "unknown"})


@dataclass(frozen=True, slots=True)
class Cited:
    """A line that the model points at. quote: words that it says stand there."""

    file: str
    line: int
    quote: str
    role: Role


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    failure_type: str
    root_cause_class: str
    root_cause: str
    cited: tuple[Cited, ...] = ()
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    action: str = ""
    steps: tuple[tuple[str, str], ...] = ()  # what to do, why
    against: str = ""

    @property
    def names_a_cause(self) -> bool:
        return self.failure_type not in NO_CAUSE


def schema(labels: Taxonomy) -> dict[str, Any]:
    """The JSON schema of an answer, for servers that hold a model to one; its lists are short, as small models fill them."""
    words = {"type": "string"}
    line = {
        "file": words,
        "line": {"type": "integer"},
        "quote": words,
        "role": {"enum": ["root", "cascade", "context"]},
    }
    fields = {
        "outcome": {"enum": sorted(labels.outcomes)},
        "failure_type": {"enum": list(labels.types)},
        "root_cause_class": {"enum": sorted(labels.root_cause_classes)},
        "root_cause": words,
        "cited": {"type": "array", "maxItems": 4, "items": _object(line)},
        "nodes": {"type": "array", "maxItems": 4, "items": words},
        "ranks": {"type": "array", "maxItems": 8, "items": {"type": "integer"}},
        "action": {"enum": list(labels.actions)},
        "steps": {"type": "array", "maxItems": 3, "items": _object({"step": words, "why": words})},
        "against": words,
    }
    return _object(fields)


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def read(text: str, labels: Taxonomy) -> tuple[Answer | None, tuple[str, ...]]:
    """The answer, or None and in words what is wrong with it."""
    found = find_object(text)
    if not found:
        return None, ("the answer holds no JSON object",)
    problems = tuple(_problems(found, labels))
    if problems:
        return None, problems
    return (
        Answer(
            outcome=cast(Outcome, found["outcome"]),
            failure_type=found["failure_type"],
            root_cause_class=found["root_cause_class"],
            root_cause=read_text(found["root_cause"], _CAUSE),
            cited=tuple(_cited(found.get("cited"))),
            nodes=tuple(n for n in _items(found.get("nodes")) if isinstance(n, str) and n.strip()),
            ranks=tuple(n for n in map(read_number, _items(found.get("ranks"))) if n is not None),
            action=found["action"],
            steps=tuple(_steps(found.get("steps"))),
            against=read_text(found.get("against", ""), _STEP),
        ),
        (),
    )


def _problems(found: dict[str, Any], labels: Taxonomy) -> Iterator[str]:
    allowed = {
        "outcome": labels.outcomes,
        "failure_type": labels.types,
        "root_cause_class": labels.root_cause_classes,
        "action": labels.actions,
    }
    for field, known in allowed.items():
        if not isinstance(found.get(field), str) or found[field] not in known:
            yield f"{field} must be one of those listed, not {str(found.get(field))[:60]!r}"
    if not isinstance(found.get("root_cause"), str) or not found["root_cause"].strip():
        yield "root_cause must be one or two sentences"


def _cited(value: Any) -> Iterator[Cited]:
    for item in _items(value)[:MOST_CITED]:
        number = read_number(item.get("line")) if isinstance(item, dict) else None
        if number is not None:
            role = item.get("role")
            yield Cited(
                str(item.get("file", "")),
                number,
                read_text(item.get("quote", ""), _STEP),
                role if role in ("root", "cascade", "context") else "context",
            )


def _steps(value: Any) -> Iterator[tuple[str, str]]:
    for item in _items(value)[:MOST_STEPS]:
        step, why = (item.get("step"), item.get("why", "")) if isinstance(item, dict) else (item, "")
        if isinstance(step, str) and step.strip():
            yield read_text(step, _STEP), read_text(why, _STEP)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def read_number(value: Any) -> int | None:
    """A whole number that is not negative, as models write one."""
    text = str(value)
    return int(text) if not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) < 12 else None


def read_text(value: Any, most: int) -> str:
    """In one line of at most so many characters."""
    return " ".join(str(value or "").split())[:most]
