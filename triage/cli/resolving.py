"""What turned out of an incident, from options or asked at a terminal."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

import typer

from triage import kb
from triage.cli import output
from triage.errors import UsageError
from triage.ingest.text import readable
from triage.store import verdicts
from triage.store.values import StoredIncident, Verdict, VerdictKind, Worked
from triage.text import printable

SCHEMA = "triage.outcome/1"
NOTHING = "-"  # typed where a default stands and nothing is meant
_KINDS, _WORKED = get_args(VerdictKind), get_args(Worked)


@dataclass(frozen=True, slots=True)
class Given:
    """The options; None: not given."""

    verdict: str | None = None
    cause: str | None = None
    fix: str | None = None
    worked: str | None = None
    note: str | None = None
    failure_type: str | None = None
    root_cause_class: str | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to ask at a terminal."""
        return None not in (self.verdict, self.cause, self.fix)

    def check(self) -> None:
        """Errors: UsageError that names the option."""
        labels = kb.taxonomy()
        for option, value, known in (
            ("--verdict", self.verdict, _KINDS),
            ("--worked", self.worked, _WORKED),
            ("--type", self.failure_type, tuple(labels.types)),
            ("--class", self.root_cause_class, tuple(sorted(labels.root_cause_classes))),
        ):
            if value is not None and value not in known:
                raise UsageError(f"{option} {value!r} is not known", _hint(value, known))

    def as_verdict(self, who: str) -> Verdict:
        """Errors: UsageError."""
        if self.verdict is None:
            raise UsageError("nothing says how the diagnosis turned out", f"use --verdict {'|'.join(_KINDS)}")
        said = {f.name: value for f in dataclasses.fields(self) if (value := getattr(self, f.name)) is not None}
        found = Verdict(**said, who=who)
        labels = kb.taxonomy()
        verdicts.check(found, labels.types, labels.root_cause_classes)
        return found


def ask(given: Given, found: StoredIncident) -> Given:
    """The rest, asked on stderr; what triage said of the cause stands as the default, and `-` says that there is nothing.

    What was done nobody knows but who is asked: no default stands for it.
    """
    _edit_lines()
    result = found.result
    _say(f"{result['outcome']}, {result['failure_type']} ({result['root_cause_class']}, {result['status']})")
    _say(str(result["root_cause"]))
    verdict = given.verdict or _word("Was that right? " + ", ".join(_KINDS), _KINDS)
    kind, why, changed = given.failure_type, given.root_cause_class, True
    if verdict == "corrected":
        labels = kb.taxonomy()
        kind = kind or _word("Failure type", tuple(labels.types), result["failure_type"])
        same = kind == result["failure_type"]
        known = tuple(sorted(labels.root_cause_classes))
        why = why or _word("Class of the cause", known, result["root_cause_class"] if same else None)
        changed = not same or why != result["root_cause_class"]
    cause = given.cause
    if cause is None:
        said = str(result["root_cause"])
        cause = _text("cause", "The cause", said if verdict == "confirmed" else "", "" if changed else said)
    fix = given.fix if given.fix is not None else _text("fix", "What was done about it")
    worked = given.worked or (_worked(verdict) if fix else "unknown")
    note = given.note if given.note is not None else _text("note", "Note")
    return Given(verdict, cause, fix, worked, note, kind, why)


def told(incident: int, kept: Verdict, said: str) -> str:
    """One line of what was kept. said: the failure type of the diagnosis."""
    now = f", {said} -> {kept.failure_type}" if kept.failure_type not in ("", said) else ""
    fix = {"yes": ", the fix worked", "no": ", the fix did not work"}.get(kept.worked, "")
    return f"incident {incident}: {kept.verdict} by {printable(kept.who)}{now}{fix}"


def as_json(incident: int, kept: Verdict) -> dict[str, Any]:
    return {"schema": SCHEMA, "incident": incident, **outcome_json(kept)}


def outcome_json(kept: Verdict) -> dict[str, Any]:
    return {**dataclasses.asdict(kept), "at": kept.at.isoformat() if kept.at else None}


def _worked(verdict: str) -> str:
    """Of a rejected diagnosis no fix is known to work: what it is for is open."""
    words = _WORKED if verdict != "rejected" else tuple(word for word in _WORKED if word != "yes")
    return _word("Did it work? " + ", ".join(words), words, "unknown")


def _word(question: str, known: tuple[str, ...], default: str | None = None) -> str:
    return str(typer.prompt(question, default, err=True, value_proc=_chosen(known)))


def _chosen(known: tuple[str, ...]) -> Callable[[str], str]:
    """The word that is meant; its beginning is enough where no other begins so."""

    def choose(value: str) -> str:
        found = [value] if value in known else [word for word in known if value and word.startswith(value)]
        if len(found) != 1:
            raise typer.BadParameter(f"{printable(value)!r} is not known, {_hint(value, known)}")
        return found[0]

    return choose


def _text(name: str, question: str, default: str = "", other_than: str = "") -> str:
    """other_than: a text that says nothing new, nor does none; "" where anything will do."""

    def read(value: str) -> str:
        said = readable(value.encode("utf-8", "replace")).strip()
        said = "" if said == NOTHING else said
        try:
            verdicts.too_long(name, said)
        except UsageError as error:
            raise typer.BadParameter(str(error)) from None
        if other_than and " ".join(said.split()) in ("", " ".join(other_than.split())):
            raise typer.BadParameter(
                "type and class stay, so say what the cause was instead (Ctrl-C: none of it is kept)"
            )
        return said

    return str(typer.prompt(question, printable(default), err=True, show_default=bool(default), value_proc=read))


def _edit_lines() -> None:
    """Arrow keys move within an answer, where Python was built with it."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401


def _say(text: str) -> None:
    output.note(text)


def _hint(value: str, known: tuple[str, ...]) -> str:
    if len(known) <= 3:
        return f"use {', '.join(known)}"
    near = [
        word for word in get_close_matches(value, known, cutoff=0.5) if word != "none"
    ]  # that of a job that went well
    return f"did you mean {' or '.join(near)}?" if near else "docs/labels-and-figures.md lists them"
