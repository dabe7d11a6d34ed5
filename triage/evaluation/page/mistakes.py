"""What went wrong, by name: the costly mistakes before any average, and what is wrong with each answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triage.evaluation.answers import texts
from triage.evaluation.figures import counted
from triage.evaluation.page.parts import pick, quoted, section
from triage.evaluation.view import Report, Row
from triage.markup import Safe, cut, el

MISTAKES: Mapping[str, tuple[str, str]] = {
    "problem": ("Crashes and timeouts", "no answer, for whatever reason: counted as wrong everywhere"),
    "missed_failure": ("Missed failures", "a failed job called healthy: nobody looks"),
    "false_alarm": ("False alarms", "a healthy job called otherwise: somebody is woken for nothing"),
    "must_not": ("Misleading types", "a type that the label says would send people the wrong way"),
    "false_stop": ("Needless stops", "a person is asked to fix something, where a restart would have done"),
    "false_restart": ("Useless restarts", "a restart is proposed, where it would fail again"),
    "false_cordon": ("Wrong nodes accused", "a node is named as suspect that the label does not name"),
    "wrong": ("Other wrong answers", "type or outcome are not the labelled ones, nor accepted"),
    "node_top1": (
        "Guilty nodes missed",
        "the label names a node to blame; the first suspect is another, or there is none",
    ),
    "rank_top1": (
        "Guilty ranks missed",
        "the label names a rank to blame; the first suspect is another, or there is none",
    ),
}
SUSPECTS = ("node_top1", "rank_top1")
SHOWN = 12
EXAMPLES = 140
LISTED = 80  # characters of a list of nodes, ranks or actions


def mistakes(report: Report) -> Safe:
    """The costly mistakes by name, before any average; each record is told once, under its costliest mistake."""
    told: set[str] = set()
    shown, none = [], []
    for name, (head, _) in MISTAKES.items():
        rows = _rest(report, told) if name == "wrong" else report.having(name)
        if rows:
            shown.append(_group(name, rows, told, report))
            told |= {r.anchor for r in rows}
        elif name == "problem" or report.all.get(name):
            none.append(f"{head.lower()} (0 of {(report.all.get(name) or {}).get('n', len(report.rows))})")
    clean = el("p", el("b", "None: "), ", ".join(none), class_="good") if none else None
    groups = el("div", shown, class_="mistakes") if shown else None
    about = (
        "The costly mistakes first: the type labelled → the type answered, and what else is wrong. "
        "A case leads to its lines, a count to all cases of its kind."
    )
    return section("mistakes", "What went wrong", clean, groups, about=about)


def _rest(report: Report, told: set[str]) -> list[Row]:
    return [r for r in report.rows if not r.right and r.anchor not in told]


def _group(name: str, rows: Sequence[Row], told: set[str], report: Report) -> Safe:
    head, means = MISTAKES[name]
    new, again = [[r for r in rows if (r.anchor in told) is before] for before in (False, True)]
    count = _count(name, rows, report)
    links = [[el("a", r.title, href=f"#{r.anchor}"), " "] for r in again[:SHOWN]]
    rest = f"and {len(again) - SHOWN} more " if len(again) > SHOWN else ""
    return el(
        "div",
        el("h3", head, " ", count if name == "wrong" else pick(count, {"show": name}), class_="counted"),
        el("p", means, class_="note"),
        el("ul", [_one(r, name) for r in new[:SHOWN]]) if new else None,
        el("p", pick(f"and {len(new) - SHOWN} more", {"show": name}), class_="note") if len(new) > SHOWN else None,
        el("p", "Counted here too, named above: ", links, rest, class_="note") if again else None,
        class_="mistake",
    )


def _count(name: str, rows: Sequence[Row], report: Report) -> str:
    metric = report.all.get(name)
    if not metric or report.repeats > 1:
        return f"{len(rows)}"
    return counted({**metric, "value": len(rows) / metric["n"]})


def _one(r: Row, name: str) -> Safe:
    said = "" if name in SUSPECTS else cut(str(r.answer.got.get("root_cause") or ""), EXAMPLES)
    return el(
        "li", el("a", r.title, href=f"#{r.anchor}"), " ", el("span", " · ".join(wrong(r, name)), class_="log", dir="ltr"),
        el("span", quoted(said), class_="log said", dir="ltr") if said else None,
    )  # fmt: skip


def wrong(r: Row, name: str = "") -> Iterator[str]:
    """The type labelled and answered, then each part of the answer that is wrong beside what the label says. name: the mistake under
    which it is told, which says some of it."""
    if r.problem:
        yield f"{r.want} → {cut(r.problem, 120)}"
        return
    yield r.want if r.want == r.got else f"{r.want} → {r.got}{' (accepted)' if r.verdict == 'accepted' else ''}"
    want = r.answer.want
    if name in SUSPECTS:
        what = name.removesuffix("_top1")
        named = r.answer.nodes if what == "node" else r.answer.ranks
        yield f"{f'{what} {_listed(named)}' if named else f'no {what}'} named, label: {_listed(want.get(f'{what}s'))}"
        return
    if r.bad("outcome") and name not in ("missed_failure", "false_alarm"):
        yield f"outcome {r.answer.outcome or 'not given'} instead of {' or '.join(r.answer.accepted_outcomes)}"
    if r.bad("false_cordon"):
        yield f"accuses {_listed(r.answer.nodes)}, label: {_listed(want.get('nodes')) or 'no node'}"
    if r.bad("action") and not r.answer.healthy:
        yield f"action {r.answer.action or 'not given'} instead of {cut(' or '.join(texts(want.get('action'))), LISTED)}"


def _listed(values: object) -> str:
    return cut(", ".join(texts(values)), LISTED)
