"""The tool beside the baselines, and how sure answers fare: dots with intervals on one scale."""

from __future__ import annotations

from collections.abc import Sequence

from triage.evaluation.figures import Metric, Unit, counted, figure, interval, percent, with_interval, written
from triage.evaluation.page.parts import pick, scroll, section, table
from triage.evaluation.page.svg import axis, track
from triage.evaluation.view import Report, Row
from triage.markup import Safe, el

COMPARED = (
    "type_accepted", "macro_f1_accepted", "outcome", "root_hit", "evidence_f1", "action", "missed_failure", "false_alarm", "must_not",
    "false_stop",
)  # fmt: skip
STATUS_MEANS = {
    "established": "a definite line says so, and nothing speaks against it",
    "supported": "evidence points to it",
    "hypothesis": "the best guess, with what would confirm it",
}


def baselines(report: Report) -> Safe | None:
    """Small multiples: for each measure, the tool and every baseline on one scale."""
    names = [n for n in COMPARED if report.all.get(n) and any(b.get(n) for b in report.baselines.values())]
    if not names:
        return None
    figures = [_comparison(n, report) for n in names]
    about = "The same cases, answered by simple rules of thumb. A dot is the figure, the bar its 95% interval."
    return section("baselines", "Beside the baselines", el("div", figures, class_="figures"), about=about)


def _comparison(name: str, report: Report) -> Safe:
    what, ours = figure(name), report.all[name]
    theirs = [_compared(b, report.baselines[b].get(name), "base", what.unit) for b in report.order]
    rows = [_compared("triage", ours, "tool", what.unit), *theirs]
    low = "lower is better, " if what.better == "low" else ""
    caption = el("caption", el("b", what.label), el("span", f"{low}n = {(ours or {}).get('n')}", class_="note"))
    who, value, span = (el("th", el("span", h, class_="sr"), scope="col") for h in ("who", "value", "interval"))
    head = el("tr", who, el("th", axis(what.unit), scope="col"), value, span)
    return el("table", caption, el("thead", head), el("tbody", rows), class_="tracks")


def _compared(who: str, metric: Metric, kind: str, unit: Unit) -> Safe:
    value = written(metric["value"], unit) if metric else "–"
    plot, span = el("td", track(metric, who, kind, unit)), el("td", interval(metric, unit), class_="note")
    return el("tr", el("th", who, scope="row"), plot, el("td", value, class_="num"), span, class_=kind)


def statuses(report: Report) -> Safe:
    """Selective accuracy: is it right when it says that it is sure?"""
    answered = [r for r in report.rows if r.answer.answered]
    rows = []
    for name, means in STATUS_MEANS.items():
        mine = [r for r in answered if r.answer.status == name]
        metric = report.all.get(f"selective_{name}")
        share = f"{len(mine)} ({percent(len(mine) / len(answered))})" if mine else "0"
        rows.append(el(
            "tr", el("th", pick(name, {"status": name}) if mine else name, el("span", means, class_="note"), scope="row"),
            el("td", share, class_="num"), el("td", with_interval(metric), class_="num"), el("td", track(metric, name) if metric else ""),
        ))  # fmt: skip
    heads = ("Status", "Answers", "Failure type right", axis())
    return section(
        "status", "When it says it is sure", scroll(table(heads, rows, "tracks statuses"), "Accuracy by status"), _unknown(report, answered),
        about="Accuracy of the failure type among the answers of each status. A surer status should be right more often.",
    )  # fmt: skip


def _unknown(report: Report, answered: Sequence[Row]) -> Safe | None:
    """Answers that claim nothing have no place on a scale of how sure they are."""
    mine = [r for r in answered if r.answer.status == "unknown"]
    metric = report.all.get("selective_unknown")
    if not mine:
        return None
    knows = sum(r.answer.want_type not in ("", "unknown") for r in mine)
    said = [
        pick(f"{len(mine)} answers" if len(mine) > 1 else "1 answer", {"status": "unknown"}), f" ({percent(len(mine) / len(answered))}) ",
        "have the status unknown: they claim no cause and say what to fetch, so they are no part of this scale. ",
        f"The label names a cause in {knows} of them. " if report.repeats == 1 else "",
        f"The type that they name all the same is the labelled one or an accepted one in {counted(metric)}." if metric else "",
    ]  # fmt: skip
    return el("p", said, class_="note")
