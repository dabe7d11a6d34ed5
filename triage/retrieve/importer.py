"""Incidents from files: IncidentLib records (JSON object, list or lines), their pages as copied text, our own YAML.

Pure parsing: nothing is stored. Records come from others, so every value is checked and only http links are kept.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from triage.domain import KnownIncident, Source
from triage.errors import KnowledgeError
from triage.retrieve import import_labels
from triage.taxonomy import Taxonomy

LARGEST_FILE = 64 << 20  # bytes
OUTCOMES = ("confirmed", "corrected", "rejected", "none")
FORMATS = "known: IncidentLib records as JSON (object, list or one a line), their pages as text, triage's own YAML"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OWN = {f.name: str(f.type) for f in dataclasses.fields(KnownIncident)}
_PAGE = re.compile(r"^(?P<id>[A-Z]{2,}-\d+) (?P<org>.+?) · (?P<date>\d{4}-\d\d-\d\d)", re.MULTILINE)
_QUOTED = re.compile(r'"([^"\n]*)"|`([^`\n]*)`')  # short ones too, so that quotes pair up
_PRINTED = re.compile(r"[:=(\[_/'*]")  # what programs print holds more than words
# Control characters would reach a terminal, lone halves of surrogate pairs break the database.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def read_import(path: Path, labels: Taxonomy | None = None) -> tuple[KnownIncident, ...]:
    """The incidents of one file, in its order; parts that a record lacks stay empty, labels it lacks are derived.

    labels: if given, failure types and root-cause classes must be among them.
    Errors: KnowledgeError with the file and place for unreadable files, other formats, records without an id or any
    text, labels that do not exist and ids that stand twice.
    """
    text = _read(path)
    found: dict[str, KnownIncident] = {}
    for where, record in _records(path, text):
        incident = _incident(record, where)
        if labels:
            _known(incident, labels, where)
        if incident.id in found:
            raise KnowledgeError(f"{where}: the id {incident.id} stands twice in this file")
        found[incident.id] = incident
    if not found:
        raise KnowledgeError(f"{path}: no incident in it", FORMATS)
    return tuple(found.values())


# ------------------------------------------------------------------------------------------------ files to records
def _read(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise KnowledgeError(f"{path}: larger than {LARGEST_FILE >> 20} MiB", "split it into several files")
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise KnowledgeError(f"{path}: not UTF-8 text: byte {error.start}", FORMATS) from None
    except OSError as error:
        raise KnowledgeError(f"{path}: cannot be read: {error.strerror}") from None


def _records(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Each record with the place to name in errors."""
    start = text.lstrip()
    if start[:1] in ("{", "["):
        yield from _json(path, text)
    elif _PAGE.match(start):
        heads = list(_PAGE.finditer(text))
        ends = [head.start() for head in heads[1:]] + [len(text)]
        for head, end in zip(heads, ends, strict=True):
            yield f"{path}: {head['id']}", _page(head, text[head.end() : end])
    elif path.suffix in (".yaml", ".yml") or re.match(r"(?:#.*\n|---\n|\s*\n)*(?:- )?id:", start):
        yield from _numbered(path, _yaml(path, text))
    else:
        raise KnowledgeError(f"{path}: not a file of incidents", FORMATS)


def _numbered(path: Path, doc: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(doc, list):
        yield str(path), doc
        return
    for number, record in enumerate(doc, 1):
        yield f"{path}: record {number}", record


def _json(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        yield from _numbered(path, json.loads(text))
        return
    except (ValueError, RecursionError) as error:
        whole = error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) < 2 or not all(line.lstrip().startswith("{") for _, line in lines):
        raise KnowledgeError(f"{path}: not valid JSON: {whole}") from None
    for number, line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise KnowledgeError(f"{path}: line {number} is not valid JSON: {error}") from None
        yield f"{path}: line {number}", record


def _yaml(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, _LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise KnowledgeError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None


def _page(head: re.Match[str], body: str) -> dict[str, Any]:
    """The copied text of an incident page as a record: head, story, labels, how it was noticed, what was learned."""
    record: dict[str, Any] = head.groupdict()
    story: list[str] = []
    after: list[str] = []
    lines = (line.strip() for line in body.splitlines()[1:])  # the rest of the head line names a domain
    for line in filter(None, lines):
        if line.startswith("Symptom ?"):  # the labels are glued together in the copy
            record["symptoms"] = re.split(r"(?<=[a-z])(?=[A-Z])", line.removeprefix("Symptom ?").strip())
        elif line.startswith("Root cause ?"):
            record["root_cause"] = line.removeprefix("Root cause ?").strip()
        elif "root_cause" not in record:
            story.append(line)
        elif " · shared " in line:
            record["components"] = line.split(" · shared ", 1)[1].split(",")
        elif len(line) > 1:
            after.append(line)
    record["summary"] = "\n\n".join(story)
    record["detection"], record["lessons"] = (after[0] if len(after) > 1 else ""), (after[-1] if after else "")
    seen = "; ".join(record.get("symptoms", []))
    cause = record.get("root_cause", "")
    record["title"] = f"{seen} ({cause.lower()})" if seen and cause else seen
    return record


# ------------------------------------------------------------------------------------------------ records to incidents
def _incident(record: Any, where: str) -> KnownIncident:
    if not isinstance(record, dict):
        raise KnowledgeError(f"{where}: expected an incident, found {type(record).__name__}", FORMATS)
    record = {**record, "id": " ".join(_text(record.get("id")).split())}
    if not record["id"]:
        raise KnowledgeError(f"{where}: an incident without an id", FORMATS)
    own = "failure_type" in record or "root_cause_class" in record or "error_strings" in record
    incident = _from_own(record, where) if own else _from_library(record)
    if not (incident.title and incident.symptoms):
        raise KnowledgeError(f"{where}: {incident.id} tells neither a title, symptoms nor a summary")
    return incident


def _from_own(record: dict[Any, Any], where: str) -> KnownIncident:
    unknown = sorted(str(key) for key in record.keys() - _OWN.keys())
    if unknown:
        raise KnowledgeError(f"{where}: {record['id']}: unknown {unknown}", f"known: {', '.join(_OWN)}")
    lists = {n: tuple(_texts(record.get(n))) for n, kind in _OWN.items() if kind.startswith("tuple") and n != "sources"}
    values = {n: _text(record.get(n)) for n, kind in _OWN.items() if kind == "str"}
    values["symptoms"] = values["symptoms"] or values["title"] or values["root_cause"]
    values["title"] = values["title"] or _sentences(values["symptoms"], 1)
    values["root_cause_class"] = values["root_cause_class"] or "unknown"
    values["failure_type"] = values["failure_type"] or import_labels.failure_type(
        values["title"], values["root_cause"], [], lists["error_strings"]
    )
    values["outcome"] = values["outcome"] or "none"
    if values["outcome"] not in OUTCOMES:
        raise KnowledgeError(
            f"{where}: {record['id']}: outcome {values['outcome']!r} is not one of {', '.join(OUTCOMES)}"
        )
    return KnownIncident(**values, **lists, sources=_sources(record))  # type: ignore[arg-type]


def _from_library(record: dict[Any, Any]) -> KnownIncident:
    summary = _text(record.get("summary"))
    symptoms = _text(record.get("symptoms_text")) or summary
    terms = _texts(record.get("symptoms"))
    title = _text(record.get("title")) or _sentences(symptoms, 1)
    label = _text(record.get("root_cause"))
    classified = import_labels.root_cause_class(label)
    told = "" if import_labels.kebab(label) == "unknown" else label.replace("-", " ")
    cause = _text(record.get("trigger")) or told
    errors = _error_strings(f"{symptoms}\n{summary}")
    return KnownIncident(
        id=_text(record["id"]),
        org=_text(record.get("org")),
        date=_text(record.get("date"))[:10],
        title=title,
        failure_type=import_labels.failure_type(title, cause, terms, errors),
        root_cause_class=classified,
        components=import_labels.components(_texts(record.get("components"))),
        symptoms=symptoms or title,
        error_strings=errors,
        root_cause=cause,
        remediation=tuple(_texts(record.get("remediation"))),
        lessons=_text(record.get("lessons")),
        facts=_facts(record),
        sources=_sources(record),
        outcome="none",  # the records do not tell whether a step helped
    )


def _facts(record: dict[Any, Any]) -> tuple[str, ...]:
    impact = record.get("impact")
    scope = _text(impact.get("scope")) if isinstance(impact, dict) else _text(impact)
    return tuple(fact for fact in (scope, _text(record.get("detection"))) if fact and fact != "unknown")


def _sources(record: dict[Any, Any]) -> tuple[Source, ...]:
    listed = record.get("sources")
    found = (
        [source if isinstance(source, dict) else {"url": source} for source in listed]
        if isinstance(listed, list)
        else []
    )
    pairs = [(_text(s.get("url")), _text(s.get("title")) or _text(s.get("kind"))) for s in found]
    pairs.append((_text(record.get("url")), "incident page"))
    return tuple(Source(url, title) for url, title in pairs if re.match(r"https?://\S+$", url))


def _error_strings(text: str) -> tuple[str, ...]:
    """What the text quotes of a program's output."""
    quotes = (first or second for first, second in _QUOTED.findall(text))
    return tuple(dict.fromkeys(quote for quote in quotes if 10 <= len(quote) <= 300 and _PRINTED.search(quote)))


def _known(incident: KnownIncident, labels: Taxonomy, where: str) -> None:
    for name, allowed in (("failure_type", labels.types.keys()), ("root_cause_class", labels.root_cause_classes)):
        value = getattr(incident, name)
        if value not in allowed:
            raise KnowledgeError(f"{where}: {incident.id}: {name} {value!r} is not one of {', '.join(sorted(allowed))}")


# ------------------------------------------------------------------------------------------------ values
def _text(value: Any, depth: int = 3) -> str:
    """A text, of several languages the English one, else the first that says something.

    depth: how far it looks into a nested value; YAML can nest without end by naming itself.
    """
    if isinstance(value, dict):
        texts = (_text(value.get(key), depth - 1) for key in ("en", "text", *value)) if depth else ()
        return next((text for text in texts if text), "")
    if not (isinstance(value, str | int | float) or hasattr(value, "isoformat")):
        return ""
    return _UNPRINTABLE.sub(" ", str(value)).strip()


def _texts(value: Any) -> list[str]:
    """A list of texts; one text alone is a list of one."""
    items = value if isinstance(value, list | tuple) else [value]
    return [text for text in map(_text, items) if text]


def _sentences(text: str, count: int) -> str:
    return " ".join(_SENTENCE.split(" ".join(text.split()))[:count])[:1000]
