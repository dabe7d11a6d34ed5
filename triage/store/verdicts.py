"""What a verdict says a failure truly was. Pure."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import get_args

from triage.errors import UsageError
from triage.store.values import Verdict, VerdictKind, Worked


def check(verdict: Verdict, types: Container[str], classes: Container[str]) -> None:
    """Errors: UsageError for a word that is none of those allowed. types, classes: the labels there are."""
    _one_of("verdict", verdict.verdict, get_args(VerdictKind))
    _one_of("worked", verdict.worked, get_args(Worked))
    for name, value, known in (
        ("failure type", verdict.failure_type, types),
        ("root cause class", verdict.root_cause_class, classes),
    ):
        if value and value not in known:
            raise UsageError(f"the {name} {value!r} is not known", "docs/labels-and-figures.md lists them")


def complete(verdict: Verdict, said_type: str, said_class: str) -> Verdict:
    """With its labels as far as it tells them, of a diagnosis that said these.

    Confirmed: those of the diagnosis. Corrected: what was not corrected stays, but the class of another type is not known.
    Rejected: only what was given. Errors: UsageError for a verdict that contradicts itself.
    """
    if verdict.verdict == "rejected":
        return verdict
    kind = verdict.failure_type or said_type
    why = verdict.root_cause_class or (said_class if kind == said_type else "")
    other = (kind, why) != (said_type, said_class)
    if verdict.verdict == "confirmed" and other:
        raise UsageError("a confirmed diagnosis keeps its labels", "for other ones the verdict is corrected")
    if verdict.verdict == "corrected" and not (other or verdict.cause.strip()):
        raise UsageError("a corrected diagnosis needs what it was instead", "give the cause, the type or the class")
    return replace(verdict, failure_type=kind, root_cause_class=why)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"the {name} {value!r} is not known", f"use {', '.join(known)}")
