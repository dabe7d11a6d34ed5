"""What a verdict says a failure truly was. Pure."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import get_args

from triage.errors import UsageError
from triage.store.values import Verdict, VerdictKind, Worked

MOST = 4000  # characters of a cause, a fix or a note: they are shown beside later diagnoses


def check(verdict: Verdict, types: Container[str], classes: Container[str]) -> None:
    """Errors: UsageError for a word that is none of those allowed, and for too many. types, classes: the labels there are."""
    _fits(verdict)
    for name, value, known in (
        ("failure type", verdict.failure_type, types),
        ("root cause class", verdict.root_cause_class, classes),
    ):
        if value and value not in known:
            raise UsageError(f"the {name} {value!r} is not known", "docs/labels-and-figures.md lists them")


def _fits(verdict: Verdict) -> None:
    for name in ("cause", "fix", "note"):
        too_long(name, getattr(verdict, name))
    _one_of("verdict", verdict.verdict, get_args(VerdictKind))
    _one_of("worked", verdict.worked, get_args(Worked))


def too_long(name: str, text: str) -> None:
    """Errors: UsageError. name: cause, fix or note."""
    if len(text) > MOST:
        raise UsageError(f"the {name} has {len(text):,} characters, at most {MOST:,} are kept", "say it in brief")


def complete(verdict: Verdict, said_type: str, said_class: str, said_cause: str = "") -> Verdict:
    """Without blanks, and with its labels as far as it tells them, of a diagnosis that said these.

    Confirmed: those of the diagnosis. Corrected: what was not corrected stays, but the class of another type is not known.
    Rejected: only what was given. Errors: UsageError for a verdict that contradicts itself, or is none.
    """
    _fits(verdict)
    verdict = replace(verdict, cause=verdict.cause.strip(), fix=verdict.fix.strip(), note=verdict.note.strip())
    if verdict.verdict == "rejected":
        if verdict.worked == "yes":
            raise UsageError(
                "a rejected diagnosis leaves open what it was, so no fix is known to work",
                "if it is known now, the verdict is corrected, with the cause or the type",
            )
        return verdict
    kind = verdict.failure_type or said_type
    why = verdict.root_cause_class or (said_class if kind == said_type else "")
    other = (kind, why) != (said_type, said_class)
    if verdict.verdict == "confirmed" and other:
        raise UsageError("a confirmed diagnosis keeps its labels", "for other ones the verdict is corrected")
    told = " ".join(verdict.cause.split()) not in ("", " ".join(said_cause.split()))
    if verdict.verdict == "corrected" and not (other or told):
        raise UsageError("a corrected diagnosis needs what it was instead", "give the cause, the type or the class")
    return replace(verdict, failure_type=kind, root_cause_class=why)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"the {name} {value!r} is not known", f"use {', '.join(known)}")
