"""A run in short, for a ticket or a change: the table of results, the worst types, the wrong cases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from triage.evaluation import record, view
from triage.evaluation.figures import FAULTS, figure, percent, with_interval
from triage.evaluation.page.parts import stamp
from triage.evaluation.view import Report, Row
from triage.markup import cut, visible

NAME = "summary.md"
SHOWN = (
    "type_accepted", "type_exact", "macro_f1_accepted", "outcome", "cause_class_accepted", "node_top1", "rank_top1", "root_hit", "any_hit",
    "evidence_f1", "action", "must_mention", "missed_failure", "false_alarm", "must_not", "false_stop", "false_restart", "false_cordon", "citation_valid", "decisive_kept",
    "bytes_removed", "seconds_median", "seconds_p95", "peak_mb_max",
)  # fmt: skip
ALWAYS = ("type_accepted", "outcome", "missed_failure", "false_alarm")
WORST = 8
CASES = 40


def write(run: Path) -> Path:
    """summary.md in a run folder. Errors: InputError, UsageError."""
    target = run / NAME
    record.write_text(target, [_summary(view.load(run))])
    return target


def summary(run: Path, metrics: Mapping[str, Any] | None = None) -> str:
    """The summary of a run folder. metrics: the object of metrics.json, read from the folder by default. Errors: InputError."""
    return _summary(view.load(run, metrics))


def _summary(report: Report) -> str:
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    run = report.run
    yield f"# Evaluation of triage: {report.cases} cases"
    yield ""
    facts = [
        f"triage {code(run.get('version') or '?')}", f"commit {code(str(run['commit'])[:12])}" if run.get("commit") else "",
        f"model {code(report.model)}" if report.model else "no model", f"{report.repeats} repeats" if report.repeats > 1 else "",
        stamp(run.get("started")),
    ]  # fmt: skip
    yield ", ".join(filter(None, facts)) + ". In brackets: 95% intervals."
    yield ""
    if report.unfinished:
        yield f"**{report.unfinished}**\n"
    yield from results(report)
    if report.seen:
        yield f"\n{report.seen}"
    yield from _worst(report)
    yield from _wrong(report)


def results(report: Report) -> Iterator[str]:
    """The tool beside the baselines."""
    order = report.order
    yield _row(["measure", "n", "triage", *map(word, order)])
    yield _row(["---", "---:", *["---"] * (1 + len(order))])
    for name in SHOWN:
        what, metric = figure(name), report.all.get(name)
        if metric or name in ALWAYS:
            low = " (lower is better)" if what.better == "low" else ""
            figures = [with_interval(report.baselines[b].get(name), what.unit) for b in order]
            n = str(metric["n"]) if metric else "0"
            yield _row(
                [f"{what.label}{low}", n, with_interval(metric, what.unit) if metric else "not labelled", *figures]
            )


def _worst(report: Report) -> Iterator[str]:
    bad = [t for t in view.by_type(report.rows) if t.rows and t.accepted < len(t.rows)]
    if not bad:
        return
    yield "\n## Worst types\n"
    for t in bad[:WORST]:
        wrong = [f"{code(r.title)} as {word(r.got)}" for r in t.rows if r.verdict == "wrong"]
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        yield f"- **{word(t.name)}**: {t.accepted} of {len(t.rows)} right ({percent(t.accepted / len(t.rows))}); {', '.join(wrong[:5])}{more}"
    if len(bad) > WORST:
        yield f"- and {len(bad) - WORST} more types that were not always right"


def _wrong(report: Report) -> Iterator[str]:
    wrong = [r for r in report.worst_first() if not r.right]
    if not wrong:
        yield f"\nNo case is wrong by failure type or outcome, of {len(report.rows)}."
        return
    yield f"\n## Wrong: {len(wrong)} of {len(report.rows)}\n"
    yield _row(["case", "labelled", "answered", "what", "said"])
    yield _row(["---"] * 5)
    for r in wrong[:CASES]:
        yield _row(
            [
                code(r.title),
                r.want,
                r.got,
                _faults(r),
                code(cut(r.problem or str(r.answer.got.get("root_cause") or ""), 120)),
            ]
        )
    if len(wrong) > CASES:
        yield f"\nand {len(wrong) - CASES} more, in report.html."


def _faults(row: Row) -> str:
    return ", ".join(FAULTS[f] for f in (["problem"] if row.problem else row.faults)[:3])


def code(text: object) -> str:
    """Text as code, in which nothing acts; also inside a table. "" stays empty."""
    line = re.sub(r"\s+", " ", visible(str(text))).strip().replace("`", "'").replace("|", "\\|")
    return f"`{line}`" if line else ""


def word(text: str) -> str:
    """A name as it is; anything that is no plain name as code."""
    return text if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 -]*", text) else code(text)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
