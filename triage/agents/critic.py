"""What a second, adversarial pass says against an answer, held to the log like the answer itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from triage.agents.answer import Answer, Cited, read_number, read_text
from triage.agents.case import Ground
from triage.agents.grounding import holds, stands
from triage.llm.parse import find_object

MOST = 6
_WHY = 300


@dataclass(frozen=True, slots=True)
class Objection:
    """A line that speaks against the answer, and why."""

    cited: Cited
    why: str


@dataclass(frozen=True, slots=True)
class Criticism:
    """objections: those that hold; dropped: why others do not, in words; refuted: the answer is wrong, and a line shows it."""

    objections: tuple[Objection, ...] = ()
    dropped: tuple[str, ...] = ()
    refuted: bool = False
    check: str = ""


NONE = Criticism()


def read(text: str, answer: Answer, ground: Ground) -> Criticism | None:
    """None: what was said is no such object."""
    found = find_object(text)
    if not isinstance(found.get("refuted"), bool) and not isinstance(found.get("objections"), list):
        return None
    dropped: list[str] = []
    kept = tuple(o for o in _objections(found.get("objections")) if _stands(o, ground, dropped))
    own = {(c.file, c.line) for c in answer.cited if c.role == "root"}
    others = any((o.cited.file, o.cited.line) not in own for o in kept)  # the answer's own line does not refute it
    check = read_text(found.get("check", ""), _WHY)
    if not stands(check, "what it would look at", ground, dropped):
        check = ""
    return Criticism(kept, tuple(dropped), found.get("refuted") is True and others, check)


def as_text(answer: Answer) -> str:
    """The answer as the critic is shown it."""
    cited = "\n".join(f'- {c.file}:{c.line} [{c.role}] "{c.quote}"' for c in answer.cited)
    return f"{answer.failure_type} ({answer.root_cause_class}): {answer.root_cause}\nIt cites\n{cited or '- nothing'}"


def _objections(value: Any) -> Iterator[Objection]:
    for item in value[:MOST] if isinstance(value, list) else []:
        number = read_number(item.get("line")) if isinstance(item, dict) else None
        if number is not None:
            cited = Cited(str(item.get("file", "")), number, read_text(item.get("quote", ""), _WHY), "context")
            yield Objection(cited, read_text(item.get("why", ""), _WHY))


def _stands(objection: Objection, ground: Ground, dropped: list[str]) -> bool:
    if not holds(objection.cited, ground.lines, dropped):
        return False
    if not objection.why:
        dropped.append("an objection gives no reason")
        return False
    return stands(objection.why, "an objection", ground, dropped, advice=False)
