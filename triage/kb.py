"""The reader of kb/: taxonomy, signatures, filter rules, known incidents, banks of lines; runbooks.py reads the runbooks.

Each entry is checked against its schema.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from triage.domain import Cascade, FilterRule, KnownIncident, Signature, Source
from triage.errors import KnowledgeError
from triage.taxonomy import FailureType, Taxonomy

VERDICTS = ("confirmed", "corrected", "rejected", "none")  # of a past incident
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = {
    "KnownIncident": "the incident", "Signature": "the signature", "FilterRule": "the filter rule", "Cascade": "the cascade",
    "Runbook": "the runbook of", "RunbookStep": "a step", "When": "when", "Way": "a way",
}  # fmt: skip
_MACRO = re.compile(r"%\{(\w+)\}")
T = TypeVar("T")


def root() -> Path:
    """The folder kb/: inside the wheel, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    for candidate in (here / "_data" / "kb", here.parent / "kb"):
        if (candidate / "taxonomy.yaml").is_file():
            return candidate
    raise KnowledgeError("the knowledge base kb/ is missing from this installation", "install the package again")


@functools.cache
def version() -> str:
    """A digest of all that the knowledge base holds, by which two diagnoses tell whether they were made with the same."""
    whole = hashlib.sha256()
    for path in sorted(p for p in root().rglob("*") if p.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(root()).as_posix()}\n{content}\n".encode())
    return whole.hexdigest()[:16]


class _Strict(_LOADER):  # type: ignore[misc]
    """Refuses a key that stands twice, of which YAML would silently take the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if (key.tag, key.value) in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """A YAML file. Errors: KnowledgeError with the file and line."""
    try:
        return yaml.load(path.read_text("utf-8"), _Strict)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: a date that does not exist
        raise KnowledgeError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None


@functools.cache
def taxonomy() -> Taxonomy:
    doc = read_yaml(root() / "taxonomy.yaml")
    types = {
        t["id"]: FailureType(t["id"], t["category"], t["means"], t.get("role") == "symptom", bool(t.get("acme")))
        for t in doc["failure_types"]
    }
    return Taxonomy(
        types=types,
        root_cause_classes=frozenset(doc["root_cause_classes"]),
        actions={a["id"]: a["means"] for a in doc["actions"]},
        outcomes=frozenset(doc["outcomes"]),
        statuses=frozenset(doc["statuses"]),
        roles=frozenset(doc["evidence_roles"]),
        version=doc["version"],
    )


@functools.cache
def signatures() -> tuple[Signature, ...]:
    """All active signatures, in file and then list order."""
    return tuple(s for s in _unique(load_signatures(path) for path in _files("signatures")) if s.status == "active")


@functools.cache
def macros() -> Mapping[str, str]:
    """The named pieces of kb/macros.yaml, which filter patterns use as %{NAME}; each may use those above it."""
    found: dict[str, str] = {}
    for name, text in read_yaml(root() / "macros.yaml").items():
        found[name] = expand(str(text), found, f"macros.yaml: {name}")
    return found


def expand(pattern: str, known: Mapping[str, str], where: str) -> str:
    """The pattern with each %{NAME} replaced. Errors: KnowledgeError for a name that is not known."""

    def piece(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise KnowledgeError(f"{where}: unknown %{{{match[1]}}}", f"known: {', '.join(known)}")
        return known[match[1]]

    return _MACRO.sub(piece, pattern)


@functools.cache
def filter_rules() -> tuple[FilterRule, ...]:
    return _unique(load_filters(path) for path in _files("filters"))


@functools.cache
def protected_lines() -> tuple[str, ...]:
    """kb/protected/*.txt: lines that decided labelled cases, and marks of trouble; no learned rule may take them."""
    folder = root() / "protected"
    return tuple(dict.fromkeys(line for path in sorted(folder.glob("*.txt")) for line in _text_lines(path)))


@functools.cache
def unrelated_lines() -> tuple[str, ...]:
    """kb/unrelated.txt: lines that have nothing to do with any job; a rule that takes one is too broad."""
    return _text_lines(root() / "unrelated.txt")


@functools.cache
def known_incidents() -> tuple[KnownIncident, ...]:
    return _unique([load_incident(path)] for path in _files("incidents"))


@functools.cache
def cascades() -> tuple[Cascade, ...]:
    """kb/cascades.yaml: what explains what."""
    path = root() / "cascades.yaml"
    rules = tuple(build(Cascade, entry, path) for entry in _entries(path, {}))
    labels = taxonomy()
    for rule in rules:
        for name in (*rule.cause, *rule.effect):
            if "." not in name and "*" not in name:
                member(name, labels.types, f"{path}: cascade {rule.id}:")
        member(rule.order, ("before", "first", "any"), f"{path}: cascade {rule.id}: order")
    return rules


def load_signatures(path: Path) -> tuple[Signature, ...]:
    """kb/signatures/X.yaml: a list of signatures; `pattern` may stand for a single entry of `patterns`."""
    found = tuple(build(Signature, entry, path) for entry in _entries(path, {"pattern": "patterns"}))
    labels = taxonomy()
    for s in found:
        where = f"{path}: signature {s.id}"
        member(s.failure_type, labels.types, f"{where}: failure_type")
        member(s.root_cause_class, labels.root_cause_classes, f"{where}: root_cause_class")
        member(s.role, labels.roles, f"{where}: role")
        member(s.outcome, labels.outcomes, f"{where}: outcome")
        if s.action:
            member(s.action, labels.actions, f"{where}: action")
        if not s.patterns:
            raise KnowledgeError(f"{where}: no pattern")
    return found


def load_filters(path: Path) -> tuple[FilterRule, ...]:
    """kb/filters/X.yaml: a list of rules; a pattern may use the pieces of kb/macros.yaml."""
    rules = (build(FilterRule, entry, path) for entry in _entries(path, {}))
    return tuple(dataclasses.replace(r, pattern=expand(r.pattern, macros(), f"{path}: rule {r.id}")) for r in rules)


def user_folder(home: Path) -> Path:
    """Where the user's own incidents stand, in the form of kb/incidents/."""
    return home / "kb" / "incidents"


def user_incidents(home: Path) -> tuple[tuple[KnownIncident, ...], tuple[str, ...]]:
    """The user's own incidents, and what is wrong with those that cannot be used; work goes on without them."""
    taken = {incident.id: "the knowledge base that triage ships" for incident in known_incidents()}
    found, problems = [], []
    for path in sorted(user_folder(home).glob("*.yaml")):
        try:
            incident = load_incident(path)
        except KnowledgeError as error:
            problems.append(str(error))
            continue
        if incident.id in taken:
            problems.append(f"{path}: the id {incident.id} is in {taken[incident.id]} already")
            continue
        taken[incident.id] = str(path)
        found.append(incident)
    return tuple(found), tuple(problems)


def load_incident(path: Path) -> KnownIncident:
    doc = read_yaml(path)
    if not isinstance(doc, dict):
        raise KnowledgeError(f"{path}: expected one incident, found {type(doc).__name__}")
    listed = doc.get("sources", [])
    if not isinstance(listed, list) or not all(isinstance(s, dict) and s.get("url") for s in listed):
        raise KnowledgeError(f"{path}: sources must be a list, each with a url")
    sources = tuple(Source(str(s["url"]), str(s.get("title", ""))) for s in listed)
    incident = build(KnownIncident, {**doc, "sources": sources}, path)
    if not incident.id or not incident.title:
        raise KnowledgeError(f"{path}: an incident needs an id and a title")
    labels = taxonomy()
    member(incident.outcome, VERDICTS, f"{path}: outcome")
    member(incident.failure_type, labels.types, f"{path}: failure_type")
    member(incident.root_cause_class, labels.root_cause_classes, f"{path}: root_cause_class")
    return incident


def _text_lines(path: Path) -> tuple[str, ...]:
    """The lines of a text file, without blank ones and notes (`# ...`)."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path}: cannot be read: {error}") from None
    return tuple(line for line in text.split("\n") if line.strip() and not line.startswith("# "))


def _files(folder: str) -> list[Path]:
    return sorted((root() / folder).glob("*.yaml"))


def _entries(path: Path, singular: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    doc = read_yaml(path)
    if not isinstance(doc, list) or not all(isinstance(entry, dict) for entry in doc):
        raise KnowledgeError(f"{path}: expected a list of entries")
    for entry in doc:
        for one, many in singular.items():
            if one in entry:
                entry[many] = [entry.pop(one), *entry.get(many, [])]
        yield entry


def build(cls: type[T], entry: Mapping[str, Any], place: Path | str) -> T:
    """The value that the entry describes. Errors: KnowledgeError for a field that is unknown, missing or of another form."""
    where = f"{place}: {_KINDS[cls.__name__]} {str(entry.get('id') or 'without an id')[:60]}"
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = {str(name) for name in entry if name not in fields}
    missing = {n for n, f in fields.items() if f.default is dataclasses.MISSING and n not in entry}
    if unknown or missing:
        raise KnowledgeError(f"{where}: {_amiss(unknown, missing, list(fields))}")
    values: dict[str, Any] = {}
    for name, value in entry.items():
        kind = str(fields[name].type)
        if kind.startswith("tuple"):
            if not isinstance(value, (list, tuple)):
                raise KnowledgeError(f"{where}: {name} must be a list")
            values[name] = tuple(v if dataclasses.is_dataclass(v) else str(v) for v in value)
        elif kind in ("int", "bool"):
            if not isinstance(value, int):
                raise KnowledgeError(f"{where}: {name} must be {kind}")
            values[name] = value
        elif dataclasses.is_dataclass(value):
            values[name] = value
        else:
            values[name] = sys.intern(str(value))
    return cls(**values)


def _amiss(unknown: set[str], missing: set[str], known: list[str]) -> str:
    words = []
    if unknown:
        near = {name: difflib.get_close_matches(name, known, n=1) for name in sorted(unknown)}
        told = [f"{name[:60]}{f' (did you mean {found[0]}?)' if found else ''}" for name, found in near.items()]
        words.append(f"{'no field is' if len(unknown) == 1 else 'no fields are'} called {', '.join(told)}")
    if missing:
        words.append(f"it lacks {', '.join(sorted(missing))}")
    return "; ".join(words)


def member(value: str, allowed: Any, where: str) -> None:
    """Errors: KnowledgeError for a value that is not allowed."""
    if value not in allowed:
        raise KnowledgeError(f"{where} {value!r} is not one of {', '.join(sorted(allowed))}")


def _unique(groups: Any) -> tuple[Any, ...]:
    found: dict[str, Any] = {}
    for group in groups:
        for item in group:
            if item.id in found:
                raise KnowledgeError(f"the id {item.id} stands twice under kb/")
            found[item.id] = item
    return tuple(found.values())
