"""The drill-down of a report: one <details> a record, what was expected beside what was answered, and the lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triage.evaluation.answers import items, text, texts
from triage.evaluation.figures import FAULTS, figure, seconds
from triage.evaluation.page.lines import lines
from triage.evaluation.page.parts import log, quoted
from triage.evaluation.view import Report, Row, baseline_answers, outcome_pair
from triage.markup import Safe, cut, el

PAGE_TEXT = 1_200_000  # characters of cited lines of all records together
RECORD_TEXT = (1_000, 9_000)  # the least and the most of one record
CHIPS = 3
SIGNS = {"exact": ("✓", "right"), "accepted": ("≈", "accepted"), "wrong": ("✗", "wrong")}


def case_list(report: Report) -> Safe:
    """All records, the costliest mistakes first."""
    rows = report.worst_first()
    least, most = RECORD_TEXT
    room = min(most, max(least, PAGE_TEXT // max(1, len(rows))))
    return el("div", [_case(row, report, i, room) for i, row in enumerate(rows)], id="case-list", class_="case-list")


def _case(row: Row, report: Report, place: int, room: int) -> Safe:
    shown = ["right" if row.right else "wrong", row.verdict, *row.faults]
    return el(
        "details", _summary(row), _body(row, report, room), class_=f"case {'ok' if row.right else 'bad'}", data_place=place,
        data_show=" ".join(dict.fromkeys(shown)), data_want=row.want, data_got=row.got, data_tags=" ".join(row.tags),
        data_split=" ".join(row.sets), data_outcome=outcome_pair(row), data_status=row.answer.status or "none",
        data_seconds=f"{row.seconds:.3f}", data_first=row.grave,
    )  # fmt: skip


def _summary(row: Row) -> Safe:
    sign, word = SIGNS[row.verdict] if row.right or row.verdict == "wrong" else SIGNS["wrong"]
    same = row.want == row.got
    arrow = [el("span", " → ", class_="to", aria_hidden="true"), el("span", " answered ", class_="sr")]
    kinds = el("span", row.want, [] if same else [*arrow, el("b", row.got)], class_="kinds")
    short = [f for f in row.faults if f not in _told(row)]
    chips = [el("span", FAULTS[f], class_="badge", title=figure(f).means) for f in short[:CHIPS]]
    if len(short) > CHIPS:
        chips.append(
            el("span", f"+{len(short) - CHIPS}", class_="badge", title=", ".join(FAULTS[f] for f in short[CHIPS:]))
        )
    return el(
        "summary",
        el("span", el("span", sign, aria_hidden="true"), el("span", word, class_="sr"), class_=f"sign {word}"),
        el("h3", row.title, class_="id"),
        kinds,
        el("span", chips, class_="badges"),
        el("span", row.answer.status or "", class_="status"),
        el("span", seconds(row.seconds), class_="secs"),
    )


def _told(row: Row) -> set[str]:
    """Faults that others say already."""
    told = {"type_accepted", "cause_class_accepted"} if row.verdict == "wrong" else set()
    if row.problem:
        return set(FAULTS) - {"problem"}
    if {"missed_failure", "false_alarm"} & set(row.faults):
        told |= {"outcome", "action", "node_top1", "rank_top1", "any_hit", "root_hit"}
    if {"false_stop", "false_restart"} & set(row.faults):
        told |= {"action"}
    return told | ({"root_hit"} if row.bad("any_hit") else set())


# ------------------------------------------------------------------------------------------------ inside
def _body(row: Row, report: Report, room: int) -> Safe:
    got, want = row.answer.got, row.answer.want
    said = text(got.get("root_cause"))
    why = text(want.get("why"))
    return el(
        "div",
        el("div", el("h4", "Problem"), el("pre", cut(row.problem, 2000), tabindex="0"), class_="problem") if row.problem else None,
        el("div",
           el("div", el("h4", "Root cause, as answered"), log(quoted(cut(said, 600)), "p") if said else el("p", "nothing was answered", class_="none"),
              log(f"The label says: {cut(why, 400)}", "p", "why") if why else None, _steps(got), _others(got)),
           el("div", el("h4", "Expected and answered"), _against(row)), class_="two"),
        el("h4", "Labelled lines beside cited lines"),
        lines(row, room),
        _baselines(row, report),
        _missing(got),
        el("p", [[el("span", k, " ", el("b", v)), " "] for k, v in _facts(row)], class_="facts"),
        id=row.anchor, class_="body",
    )  # fmt: skip


def _against(row: Row) -> Safe:
    want, got = row.answer.want, row.answer.got
    suspects = got.get("suspects") if isinstance(got.get("suspects"), Mapping) else {}
    pairs = [
        ("Failure type", _any(row.answer.accepted_types), row.answer.failure_type, row.marks["type_accepted"]),
        ("Outcome", _any(row.answer.accepted_outcomes), row.answer.outcome, row.marks["outcome"]),
        ("Cause class", _any([*texts(want.get("root_cause_class")), *texts(want.get("root_cause_class_accept"))]),
         text(got.get("root_cause_class")), row.marks["cause_class_accepted"]),
        ("Action", _any(texts(want.get("action"))), row.answer.action, row.marks["action"]),
        ("Nodes", _list(want, "nodes"), _many(suspects, "nodes"), _nodes(row)),
        ("Ranks", _list(want, "ranks"), _many(suspects, "ranks"), row.marks["rank_top1"]),
        ("Must mention", "; ".join(_any(texts(g)) for g in items(want.get("must_mention"))), _said(row.marks["must_mention"], "said", "left out"), row.marks["must_mention"]),
        ("Must not say", _any(texts(want.get("must_not"))), _said(_not(row.marks["must_not"]), "not said", "said"), _not(row.marks["must_not"])),
    ]  # fmt: skip
    body = [
        el("tr", el("th", name, scope="row"), el("td", expected or "–"), el("td", log(answered or "–", "span"), "\u00a0", _mark(mark)))
        for name, expected, answered, mark in pairs
        if expected or answered
    ]  # fmt: skip
    head = el("tr", [el("th", h, scope="col") for h in ("", "Expected", "Answered")])
    return el("div", el("table", el("thead", head), el("tbody", body), class_="against"), class_="scroll", tabindex="0")


def _mark(value: float | None) -> Safe | None:
    if value is None:
        return None
    sign, word = SIGNS["exact"] if value else SIGNS["wrong"]
    return el("span", el("span", sign, aria_hidden="true"), el("span", word, class_="sr"), class_=f"sign {word}")


def _said(value: float | None, good: str, bad: str) -> str:
    return "" if value is None else good if value else bad


def _nodes(row: Row) -> float | None:
    top = row.marks["node_top1"]
    return top if top is not None else _not(row.marks["false_cordon"])


def _not(value: float | None) -> float | None:
    return None if value is None else 1 - value


def _any(names: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(n for n in names if n))


def _list(part: Mapping[str, Any], name: str) -> str:
    """A labelled list; an empty one is a label that says none."""
    return "" if part.get(name) is None else ", ".join(texts(part[name])) or "none"


def _many(part: Mapping[str, Any] | None, name: str) -> str:
    found = texts((part or {}).get(name))
    return ", ".join(found[:12]) + (f" and {len(found) - 12} more" if len(found) > 12 else "")


# ------------------------------------------------------------------------------------------------ more of one record
def _steps(got: Mapping[str, Any]) -> Safe | None:
    steps = [s for s in items(got.get("remediation")) if isinstance(s, Mapping)][:3]
    if not steps:
        return None
    return el(
        "div", el("h4", "Steps proposed"), el("ol", [log(quoted(cut(text(s.get("step")), 260)), "li") for s in steps])
    )


def _others(got: Mapping[str, Any]) -> Safe | None:
    """The hypotheses behind the first."""
    rest = [h for h in items(got.get("hypotheses")) if isinstance(h, Mapping)][1:4]
    named = [f"{text(h.get('failure_type'))} ({text(h.get('status'))})" for h in rest]
    return el("p", "Also considered: ", ", ".join(named), class_="none") if named else None


def _baselines(row: Row, report: Report) -> Safe | None:
    said = []
    for name, answer in baseline_answers(row, report.order or row.record.get("baselines") or ()):
        good = answer.failure_type in answer.accepted_types if answer.want_type else None
        said.append([el("span", name, " ", el("b", answer.failure_type or "no answer"), " ", _mark(good)), " "])
    return el("p", "Baselines: ", said, class_="facts") if said else None


def _missing(got: Mapping[str, Any]) -> Safe | None:
    notes = texts(got.get("missing"))
    return el("ul", [log(cut(n, 300), "li") for n in notes[:4]], class_="none") if notes else None


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    record, got = row.record, row.answer.got
    yield "took", seconds(row.seconds)
    if row.peak_mb:
        yield "peak memory", f"{row.peak_mb:,.0f} MB"
    squeezed = record.get("compressed") or {}
    if squeezed.get("bytes_in"):
        yield (
            "kept of the log",
            f"{100 * squeezed.get('bytes_kept', 0) / squeezed['bytes_in']:.0f}% of {squeezed['bytes_in']:,} bytes",
        )
    cited = record.get("citations") or {}
    if cited.get("cited"):
        yield "valid citations", f"{cited.get('valid', 0)} of {cited['cited']}"
    usage = got.get("usage") if isinstance(got.get("usage"), Mapping) else None
    if usage and usage.get("llm_calls"):
        yield (
            "tokens",
            f"{usage.get('tokens_in', 0):,} in, {usage.get('tokens_out', 0):,} out, {usage['llm_calls']} calls",
        )
    if record.get("gpu_hours"):
        yield "GPU-hours", f"{record['gpu_hours']:,.0f}"
    for name, value in (
        ("tags", ", ".join(row.tags)),
        ("split", row.split),
        ("source", cut(str(record.get("source") or ""), 160)),
    ):
        if value:
            yield name, value
    if record.get("synthetic"):
        yield "synthetic", "yes"
