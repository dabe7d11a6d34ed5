"""Time, memory, tokens and cost; how the run was made; every figure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from triage.evaluation.answers import items
from triage.evaluation.figures import Metric, Unit, figure, with_interval, written
from triage.evaluation.page.parts import scroll, section, stamp, table
from triage.evaluation.page.svg import bins, histogram, short
from triage.evaluation.view import Report, Row
from triage.markup import Safe, cut, el, join

SLOWEST = 5
COSTS = ("seconds_median", "seconds_p95", "peak_mb_max", "bytes_removed", "decisive_kept", "tokens", "cost")


def costs(report: Report) -> Safe:
    """Time and memory as distributions; tokens and cost where a model was asked."""
    plots = [
        _plot("Seconds a case", report.rows, lambda r: r.seconds, "seconds"),
        _plot("Peak memory", report.rows, lambda r: r.peak_mb, "megabytes"),
    ]
    asked = bool((report.all.get("tokens") or {}).get("value"))
    if asked:
        plots.append(
            _plot("Tokens a case", report.rows, lambda r: _usage(r, "tokens_in") + _usage(r, "tokens_out"), "count")
        )
    figures = [
        el("div", el("dt", figure(n).label), el("dd", with_interval(m, figure(n).unit)), title=figure(n).means)
        for n in (COSTS if asked else COSTS[:-2])
        if (m := report.all.get(n))
    ]
    slow = sorted(report.rows, key=lambda r: -r.seconds)[:SLOWEST]
    links = [[el("a", r.title, href=f"#{r.anchor}"), f" {written(r.seconds, 'seconds')} "] for r in slow]
    return section(
        "costs", "Time, memory and size" + (", tokens and cost" if asked else ""),
        el("dl", figures, class_="facts"), el("div", plots, class_="figures"), el("p", "Slowest: ", links, class_="note"),
        about="Of one diagnosis, from files to answer.",
    )  # fmt: skip


def _plot(label: str, rows: Sequence[Row], of: Callable[[Row], float], unit: Unit) -> Safe | None:
    found = bins([of(r) for r in rows])
    if not found:
        return None
    most = max(n for _, _, n in found)
    body = [el("tr", el("td", f"{short(a, unit)} to {short(b, unit)}"), el("td", n, class_="num")) for a, b, n in found]
    numbers = el("details", el("summary", "as a table"), table(("From, to", "Cases"), body), class_="more")
    spoken = f"{label}: distribution over cases in {len(found)} steps, at most {most} in one"
    return el(
        "figure",
        el("figcaption", el("b", label), el("span", " cases in each step", class_="note")),
        histogram(found, spoken, unit),
        numbers,
    )


def _usage(row: Row, name: str) -> float:
    usage = row.answer.got.get("usage")
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else 0.0


# ------------------------------------------------------------------------------------------------ repeats
def repeats(report: Report) -> Safe | None:
    """Cases whose answer differed between repeats."""
    if report.repeats < 2:
        return None
    by_case: dict[str, list[Row]] = {}
    for row in report.rows:
        by_case.setdefault(row.answer.case, []).append(row)
    torn = {c: rows for c, rows in by_case.items() if len({r.got for r in rows}) > 1}
    body = [
        el("tr", el("th", case, scope="row"), el("td", rows[0].want), el("td", f"{sum(r.right for r in rows)} of {len(rows)}", class_="num"),
           el("td", [[el("a", r.got, href=f"#{r.anchor}"), " "] for r in rows]))
        for case, rows in torn.items()
    ]  # fmt: skip
    about = f"{len(torn)} of {len(by_case)} cases were answered differently from one repeat to another."
    shown = (
        scroll(table(("Case", "Labelled", "Right", "Answers"), body, "sortable"), "Cases that varied") if body else None
    )
    return section("repeats", "Spread over repeats", shown, about=about)


# ------------------------------------------------------------------------------------------------ the run
def run(report: Report) -> Safe:
    return section(
        "run",
        "How this run was made",
        el("dl", list(_facts(report)), class_="facts"),
        _every_figure(report),
        _versions(report),
    )


def _facts(report: Report) -> Iterator[Safe]:
    doc = report.run
    commit = str(doc.get("commit") or "") + (" (with local changes)" if doc.get("changed") else "")
    named = {
        "Command": doc.get("command"), "Started": stamp(doc.get("started")), "Finished": stamp(doc.get("finished")) or "not yet",
        "Version": doc.get("version"), "Commit": commit, "Code": str(doc.get("code_sha256") or "")[:16],
        "Knowledge base": str(doc.get("kb_sha256") or "")[:16], "Model": doc.get("model"), "Similar incidents": _yes(doc.get("similar")),
        "Seed": doc.get("seed"), "Repeats": doc.get("repeats"), "Jobs": doc.get("jobs"), "CPUs": doc.get("cpus"),
        "Limit of a case": f"{doc['timeout']:g} s" if isinstance(doc.get("timeout"), (int, float)) else "", "Python": doc.get("python"),
        "Platform": doc.get("platform"),
    }  # fmt: skip
    for name, value in named.items():
        if value not in (None, ""):
            words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield el("div", el("dt", name), el("dd", cut(words, 400)))


def _yes(value: Any) -> str:
    return {True: "searched", False: "not searched"}.get(value, "") if isinstance(value, bool) else ""


def _every_figure(report: Report) -> Safe:
    names = [n for n in report.all if not n.endswith("_gpu") and isinstance(report.all[n], Mapping)]
    heavy = [n for n in names if report.all.get(f"{n}_gpu")]
    heads = ["Figure", "n", "triage", *(["by GPU-hours"] if heavy else []), *report.order]
    body = []
    for n in names:
        what, metric = figure(n), report.all[n]
        cells: list[Metric] = [
            metric,
            *([report.all.get(f"{n}_gpu")] if heavy else []),
            *(report.baselines[b].get(n) for b in report.order),
        ]
        body.append(el(
            "tr", el("th", what.label, " ", el("code", n), el("span", what.means, class_="note"), scope="row"), el("td", (metric or {}).get("n", "–"), class_="num"),
            [el("td", with_interval(c, what.unit), class_="num") for c in cells],
        ))  # fmt: skip
    return el(
        "details", el("summary", "Every figure"), scroll(table(heads, body, "every"), "Every figure"), class_="more"
    )


def _versions(report: Report) -> Safe:
    packages, settings = report.run.get("packages") or {}, report.run.get("settings") or {}
    prompts = [p for p in items(report.run.get("prompts")) if isinstance(p, Mapping)]
    lists = [
        ("Settings", [(k, _plain(v)) for k, v in settings.items()]),
        ("Packages", list(packages.items())),
        (
            "Prompts",
            [(str(p.get("name")), f"version {p.get('version')}, {str(p.get('sha256'))[:16]}") for p in prompts],
        ),
    ]
    shown = [
        [el("h3", head), el("dl", [el("div", el("dt", k), el("dd", v)) for k, v in pairs], class_="facts")]
        for head, pairs in lists
        if pairs
    ]
    return (
        el("details", el("summary", "Settings, packages and prompts"), join(shown), class_="more")
        if shown
        else join([])
    )


def _plain(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str) else json.dumps(value)
