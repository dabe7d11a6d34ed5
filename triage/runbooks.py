"""The reader of kb/runbooks/ and kb/actions.yaml: what to do for each failure type, and how each action is done."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from triage import kb
from triage.domain import PLACEHOLDERS, SHOWN, Fetch, Runbook, Runbooks, RunbookStep, Way, When
from triage.domain.labels import Risk
from triage.errors import KnowledgeError
from triage.risk import destroys

SECTIONS = ("confirm", "act", "verify", "escalate")
SCHEDULERS = ("slurm", "kubernetes", "pbs", "lsf", "sge", "flux", "other", "none")  # other: YARN, Ray; none: not told
SPREADS = ("one-node", "many-nodes")
RECURRENCES = ("first", "again")
_OPEN = re.compile(r"\{([a-z_]+)\}")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_CONDITIONS = tuple(f.name for f in fields(When))


@functools.cache
def runbooks() -> Runbooks:
    """All of them, one for every failure type of the taxonomy."""
    if lacking := missing():
        raise KnowledgeError(f"kb/runbooks/: no runbook for {', '.join(lacking)}", "every failure type needs one")
    found = {path.stem: load_runbook(path) for path in _files()}
    return Runbooks(found, load_actions(kb.root() / "actions.yaml"))


def missing() -> tuple[str, ...]:
    """The failure types of the taxonomy that have no runbook."""
    there = {path.stem for path in _files()}
    return tuple(name for name in kb.taxonomy().types if name not in there)


def _files() -> list[Path]:
    return sorted((kb.root() / "runbooks").glob("*.yaml"))


def load_runbook(path: Path) -> Runbook:
    """kb/runbooks/TYPE.yaml. Errors: KnowledgeError with the file, the section and the step."""
    doc = kb.read_yaml(path)
    if not isinstance(doc, dict):
        raise KnowledgeError(f"{path}: expected one runbook, found {type(doc).__name__}")
    kb.member(path.stem, kb.taxonomy().types, f"{path}: failure type")
    sections = {name: _steps(doc.get(name, []), path, name) for name in SECTIONS}
    listed = doc.get("fetch", [])
    if not isinstance(listed, list):
        raise KnowledgeError(f"{path}: fetch must be a list")
    fetch = tuple(_fetch(entry, f"{path}: fetch") for entry in listed)
    book = kb.build(Runbook, {**doc, "id": path.stem, **sections, "fetch": fetch}, path)
    kb.member(book.action, kb.taxonomy().actions, f"{path}: action")
    return book


@functools.cache
def fetches() -> Mapping[str, Fetch]:
    """What runbooks may name under `fetch`."""
    return load_fetches(kb.root() / "fetch.yaml")


def load_fetches(path: Path) -> Mapping[str, Fetch]:
    """kb/fetch.yaml: by the names that runbooks call them."""
    doc = kb.read_yaml(path)
    if not isinstance(doc, dict):
        raise KnowledgeError(f"{path}: expected things to fetch with their ways")
    return {str(name): _named_fetch(entry, f"{path}: {name}") for name, entry in doc.items()}


def _named_fetch(entry: Any, where: str) -> Fetch:
    if not isinstance(entry, dict) or set(entry) != {"what", "ways"} or not isinstance(entry["ways"], list):
        raise KnowledgeError(f"{where}: expected what and a list of ways")
    _check_open(str(entry["what"]), where)
    return Fetch(str(entry["what"]), tuple(_way(way, where) for way in entry["ways"]))


def _way(entry: Any, where: str) -> Way:
    if not isinstance(entry, dict):
        raise KnowledgeError(f"{where}: a way needs a command")
    way = kb.build(Way, {**entry, "when": _when(entry, where)}, where)
    _check_when(way.when, where)
    _check_command(way.command, where)
    if destroys("", way.command):
        raise KnowledgeError(f"{where}: {way.command!r} does more than read")
    return way


def _fetch(entry: Any, where: str) -> Fetch:
    """A text, one with the condition on which it is said, or the name of one of kb/fetch.yaml and what it tells here."""
    if not isinstance(entry, dict) or set(entry) == {"what", "when"}:
        text, when = (str(entry["what"]), _when(entry, where)) if isinstance(entry, dict) else (str(entry), When())
        _check_open(text, where)
        _check_when(when, where)
        return Fetch(text, when=when)
    if not set(entry) <= {"look", "tells"}:
        raise KnowledgeError(f"{where}: expected a text, what and when, or look and tells")
    kb.member(name := str(entry.get("look", "")), fetches(), f"{where}: look")
    known, tells = fetches()[name], str(entry.get("tells", ""))
    return replace(known, text=f"{known.text} ({tells})") if tells else known


def load_actions(path: Path) -> Mapping[str, tuple[RunbookStep, ...]]:
    """kb/actions.yaml: the steps of each action that the taxonomy knows."""
    doc = kb.read_yaml(path)
    if not isinstance(doc, dict):
        raise KnowledgeError(f"{path}: expected actions with their steps")
    known = kb.taxonomy().actions
    for name in (*doc, *known):
        kb.member(name, known, f"{path}: action")
        kb.member(name, doc, f"{path}: no steps for")
    return {name: _steps(doc[name], path, name) for name in doc}


def open_names(text: str) -> tuple[str, ...]:
    """The placeholders of a command or text."""
    return tuple(_OPEN.findall(text))


def _steps(listed: Any, path: Path, section: str) -> tuple[RunbookStep, ...]:
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise KnowledgeError(f"{path}: {section} must be a list of steps")
    return tuple(_step(entry, f"{path}: {section}, step {at}") for at, entry in enumerate(listed, 1))


def _step(entry: dict[str, Any], where: str) -> RunbookStep:
    step = kb.build(RunbookStep, {**entry, "when": _when(entry, where)}, where)
    _check(step, where)
    return step


def _when(entry: Mapping[str, Any], where: str) -> When:
    when = entry.get("when", {})
    if not isinstance(when, dict):
        raise KnowledgeError(f"{where}: when must name conditions: {', '.join(_CONDITIONS)}")
    listed = {str(name): value if isinstance(value, list) else [value] for name, value in when.items()}
    return kb.build(When, listed, where)


def _check_when(when: When, where: str) -> None:
    for name, allowed in _allowed().items():
        for value in getattr(when, name):
            kb.member(value, allowed, f"{where}: when {name}")


def _check(step: RunbookStep, where: str) -> None:
    _check_when(step.when, where)
    kb.member(step.risk, get_args(Risk), f"{where}: risk")
    for text in (step.step, step.why):
        _check_open(text, where)
    if not step.step or not step.why:
        raise KnowledgeError(f"{where}: a step needs step and why")
    _check_command(step.command, where)


def _check_command(command: str, where: str) -> None:
    _check_open(command, where)
    for quoted in _QUOTED.findall(command):
        if open_names(quoted):  # values are quoted when they are filled in
            raise KnowledgeError(f"{where}: a placeholder stands inside quotes: {quoted}")


@functools.cache
def _allowed() -> Mapping[str, Iterable[str]]:
    return {
        "scheduler": SCHEDULERS,
        "component": {s.component for s in kb.signatures() if s.component},
        "signature": {s.id for s in kb.signatures()},
        "cause": kb.taxonomy().root_cause_classes,
        "action": kb.taxonomy().actions,
        "spread": SPREADS,
        "recurrence": RECURRENCES,
        "shows": SHOWN,
    }


def _check_open(text: str, where: str) -> None:
    for name in open_names(text):
        kb.member(name, PLACEHOLDERS, f"{where}: placeholder")


def problems(book: Runbook) -> Iterator[str]:
    """What is wrong with a runbook that loads."""
    if book.action != "none":
        yield from (f"it has no {name} step" for name in SECTIONS if not getattr(book, name))
        yield from () if any(not s.when.scheduler for s in book.confirm) else ("no confirm step fits every scheduler",)
    mine = [s for s in kb.signatures() if s.failure_type == book.id]
    for name, known in (("component", {s.component for s in mine}), ("signature", {s.id for s in mine})):
        asked = {value for section in SECTIONS for step in getattr(book, section) for value in getattr(step.when, name)}
        yield from (f"no signature of this type has the {name} {value}" for value in sorted(asked - known))
    if not book.references:
        yield "it has no references"
    for section in SECTIONS:
        for step in getattr(book, section):
            if step.risk != "read-only" and section in ("confirm", "escalate"):
                yield f"{section}: {step.step!r} is {step.risk}; looking and asking change nothing"
            if step.risk != "destructive" and section in ("act", "verify") and destroys(step.step, step.command):
                yield f"{section}: {step.step!r} is {step.risk}, and it destroys something"
            if step.risk == "destructive" and not book.verify:
                yield f"{section}: {step.step!r} destroys something, and no verify step follows"
