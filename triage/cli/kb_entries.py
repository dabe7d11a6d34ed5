"""The entries of the knowledge base, shipped and the user's own, as values to list and show."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from triage import kb
from triage.domain import FilterRule, KnownIncident, Runbook, Signature
from triage.errors import UsageError
from triage.runbooks import runbooks

Value = KnownIncident | Signature | FilterRule | Runbook
SUMMARY = ("id", "title", "failure_type", "root_cause_class", "role", "org", "date", "outcome", "action")
user_folder = kb.user_folder


@dataclass(frozen=True, slots=True)
class Entry:
    value: Value
    kind: str  # incident|signature|filter|runbook
    origin: str  # shipped|own

    @property
    def id(self) -> str:
        return self.value.id

    @property
    def summary(self) -> dict[str, Any]:
        named = {name: getattr(self.value, name) for name in SUMMARY if hasattr(self.value, name)}
        return {**named, "origin": self.origin}

    def document(self) -> dict[str, Any]:
        """All fields, and what kind of entry it is."""
        return {"kind": self.kind, "origin": self.origin, **dataclasses.asdict(self.value)}


def entries(home: Path, kind: str) -> tuple[list[Entry], tuple[str, ...]]:
    """All of a kind, and what is wrong with the user's own files."""
    if kind == "signatures":
        return [Entry(value, "signature", "shipped") for value in kb.signatures()], ()
    if kind == "filters":
        return [Entry(value, "filter", "shipped") for value in kb.filter_rules()], ()
    if kind == "runbooks":
        return [Entry(value, "runbook", "shipped") for value in runbooks().of.values()], ()
    own, problems = kb.user_incidents(home)
    shipped = [Entry(value, "incident", "shipped") for value in kb.known_incidents()]
    return [*shipped, *(Entry(value, "incident", "own") for value in own)], problems


def check_type(failure_type: str | None) -> None:
    """Errors: UsageError for a failure type that does not exist."""
    known = kb.taxonomy().types
    if failure_type is not None and failure_type not in known:
        hint = did_you_mean(failure_type, known) or f"types: {', '.join(known)}"
        raise UsageError(f"--type {failure_type!r} is not known", hint)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    near: Sequence[str] = get_close_matches(word, list(known), cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else "`triage kb list` shows what there is"
