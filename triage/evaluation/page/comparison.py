"""The tool beside the baselines, and how sure answers fare: dots with intervals on one scale."""

from __future__ import annotations

from collections.abc import Sequence

from triage.evaluation.figures import Metric, figure, interval, percent, rank, with_interval, written
from triage.evaluation.page.markup import Safe, el
from triage.evaluation.page.parts import scroll, section, table
from triage.evaluation.page.svg import axis, track
from triage.evaluation.view import STATUSES, Report

COMPARED = (
    "type_accepted", "macro_f1_accepted", "outcome", "root_hit", "evidence_f1", "action", "missed_failure", "false_alarm", "must_not",
    "false_stop",
)  # fmt: skip
STATUS_MEANS = {
    "established": "a definite line says so, and nothing speaks against it",
    "supported": "evidence points to it",
    "hypothesis": "the best guess, with what would confirm it",
    "unknown": "not known, with what to fetch",
}


def baselines(report: Report) -> Safe | None:
    """Small multiples: for each measure, the tool and every baseline on one scale."""
    names = [n for n in COMPARED if report.all.get(n) and any(b.get(n) for b in report.baselines.values())]
    if not names:
        return None
    order = sorted(report.baselines, key=lambda b: -rank(report.baselines[b].get("type_accepted"), "high"))
    figures = [_comparison(n, report, order) for n in names]
    about = "The same cases, answered by simple rules of thumb. A dot is the figure, the bar its 95% interval."
    return section("baselines", "Beside the baselines", el("div", figures, class_="figures"), about=about)


def _comparison(name: str, report: Report, order: Sequence[str]) -> Safe:
    what, ours = figure(name), report.all[name]
    rows = [_compared("triage", ours, "tool"), *(_compared(b, report.baselines[b].get(name), "base") for b in order)]
    low = "lower is better, " if what.better == "low" else ""
    caption = el("caption", el("b", what.label), el("span", f"{low}n = {(ours or {}).get('n')}", class_="note"))
    who, value, span = (el("th", el("span", h, class_="sr"), scope="col") for h in ("who", "value", "interval"))
    head = el("tr", who, el("th", axis(), scope="col"), value, span)
    return el("table", caption, el("thead", head), el("tbody", rows), class_="tracks")


def _compared(who: str, metric: Metric, kind: str) -> Safe:
    value = written(metric["value"]) if metric else "–"
    plot, span = el("td", track(metric, who, kind)), el("td", interval(metric), class_="note")
    return el("tr", el("th", who, scope="row"), plot, el("td", value, class_="num"), span, class_=kind)


def statuses(report: Report) -> Safe:
    """Selective accuracy: is it right when it says that it is sure?"""
    answered = [r for r in report.rows if r.answer.answered]
    rows = []
    for name in STATUSES:
        mine = [r for r in answered if r.answer.status == name]
        metric = report.all.get(f"selective_{name}")
        share = f"{len(mine)} ({percent(len(mine) / len(answered))})" if mine else "0"
        rows.append(el(
            "tr", el("th", name, el("span", STATUS_MEANS[name], class_="note"), scope="row"), el("td", share, class_="num"),
            el("td", with_interval(metric), class_="num"), el("td", track(metric, name) if metric else ""),
        ))  # fmt: skip
    heads = ("Status", "Answers", "Failure type right", axis())
    return section(
        "status", "When it says it is sure", scroll(table(heads, rows, "tracks statuses"), "Accuracy by status"),
        about="Accuracy of the failure type among the answers of each status. A surer status should be right more often.",
    )  # fmt: skip
