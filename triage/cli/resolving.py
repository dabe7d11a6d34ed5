"""What turned out of an incident, from options or asked at a terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

import typer

from triage import kb
from triage.cli import output
from triage.errors import UsageError
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
    """The rest, asked on stderr; what triage said stands as the default, and `-` says that there is nothing."""
    result = found.result
    _say(f"{result['outcome']}, {result['failure_type']} ({result['root_cause_class']}, {result['status']})")
    _say(str(result["root_cause"]))
    verdict = given.verdict or _word("Was that right? " + ", ".join(_KINDS), _KINDS)
    kind, why = given.failure_type, given.root_cause_class
    if verdict == "corrected":
        labels = kb.taxonomy()
        kind = kind or _word("Failure type", tuple(labels.types), result["failure_type"])
        same = kind == result["failure_type"]
        known = tuple(sorted(labels.root_cause_classes))
        why = why or _word("Class of the cause", known, result["root_cause_class"] if same else None)
    cause = given.cause if given.cause is not None else _text("The cause", _cause(found, verdict))
    fix = given.fix if given.fix is not None else _text("What fixed it", _step(result))
    worked = given.worked or ("unknown" if not fix else _word("Did it work? " + ", ".join(_WORKED), _WORKED, "unknown"))
    note = given.note if given.note is not None else _text("Note", "")
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


def _cause(found: StoredIncident, verdict: str) -> str:
    return str(found.result["root_cause"]) if verdict == "confirmed" else ""


def _step(result: Mapping[str, Any]) -> str:
    """The first step that changes something; to look at something has fixed nothing yet."""
    steps = result.get("remediation", ())
    return next((str(s["step"]) for s in steps if s["risk"] != "read-only"), "")


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


def _text(question: str, default: str) -> str:
    said = str(typer.prompt(question, printable(default), err=True, show_default=bool(default))).strip()
    return "" if said == NOTHING else said


def _say(text: str) -> None:
    output.note(text)


def _hint(value: str, known: tuple[str, ...]) -> str:
    if len(known) <= 3:
        return f"use {', '.join(known)}"
    near = get_close_matches(value, known, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else "docs/labels-and-figures.md lists them"
