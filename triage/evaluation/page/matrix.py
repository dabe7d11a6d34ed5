"""Confusion matrices as tables: a matrix is read by eye, by keyboard and by screen reader alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.evaluation.page.parts import pick
from triage.evaluation.view import Report, Row, confusion, outcome_pair
from triage.markup import Safe, el, join

Cells = Mapping[tuple[str, str], list[Row]]
MANY = 14  # types: from here on, those that were never confused are folded away at first
NAMED = 6


def types(report: Report) -> Safe:
    """Labelled type against answered type, the frequent confusions named below."""
    cells = confusion(report.rows)
    order = _order(cells, {name: i for i, name in enumerate(_categories())})
    clean = _never_confused(cells, order)
    fold = len(order) >= MANY and bool(clean) and len(clean) < len(order)
    return join([
        _switch(clean, len(order)) if fold else None,
        _table(cells, order, clean if fold else frozenset(), "type"),
        el("p", "A row is what the label says, a column what was answered. Blue: right; striped: another type that the label accepts; "
                "orange: wrong. A number leads to its cases.", class_="note"),
        _pairs(cells),
    ])  # fmt: skip


def outcomes(report: Report) -> Safe:
    """Labelled outcome against answered outcome."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in report.rows:
        cells.setdefault((row.answer.accepted_outcomes[0], row.answer.outcome or "no answer"), []).append(row)
    known = ("failed", "hung", "interrupted", "healthy", "unknown")
    seen = {name for pair in cells for name in pair}
    order = [n for n in known if n in seen] + sorted(seen - set(known))
    return _table(cells, order, frozenset(), "outcome")


def _categories() -> list[str]:
    from triage import kb

    return list(kb.taxonomy().types)


def _order(cells: Cells, place: Mapping[str, int]) -> list[str]:
    """Types as the taxonomy orders them, which puts what is alike side by side; others behind."""
    seen = {name for pair in cells for name in pair}
    return sorted(seen, key=lambda n: (place.get(n, len(place)), n))


def _never_confused(cells: Cells, order: Sequence[str]) -> frozenset[str]:
    mixed = {name for pair in cells if pair[0] != pair[1] for name in pair}
    return frozenset(set(order) - mixed)


def _switch(clean: frozenset[str], total: int) -> Safe:
    label = f"Leave out the {len(clean)} of {total} types that were never confused"
    return el(
        "p",
        el("label", el("input", type="checkbox", class_="fold", checked=True, autocomplete="off"), " ", label),
        class_="switch",
    )


def _table(cells: Cells, order: Sequence[str], clean: frozenset[str], what: str) -> Safe:
    labelled = [n for n in order if any(w == n for w, _ in cells)]
    answered = [n for n in order if any(g == n for _, g in cells)]
    heads = [el("th", el("span", n), scope="col", class_=_fold(n, clean)) for n in answered]
    head = el(
        "tr",
        el("th", "labelled ↓ answered →", scope="col", class_="corner"),
        heads,
        el("th", el("span", "cases"), scope="col"),
    )
    body = []
    for want in labelled:
        total = sum(len(rows) for (w, _), rows in cells.items() if w == want)
        row = [_cell(want, got, cells.get((want, got), []), total, clean, what) for got in answered]
        body.append(
            el("tr", el("th", want, scope="row"), row, el("td", total, class_="sum"), class_=_fold(want, clean))
        )
    caption = el("caption", f"Labelled {what} against answered {what}", class_="sr")
    table = el("table", caption, el("thead", head), el("tbody", body), class_="matrix")
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Confusion matrix of the {what}")


def _fold(name: str, clean: frozenset[str]) -> str | None:
    return "clean" if name in clean else None


def _cell(want: str, got: str, rows: Sequence[Row], total: int, clean: frozenset[str], what: str) -> Safe:
    folded = _fold(got, clean)
    if not rows:
        return el("td", class_=" ".join(filter(None, ("same" if want == got else "", folded))) or None)
    fine = all(r.verdict != "wrong" if what == "type" else r.marks["outcome"] != 0 for r in rows)
    kind = "right" if want == got else "accepted" if fine else "wrong"
    names = ", ".join(r.title for r in rows[:NAMED]) + (f" and {len(rows) - NAMED} more" if len(rows) > NAMED else "")
    about = f"{want} answered as {got}: {len(rows)} of {total} ({names})"
    several = len(rows) > 1
    filters = {"want": want, "got": got} if what == "type" else {"outcome": outcome_pair(rows[0])}
    told = {"title": about, "aria_label": about}
    link = pick(len(rows), filters, **told) if several else el("a", len(rows), href=f"#{rows[0].anchor}", **told)
    share = f"--s:{15 + 35 * len(rows) / total:.0f}%"
    return el("td", link, class_=" ".join(filter(None, (kind, folded))), style=share)


def _pairs(cells: Cells) -> Safe | None:
    """What was taken for what, the most frequent first."""
    mixed = sorted(((w, g, r) for (w, g), r in cells.items() if w != g), key=lambda x: (-len(x[2]), x[0], x[1]))
    if not mixed:
        return el("p", "No type was taken for another.", class_="good")
    body = [
        el("tr", el("td", want), el("td", got), el("td", len(rows), class_="num"),
           el("td", "accepted" if all(r.verdict != "wrong" for r in rows) else "wrong"), el("td", _links(rows)))
        for want, got, rows in mixed
    ]  # fmt: skip
    head = el("tr", [el("th", h, scope="col") for h in ("Labelled", "Answered", "Cases", "", "Which")])
    table = el("table", el("thead", head), el("tbody", body), class_="sortable")
    summary = el(
        "summary", "The one confusion in words" if len(mixed) == 1 else f"The {len(mixed)} confusions as a list"
    )
    return el("details", summary, el("div", table, class_="scroll", tabindex="0"), class_="more")


def _links(rows: Sequence[Row]) -> Safe:
    shown = [[el("a", r.title, href=f"#{r.anchor}"), " "] for r in rows[:20]]
    return join([*shown, f"and {len(rows) - 20} more" if len(rows) > 20 else ""])
