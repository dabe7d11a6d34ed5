"""Entries of the knowledge base and search results as text for a terminal. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from triage.cli.kb_entries import Entry
from triage.cli.kb_search import Known
from triage.domain import Similar
from triage.report import as_json
from triage.runbooks import SECTIONS
from triage.text import printable

_HEADING = ("failure_type", "root_cause_class", "role", "org", "date", "outcome", "component", "weight", "action")
_CODE = {
    "patterns",
    "pattern",
    "unless",
    "examples",
    "counter_examples",
    "error_strings",
}  # shown as it is, not wrapped


def as_list(entries: Sequence[Entry]) -> str:
    """Two lines an entry: its id and labels, its title."""
    return "".join(
        f"{printable(e.id)}  {'  '.join(_labels(e.summary))}\n    {printable(str(e.summary['title']))}\n"
        for e in entries
    )


def _labels(summary: dict[str, Any]) -> Iterator[str]:
    for name in ("failure_type", "role", "date", "org", "action"):
        if summary.get(name) not in (None, "", summary["id"]):
            yield printable(str(summary[name]))
    if summary["origin"] != "shipped":
        yield f"({summary['origin']})"


def as_known(found: Sequence[Known], width: int) -> str:
    """A line for each signature and runbook, to be shown whole by `triage kb show ID`."""
    lines = [
        line
        for entry in found
        for line in wrapped(f"{entry.kind} {entry.id}: {entry.title} ({entry.why})", width, "", "      ")
    ]
    return "".join(f"{line}\n" for line in lines)


def as_hits(found: Sequence[Similar], width: int) -> str:
    """Each incident with its place in the order, why it is like the question, and the first thing that was done."""
    return "".join(f"{line}\n" for similar in found for line in _hit(similar, width))


def _hit(similar: Similar, width: int) -> Iterator[str]:
    yield f"{similar.score:.2f}  {printable(similar.incident)}"
    yield from wrapped(similar.title, width, "      ")
    yield from wrapped(f"why: {similar.why}", width, "      ", "           ")
    for step in similar.remediation[:1]:
        yield from wrapped(f"fix: {step}", width, "      ", "           ")


def similar_json(found: Iterable[Similar]) -> list[dict[str, Any]]:
    return list(map(as_json.similar, found))


def as_text(entry: Entry, width: int) -> str:
    """Everything that is known of an entry."""
    return "\n".join(_text(entry, width)) + "\n"


def _text(entry: Entry, width: int) -> Iterator[str]:
    document = entry.document()
    yield f"{printable(entry.id)}  ({entry.kind}, {entry.origin})"
    yield from wrapped(str(document["title"]), width, "")
    labels = (
        f"{name.replace('_', ' ')}: {document[name]}" for name in _HEADING if document.get(name) not in (None, "")
    )
    yield from wrapped("; ".join(labels), width, "")
    for name, value in document.items():
        if name not in (*_HEADING, "id", "title", "kind", "origin") and value not in ("", (), [], False):
            yield ""
            yield f"{name.replace('_', ' ').capitalize()}:"
            yield from _value(name, value, width)


def _value(name: str, value: Any, width: int) -> Iterator[str]:
    for item in value if isinstance(value, list | tuple) else [value]:
        if name in SECTIONS:
            yield from _step(item, width)
        elif name == "sources":
            yield from wrapped(f"{item['title']} {item['url']}", width, "  ")
        elif name in _CODE:
            yield f"  {printable(str(item))}"
        else:
            bullet = "  - " if isinstance(value, list | tuple) else "  "
            yield from wrapped(str(item), width, bullet, " " * len(bullet))


def _step(step: dict[str, Any], width: int) -> Iterator[str]:
    """A step of a runbook: what to do, as a command, where it applies, why."""
    yield from wrapped(f"{step['step']}  [{step['risk']}]", width, "  - ", "    ")
    if step["command"]:
        yield f"    $ {printable(step['command'])}"
    asked = [f"{name} {' or '.join(values)}" for name, values in step["when"].items() if values]
    if asked:
        yield from wrapped(f"when: {'; '.join(asked)}", width, "    ", "          ")
    yield from wrapped(f"why: {step['why']}", width, "    ", "         ")


def wrapped(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        printable(" ".join(text.split())),
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
