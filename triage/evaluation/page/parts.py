"""Pieces that every section is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from triage.markup import Safe, el


def section(anchor: str, title: str, *children: Any, about: str = "") -> Safe:
    lead = el("p", about, class_="about") if about else None
    return el(
        "section", el("h2", title, id=f"{anchor}-title"), lead, children, id=anchor, aria_labelledby=f"{anchor}-title"
    )


def scroll(table: Safe, label: str) -> Safe:
    """A table scrolls in its own frame, never the page."""
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def table(heads: Sequence[Any], rows: Sequence[Any], class_: str = "") -> Safe:
    head = el("tr", [el("th", h, scope="col") for h in heads])
    return el("table", el("thead", head), el("tbody", rows), class_=class_ or None)


def pick(label: Any, filters: Mapping[str, str], **attributes: str) -> Safe:
    """A link to the cases that the filters leave: names and values of the controls above the list."""
    return el("a", label, href="#cases", data_set=urlencode(filters), **attributes)


def log(words: Any, name: str, class_: str | None = None) -> Safe:
    """Text that came from a log or a model: it keeps its own direction."""
    return el(name, words, class_=f"log {class_}" if class_ else "log", dir="ltr")


def quoted(text: str) -> list[Any]:
    """A text whose pieces between `back ticks` stand as code; the last one may be cut before its end."""
    return [el("code", part) if i % 2 else part for i, part in enumerate(text.split("`"))]


def stamp(value: Any) -> str:
    """An ISO time as a reader wants it."""
    try:
        return datetime.fromisoformat(str(value)).strftime("%-d %b %Y %H:%M %Z").strip()
    except ValueError:
        return ""
