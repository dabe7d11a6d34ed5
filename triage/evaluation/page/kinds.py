"""What was taken for what, by failure type, and by tag and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.evaluation.figures import Metric, counted, figure, percent, rank, with_interval
from triage.evaluation.page import matrix
from triage.evaluation.page.markup import Safe, el
from triage.evaluation.page.parts import scroll, section, table
from triage.evaluation.page.svg import axis, track
from triage.evaluation.view import Report, Row, TypeRow, by_type


def confusions(report: Report) -> Safe:
    return section(
        "confusion",
        "What was taken for what",
        el("h3", "Outcome"),
        matrix.outcomes(report),
        el("h3", "Failure type"),
        matrix.types(report),
    )


def by_types(report: Report) -> Safe:
    rows = [_kind(t) for t in by_type(report.rows)]
    heads = ("Failure type", "Each case", "Cases", "Right", "Share", "Exact", "Times answered", "Of those right")
    about = "One mark a case: ● the labelled type, ◐ one that the label accepts, ✕ wrong. The worst types first."
    return section(
        "types", "By failure type", scroll(table(heads, rows, "sortable types"), "Figures by failure type"), about=about
    )


def _kind(t: TypeRow) -> Safe:
    pips = [_pip(r) for r in sorted(t.rows, key=lambda r: ("exact", "accepted", "wrong").index(r.verdict))]
    n = len(t.rows)
    share = percent(t.accepted / n) if n else "–"
    precise = percent(t.answered_right / t.answered) if t.answered else "–"
    cells = (n, t.accepted if n else "–", share, t.exact if n else "–", t.answered, precise)
    return el(
        "tr",
        el("th", t.name, scope="row"),
        el("td", el("span", pips, class_="pips")),
        [el("td", c, class_="num") for c in cells],
    )


def _pip(row: Row) -> Safe:
    sign = {"exact": "●", "accepted": "◐", "wrong": "✕"}[row.verdict]
    about = f"{row.title}: {row.verdict}" + ("" if row.want == row.got else f", answered {row.got}")
    return el("a", sign, href=f"#{row.anchor}", title=about, aria_label=about, class_=f"pip {row.verdict}")


def groups(report: Report) -> Safe | None:
    """Splits and tags of metrics.json."""
    names = [n for n in report.metrics.get("splits", {}) if n != "all" and report.split(n).get("type_accepted")]
    kinds = [n for n in names if n.startswith("tag:")]
    whole = (report.all.get("type_accepted") or {}).get("n")
    splits = [n for n in names if ":" not in n and (report.split(n)["type_accepted"] or {}).get("n") != whole]
    shown = [
        "all",
        *splits,
        *sorted(kinds, key=lambda n: rank(report.split(n)["type_accepted"], "high")),
    ]
    if len(shown) == 1:
        return None
    also = [n for n in ("outcome", "root_hit", "action", "missed_failure", "false_alarm") if report.all.get(n)]
    heads = ["Cases", "n", axis(), "Failure type right", *[figure(n).label for n in also]]
    rows = [_group_row(n, report.split(n), also) for n in shown]
    return section(
        "tags", "By tag and split", scroll(table(heads, rows, "tracks groups"), "Figures by tag and split"),
        about="The tags with the lowest share first. Small groups have wide intervals.",
    )  # fmt: skip


def _group_row(name: str, metrics: Mapping[str, Metric], also: Sequence[str]) -> Safe:
    metric = metrics.get("type_accepted")
    label = {"all": "all cases"}.get(name, name.removeprefix("tag:"))
    cells = [
        el("td", with_interval(m) if (m := metrics.get(n)) and m["n"] > 4 else _plain(metrics.get(n)), class_="num")
        for n in also
    ]
    return el(
        "tr", el("th", label, scope="row"), el("td", (metric or {}).get("n", "–"), class_="num"), el("td", track(metric, label)),
        el("td", with_interval(metric), class_="num"), cells, class_="tool" if name == "all" else None,
    )  # fmt: skip


def _plain(metric: Metric) -> str:
    return counted(metric) if metric else "–"
