"""The lines of one case: those that the label calls decisive beside those that the answer cites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triage.evaluation.answers import Cited, decisive, in_case, items, shows, text
from triage.evaluation.page.parts import log
from triage.evaluation.view import Row
from triage.markup import Safe, cut, el, escape, join

LINE_TEXT = 500
MARKUP = 200  # characters around a line
TOGETHER = 6  # numbers, and texts, of ranges in one row that no line cites


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: a cited line, or labelled ranges that are not cited. spoken: the texts, each once."""

    file: str
    first: int
    where: tuple[str, ...]
    labelled: bool
    role: str = ""
    spoken: tuple[str, ...] = ()
    repeats: int = 1

    @property
    def text(self) -> str:
        return "\n".join(cut(t, LINE_TEXT) for t in self.spoken[:TOGETHER])


def lines(row: Row, room: int) -> Safe:
    """The table, at most `room` characters of it."""
    found = list(beside(row))
    if not found:
        return el("p", "No line is labelled, and none is cited.", class_="none")
    body: list[Safe] = []
    used = 0
    for line in found:
        used += len(escape(line.text)) + MARKUP
        if used > room and body:
            break
        body.append(_line(line))
    head = el("tr", [el("th", h, scope="col") for h in ("Line", "Labelled", "Cited as", "Text")])
    table = el("div", el("table", el("thead", head), el("tbody", body), class_="lines"), class_="scroll", tabindex="0")
    left = len(found) - len(body)
    return join([table, el("p", f"and {left} more in records.jsonl", class_="none") if left else None])


def _line(line: Line) -> Safe:
    kind = "hit" if line.labelled and line.role else "missed" if line.labelled else "extra"
    spoken = log(line.text, "code") if line.text else el("span", "the text is not in the record", class_="none")
    often = el("span", f" ×{line.repeats}", class_="often") if line.repeats > 1 else None
    more = f" and {len(line.where) - TOGETHER} more" if len(line.where) > TOGETHER else ""
    return el(
        "tr",
        el("th", log(f"{line.file}:{', '.join(line.where[:TOGETHER])}{more}", "span"), scope="row"),
        el("td", "decisive" if line.labelled else "–", class_=None if line.labelled else "nothing"),
        el("td", line.role or "not cited"),
        el("td", spoken, often),
        class_=kind,
    )  # fmt: skip


def beside(row: Row) -> Iterator[Line]:
    """Cited lines and labelled ranges in order of file and line; ranges that no line cites, one after the other, as one."""
    ranges, known = decisive(row.answer), list(row.record.get("files") or {})
    cited: list[tuple[Cited, Mapping[str, Any]]] = []
    for item in items(row.answer.got.get("evidence")):
        if isinstance(item, Mapping) and isinstance(item.get("line"), int):
            cited.append((Cited(in_case(text(item.get("file")), known), item["line"], text(item.get("role"))), item))
    found = [
        Line(c.file, c.line, (str(c.line),), any(shows(r, c) for r in ranges), c.role or "cited", (text(item.get("text")),), _repeats(item))
        for c, item in cited
    ]  # fmt: skip
    said = _said(row)
    for name, first, last in ranges:
        if not any(shows((name, first, last), c) for c, _ in cited):
            where = str(first) if first == last else f"{first}–{last}"
            spoken = tuple(t for (f, n), t in said.items() if name in ("", f) and first <= n <= last)
            found.append(Line(name or "any file", first, (where,), True, "", spoken))
    found.sort(key=lambda x: (x.file, x.first, not x.role))
    yield from _joined(found)


def _joined(found: list[Line]) -> Iterator[Line]:
    held: Line | None = None
    for line in found:
        if held and (line.role or line.file != held.file):
            yield held
            held = None
        if line.role:
            yield line
        elif held:
            held = replace(
                held, where=(*held.where, *line.where), spoken=tuple(dict.fromkeys((*held.spoken, *line.spoken)))
            )
        else:
            held = line
    if held:
        yield held


def _said(row: Row) -> dict[tuple[str, int], str]:
    """File and number -> text of the labelled lines that the record keeps."""
    kept = (x for x in items(row.record.get("labelled")) if isinstance(x, (list, tuple)) and len(x) == 3)
    known = list(row.record.get("files") or {})
    return {(in_case(text(file), known), number): text(said) for file, number, said in kept if isinstance(number, int)}


def _repeats(item: Mapping[str, Any]) -> int:
    value = item.get("repeats")
    return value if isinstance(value, int) else 1
