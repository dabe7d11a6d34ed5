"""Recording how an incident turned out: asked field by field, or all at once; nothing is written before a yes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast, get_args

from triage.chat import intents
from triage.chat.values import Asks, Subject
from triage.store.values import Verdict, VerdictKind, Worked

KINDS, WORKED = get_args(VerdictKind), get_args(Worked)
YES = frozenset({"y", "yes", "yes please", "ok", "do it", "record it", "confirm"})
NO = frozenset({"n", "no", "cancel", "stop", "abort", "never mind"})
NOTHING = frozenset({"-", "none", "nothing", "skip"})
FIELDS = ("verdict", "cause", "fix", "worked", "note", "type", "class")
_KNOWN: Mapping[str, tuple[str, ...]] = {"verdict": KINDS, "worked": WORKED}
_GIVEN = re.compile(rf"(?i)(?:^|\s)-{{0,2}}({'|'.join(FIELDS)})\s*[=:]\s*")


@dataclass(slots=True)
class Form:
    """What is known of an outcome so far. by_model: it was proposed by a model, from what the user said."""

    incident: int
    given: dict[str, str] = field(default_factory=dict)
    asked: str = ""  # the field that the user is being asked for; "confirm" at last
    by_model: bool = False

    def next(self, subject: Subject) -> Asks:
        """The next question."""
        for name in ("verdict", "cause", "fix", "worked"):
            if name not in self.given and self._is_needed(name):
                self.asked = name
                return _question(name, subject)
        self.asked = "confirm"
        return Asks(f"Record for incident {self.incident}: {self.told()}? yes or no", ("yes", "no"))

    def _is_needed(self, name: str) -> bool:
        if name == "worked":
            return bool(self.given.get("fix"))
        if name == "cause":
            return self.given.get("verdict") == "corrected" and "type" not in self.given
        return True

    def told(self) -> str:
        parts = [self.given["verdict"]]
        for name in ("type", "class", "cause", "fix", "note"):
            if self.given.get(name):
                parts.append(f"{name} {self.given[name]!r}")
        if self.given.get("fix"):
            parts.append(
                {"yes": "it worked", "no": "it did not work"}.get(
                    self.given.get("worked", ""), "not known whether it worked"
                )
            )
        return ", ".join(parts)

    @property
    def is_free(self) -> bool:
        """What is asked for is told in any words."""
        return self.asked not in _KNOWN

    def fits(self, said: str) -> str:
        """Of the words that are asked for the one that is meant, "" for none."""
        value = said.strip().lower().rstrip(".!")
        if self.asked == "verdict" and value in YES:  # it was asked whether that was right
            return "confirmed"
        found = [word for word in _KNOWN[self.asked] if value and word.startswith(value)]
        return found[0] if len(found) == 1 else ""

    def take(self, said: str) -> str:
        """The answer to what was asked; what is wrong with it, "" for nothing."""
        value = said.strip()
        if self.is_free:
            self.given[self.asked] = "" if value.lower() in NOTHING else value
            return ""
        if not (found := self.fits(value)):
            return f"{value!r} is none of {', '.join(_KNOWN[self.asked])}"
        self.given[self.asked] = found
        return ""

    def as_verdict(self, who: str, via: str) -> Verdict:
        given = self.given
        return Verdict(
            verdict=cast("VerdictKind", given["verdict"]),
            who=who,
            via=via,
            cause=given.get("cause", ""),
            fix=given.get("fix", ""),
            worked=cast("Worked", given.get("worked") or "unknown"),
            note=given.get("note", ""),
            failure_type=given.get("type", ""),
            root_cause_class=given.get("class", ""),
        )


def is_else(form: Form, said: str) -> bool:
    """Whether it asks something, rather than answer the form: what is free to be told may hold any words."""
    if said.endswith("?"):
        return True
    return not form.is_free and not form.fits(said) and bool(intents.is_question(said) or intents.of_question(said))


def _question(name: str, subject: Subject) -> Asks:
    if name == "verdict":
        r = subject.result
        said = f"triage said {r['failure_type']} ({r['root_cause_class']}, {r['status']})"
        return Asks(f"Was that right? {said}: confirmed, corrected or rejected", KINDS)
    if name == "cause":
        return Asks("What was the cause instead?")
    if name == "fix":
        return Asks("What fixed it? (- for nothing)")
    return Asks("Did it work? yes, no or unknown", WORKED)


def parse(text: str) -> tuple[dict[str, str], str]:
    """The fields of `confirmed fix=drained gpu-017 worked=yes`, and what is wrong with them."""
    pieces = _GIVEN.split(text)
    given: dict[str, str] = {}
    first = pieces[0].strip().lower()
    if first:
        given["verdict"] = first
    for name, value in zip(pieces[1::2], pieces[2::2], strict=True):
        given[name.lower()] = value.strip().strip("'\"")
    return given, problem(given)


def problem(given: Mapping[str, str]) -> str:
    """What is wrong with the fields, "" for nothing."""
    for name, known in _KNOWN.items():
        if name in given and given[name] not in known:
            return f"{name} {given[name]!r} is none of {', '.join(known)}"
    return ""
