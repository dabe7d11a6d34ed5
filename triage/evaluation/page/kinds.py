"""What was taken for what, by failure type, and by split and tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.evaluation.figures import Metric, counted, figure, percent, rank, with_interval
from triage.evaluation.page import matrix
from triage.evaluation.page.parts import pick, scroll, section, table
from triage.evaluation.page.svg import axis, track
from triage.evaluation.view import Report, Row, TypeRow, by_type
from triage.markup import Safe, el

GROUPED = ("outcome", "root_hit", "action", "missed_failure", "false_alarm")  # beside the failure type


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
        el("th", pick(t.name, {"want": t.name}) if n else t.name, scope="row"),
        el("td", el("span", pips, class_="pips")),
        [el("td", c, class_="num") for c in cells],
    )


def _pip(row: Row) -> Safe:
    sign = {"exact": "●", "accepted": "◐", "wrong": "✕"}[row.verdict]
    about = f"{row.title}: {row.verdict}" + ("" if row.want == row.got else f", answered {row.got}")
    return el("a", sign, href=f"#{row.anchor}", title=about, aria_label=about, class_=f"pip {row.verdict}")


def groups(report: Report) -> Safe | None:
    """Splits and tags of metrics.json, each in a table of its own."""
    names = [n for n in report.metrics.get("splits", {}) if n != "all" and report.split(n).get("type_accepted")]
    whole = (report.all.get("type_accepted") or {}).get("n")
    sets = [n for n in names if ":" not in n and (report.split(n)["type_accepted"] or {}).get("n") != whole]
    tags = sorted((n for n in names if ":" in n), key=lambda n: rank(report.split(n)["type_accepted"], "high"))
    parts = [
        [el("h3", head), _groups(label, ["all", *shown], report)]
        for head, label, shown in (
            ("Split", "Figures by split", sets),
            ("Tag, the lowest share first", "Figures by tag", tags),
        )
        if shown
    ]
    if not parts:
        return None
    return section(
        "tags", "By split and tag", parts,
        about="Each figure with the cases that count in it. A name leads to its cases. Small groups have wide intervals: point at a figure to see "
              "its own.",
    )  # fmt: skip


def _groups(label: str, names: Sequence[str], report: Report) -> Safe:
    also = [n for n in GROUPED if report.all.get(n)]
    heads = ["Cases", axis(), *[figure(n).label for n in ("type_accepted", *also)]]
    rows = [_group_row(n, report.split(n), also) for n in names]
    return scroll(table(heads, rows, "tracks groups"), label)


def _group_row(name: str, metrics: Mapping[str, Metric], also: Sequence[str]) -> Safe:
    metric = metrics.get("type_accepted")
    kind, _, bare = name.rpartition(":")
    head = "all cases" if name == "all" else pick(bare, {"tags" if kind else "split": bare})
    cells = [_share(metrics.get(n)) for n in ("type_accepted", *also)]
    return el(
        "tr",
        el("th", head, scope="row"),
        el("td", track(metric, bare)),
        cells,
        class_="tool" if name == "all" else None,
    )


def _share(metric: Metric) -> Safe:
    """ "92% 11/12", the interval on pointing at it."""
    if not metric:
        return el("td", "–", class_="num")
    count = counted(metric).replace(" of ", "/")
    return el(
        "td",
        percent(metric["value"]),
        " ",
        el("span", count, class_="note"),
        class_="num",
        title=f"{with_interval(metric)}, n = {metric['n']}",
    )
