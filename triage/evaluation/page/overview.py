"""The top of a report: the result in words, the headline figures, and what went wrong by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triage.evaluation.answers import texts
from triage.evaluation.figures import counted, figure, interval, percent, rank, with_interval, written
from triage.evaluation.page.markup import Safe, cut, el, join
from triage.evaluation.page.parts import section, stamp
from triage.evaluation.page.svg import track
from triage.evaluation.view import Report, Row

HEADLINES = ("type_accepted", "outcome", "root_hit", "action", "missed_failure", "false_alarm")
MISTAKES: Mapping[str, tuple[str, str]] = {
    "problem": ("Crashes and timeouts", "no answer, for whatever reason: counted as wrong everywhere"),
    "missed_failure": ("Missed failures", "a failed job called healthy: nobody looks"),
    "false_alarm": ("False alarms", "a healthy job called otherwise: somebody is woken for nothing"),
    "must_not": ("Misleading types", "a type that the label says would send people the wrong way"),
    "false_stop": ("Needless stops", "a person is asked to fix something, where a restart would have done"),
    "false_restart": ("Useless restarts", "a restart is proposed, where it would fail again"),
    "false_cordon": ("Wrong nodes accused", "a node is named as suspect that the label does not name"),
}
SHOWN = 12
EXAMPLES = 140


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
    return el("p", said, ". ", _alarms(report), class_="lead")


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


def headlines(report: Report) -> Safe:
    seen = el("p", report.seen, class_="note") if report.seen else None
    cards = [_card(name, report) for name in HEADLINES if report.all.get(name)]
    grid = el("div", cards, class_="cards", data_n=len(cards))
    return section("figures", "Headline figures", grid, el("p", _intervals(report), class_="note"), seen)


def _intervals(report: Report) -> str:
    times, seed = report.metrics.get("resamples", 1000), report.metrics.get("seed", 0)
    return (
        f"The bars are 95% intervals: how far a figure could differ, had other cases of the same kind been drawn (bootstrap over cases, {times} "
        f"resamples, seed {seed}). Cases that are not labelled for a figure do not count in it; a crash or timeout counts as wrong."
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


# ------------------------------------------------------------------------------------------------ mistakes
def mistakes(report: Report) -> Safe:
    """The costly mistakes by name, before any average; each record is told once, under its costliest mistake."""
    told: set[str] = set()
    shown, none = [], []
    for name in MISTAKES:
        rows = report.having(name)
        if rows:
            shown.append(_mistake(name, rows, told, report))
            told |= {r.anchor for r in rows}
        elif name == "problem" or report.all.get(name):
            none.append(f"{MISTAKES[name][0].lower()} (0 of {(report.all.get(name) or {}).get('n', len(report.rows))})")
    rest = [r for r in report.rows if not r.right and r.anchor not in told]
    if rest:
        shown.append(
            _group(
                "Other wrong answers",
                "type or outcome are not the labelled ones, nor accepted",
                f"{len(rest)}",
                rest,
                (),
                "wrong",
            )
        )
    clean = el("p", el("b", "None: "), ", ".join(none), class_="good") if none else None
    groups = el("div", shown, class_="mistakes") if shown else None
    about = "The costly mistakes first: what the label says → what was answered, and the action proposed. Each leads to its case."
    return section("mistakes", "What went wrong", clean, groups, about=about)


def _mistake(name: str, rows: Sequence[Row], told: set[str], report: Report) -> Safe:
    head, means = MISTAKES[name]
    metric = report.all.get(name)
    count = counted(metric) if metric and report.repeats == 1 else f"{len(rows)}"
    new, again = [[r for r in rows if (r.anchor in told) is before] for before in (False, True)]
    return _group(head, means, count, new, again, name)


def _group(head: str, means: str, count: str, rows: Sequence[Row], again: Sequence[Row], fault: str) -> Safe:
    more = (
        el("p", el("a", f"all {len(rows) + len(again)} among the cases", href="#cases", data_pick=fault))
        if len(rows) > SHOWN
        else None
    )
    links = [[el("a", r.title, href=f"#{r.anchor}"), " "] for r in again[:SHOWN]]
    rest = f"and {len(again) - SHOWN} more " if len(again) > SHOWN else ""
    return el(
        "div",
        el("h3", head, " ", el("span", count, class_="count")),
        el("p", means, class_="note"),
        el("ul", [_one(r, fault) for r in rows[:SHOWN]]) if rows else None,
        more,
        el("p", "Counted here too, named above: ", links, rest, class_="note") if again else None,
        class_="mistake",
    )


def _one(r: Row, fault: str) -> Safe:
    said = cut(str(r.answer.got.get("root_cause") or ""), EXAMPLES)
    return el(
        "li", el("a", r.title, href=f"#{r.anchor}"), " ", el("span", f"{r.want} → {_beside(r, fault)}", class_="log", dir="ltr"),
        el("span", said, class_="log said", dir="ltr") if said else None,
    )  # fmt: skip


def _beside(r: Row, fault: str) -> str:
    """What was answered, and what the label says of that which went wrong."""
    if r.problem:
        return cut(r.problem, 120)
    action = r.answer.action or "no action"
    if fault in ("false_stop", "false_restart"):
        return f"{r.got} · {action}, label: {' or '.join(texts(r.answer.want.get('action')))}"
    if fault == "false_cordon":
        return f"{r.got} · {cut(', '.join(r.answer.nodes), 120)}, label: {', '.join(texts(r.answer.want.get('nodes'))) or 'no node'}"
    return f"{r.got} · {action}"
