"""The list of cases with its filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.evaluation.figures import FAULTS
from triage.evaluation.page import drill
from triage.evaluation.page.parts import section
from triage.evaluation.view import Report, outcome_pair
from triage.markup import Safe, el

MEANS = ("the labelled type", "another type that the label accepts", "type or outcome wrong")  # of drill.SIGNS


def cases(report: Report) -> Safe:
    return section(
        "cases", "Cases", _controls(report), _legend(), drill.case_list(report), _rest(report),
        about="The costliest mistakes first. Open a case to see what was expected beside what was answered, and the lines.",
    )  # fmt: skip


def _legend() -> Safe:
    marks = [
        [el("span", sign, class_=f"sign {word}"), f" {means}"]
        for (sign, word), means in zip(drill.SIGNS.values(), MEANS, strict=True)
    ]
    chip = [
        el("span", "mistake", class_="badge"),
        " what went wrong beside the type, costly first: point at one to read what it means",
    ]
    return el(
        "ul",
        [el("li", words) for words in (*marks, ["labelled → ", el("b", "answered"), ", where they differ"], chip)],
        class_="legend",
    )


def _rest(report: Report) -> Safe:
    """What the script shows below the list: without it every case is listed."""
    rest = sum(not r.grave for r in report.rows)
    return el("div", [
        el("p", "No case fits these filters. ", el("button", "Clear the filters", type="button", id="f-clear-too"), id="f-none", hidden=True),
        el("p", el("button", f"Show the other {rest} cases: right, without a costly mistake", type="button"), id="f-rest", hidden=True),
    ], class_="script")  # fmt: skip


def _controls(report: Report) -> Safe:
    """Filters; they need the script, and are hidden without it."""
    rows = report.rows
    faults = [(f, f"{FAULTS[f]} ({n})") for f in FAULTS if (n := len(report.having(f)))]
    wrong = sum(not r.right for r in rows)
    accepted = sum(r.verdict == "accepted" for r in rows)
    show = [
        ("", "any"),
        ("wrong", f"wrong ({wrong})"),
        ("right", f"right ({len(rows) - wrong})"),
        ("accepted", f"accepted, not exact ({accepted})"),
        *faults,
    ]
    sets = [
        (name, n)
        for name in dict.fromkeys(s for r in rows for s in r.sets)
        if (n := sum(name in r.sets for r in rows)) < len(rows)
    ]
    fields = [
        el("label", "Find", el("input", type="search", id="f-text", placeholder="text, line, node, case", autocomplete="off")),
        _select("Show", "show", show),
        _select("Labelled as", "want", _options(r.want for r in rows)),
        _select("Answered", "got", _options(r.got for r in rows)),
        _select("Tag", "tags", _options(t for r in rows for t in r.tags)),
        _select("Split", "split", [("", "any"), *((name, f"{name} ({n})") for name, n in sets)]),
        _select("Outcome", "outcome", _options(outcome_pair(r) for r in rows)),
        _select("Status", "status", _options(r.answer.status or "none" for r in rows)),
        _select("Order", "order", [("place", "costliest first"), ("case", "case"), ("want", "labelled type"), ("seconds", "slowest first")]),
    ]  # fmt: skip
    buttons = [
        el("button", "Clear", type="button", id="f-clear"),
        el("button", "Open all shown", type="button", id="f-open"),
    ]
    return el(
        "form", el("div", fields, class_="fields"), el("div", el("output", f"{len(rows)} cases", id="f-count"), buttons, class_="after"),
        class_="filters script", role="search", aria_label="Filter the cases",
    )  # fmt: skip


def _select(label: str, name: str, options: Sequence[tuple[str, str]]) -> Safe | None:
    if len(options) < 2:
        return None
    return el(
        "label",
        label,
        el(
            "select", [el("option", words, value=value) for value, words in options], id=f"f-{name}", autocomplete="off"
        ),
    )


def _options(values: Iterable[str]) -> list[tuple[str, str]]:
    count: dict[str, int] = {}
    for v in values:
        count[v] = count.get(v, 0) + 1
    return [("", "any"), *((v, f"{v} ({n})") for v, n in sorted(count.items()))] if len(count) > 1 else []
