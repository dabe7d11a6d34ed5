"""The top of a report: the result in words and the headline figures."""

from __future__ import annotations

from typing import Any

from triage.evaluation.figures import counted, figure, interval, percent, rank, with_interval, written
from triage.evaluation.page.parts import section, stamp
from triage.evaluation.page.svg import track
from triage.evaluation.view import Report
from triage.markup import Safe, el, join

HEADLINES = (
    "type_accepted", "outcome", "cause_class_accepted", "root_hit", "node_top1", "rank_top1", "action", "missed_failure", "false_alarm",
)  # fmt: skip


def title(report: Report) -> str:
    return f"triage evaluation: {report.cases} cases, {stamp(report.run.get('started')) or 'undated'}"


def top(report: Report) -> Safe:
    run = report.run
    commit = str(run.get("commit") or "")[:12]
    facts = [
        f"{report.cases} cases", f"{report.repeats} repeats" if report.repeats > 1 else "",
        f"model {report.model}" if report.model else "no model: rules only",
        f"triage {run.get('version') or '?'}" + (f" ({commit})" if commit else ""), stamp(run.get("started")),
    ]  # fmt: skip
    warning = el("p", report.unfinished, class_="warning") if report.unfinished else None
    return join(
        [
            el("h1", "Evaluation of triage"),
            el("p", " · ".join(filter(None, facts)), class_="sub"),
            warning,
            _lead(report),
        ]
    )


def _lead(report: Report) -> Safe | None:
    """The result in a few sentences."""
    metric = report.all.get("type_accepted")
    if not metric:
        return None
    said: list[Any] = [
        "The failure type was right in ",
        el("b", f"{percent(metric['value'])} of {int(metric['n'])} cases"),
    ]
    if span := interval(metric):
        said.append(f" (95% interval {span})")
    if best := report.best_baseline("type_accepted", "high"):
        said.append(f"; the best baseline, {best}, reaches {with_interval(report.baselines[best]['type_accepted'])}")
        margin = (report.metrics.get("margins") or {}).get(best, {}).get("type_accepted")
        if margin and "better" in margin:
            said.append(f". {margin['better']} cases are right with triage alone, {margin['worse']} with {best} alone")
    return el("p", said, ". ", _alarms(report), _suspects(report), class_="lead")


def _alarms(report: Report) -> list[Any]:
    """What was said of healthy jobs, what of failures; a record without an answer said nothing."""
    healthy, failing = [[r for r in report.rows if r.answer.healthy is is_healthy] for is_healthy in (True, False)]
    alarms, missed = (
        [r for r in rows if r.bad(name) and not r.problem]
        for rows, name in ((healthy, "false_alarm"), (failing, "missed_failure"))
    )
    said: list[Any] = []
    of = "answers on " if report.repeats > 1 else ""
    if healthy:
        said.append([el("b", f"{len(alarms)} of {len(healthy)}"), f" {of}healthy jobs raised a false alarm"])
    if failing:
        said.append(
            [
                " and " if healthy else "",
                el("b", f"{len(missed)} of {len(failing)}"),
                f" {of}failures called them healthy" if of else " failures were called healthy",
            ]
        )
    silent = sum(bool(r.problem) for r in report.rows)
    return [*said, f"; {silent} gave no answer." if silent else "."] if said else []


def _suspects(report: Report) -> list[Any]:
    """Where it says to look, among the cases whose label tells where."""
    node, peer = (report.all.get(f"{name}_top1") for name in ("node", "rank"))
    said: list[Any] = []
    if node:
        said.append([" The guilty node was named in ", el("b", counted(node)), " cases that have one"])
    if peer:
        said.append(
            [
                ", the guilty rank in " if node else " The guilty rank was named in ",
                el("b", counted(peer)),
                "" if node else " cases that have one",
            ]
        )
    return [*said, "."] if said else []


def headlines(report: Report) -> Safe:
    seen = el("p", report.seen, class_="note") if report.seen else None
    cards = [_card(name, report) for name in HEADLINES if report.all.get(name)]
    grid = el("div", cards, class_="cards", data_n=len(cards))
    return section("figures", "Headline figures", grid, el("p", _intervals(report), class_="note"), seen)


def _intervals(report: Report) -> str:
    times, seed = report.metrics.get("resamples", 1000), report.metrics.get("seed", 0)
    return (
        f"The bars are 95% intervals: how far a figure could differ, had other cases of the same kind been drawn (Wilson for shares, else bootstrap "
        f"over cases, {times} resamples, seed {seed}). Cases that are not labelled for a figure do not count in it; a crash or timeout counts as wrong."
    )


def _card(name: str, report: Report) -> Safe:
    metric, what = report.all[name] or {}, figure(name)
    span = interval(metric, what.unit)
    better = " · lower is better" if what.better == "low" else ""
    return el(
        "div",
        el("h3", what.label),
        el("p", written(metric["value"], what.unit), class_="big"),
        track(metric, what.label, "bad" if what.better == "low" else "tool"),
        el("p", counted(metric), f" · {span}" if span else "", better, class_="of"),
        el("p", what.means, class_="means"),
        _best(name, report),
        class_="card",
    )


def _best(name: str, report: Report) -> Safe | None:
    what = figure(name)
    best = report.best_baseline(name, what.better)
    if not best:
        return None
    theirs, ours = report.baselines[best][name], report.all[name]
    ahead = el("b", " (better)") if rank(theirs, what.better) > rank(ours, what.better) else None
    return el("p", f"best baseline: {best} {written((theirs or {})['value'], what.unit)}", ahead, class_="beside")
