"""A result for a terminal or a CI log."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

from triage.report import course
from triage.report.compared import differences, places
from triage.report.stacks import tree
from triage.text import middle_cut, rank_ranges

MIN_WIDTH = 40
QUOTED_LINES = 3
CITED = 5  # lines of the cause and its consequences, without details
SIMILAR = 2
_STATUS = {
    "established": "the evidence says so",
    "supported": "the evidence points here; a rival is not ruled out or the line is general",
    "hypothesis": "a guess that fits; check it first",
    "unknown": "this log does not show why",
}


def render_text(result: dict[str, Any], width: int = 80, details: bool = False) -> str:
    """For a terminal or a CI log: fits `width` columns, no colours, no box characters.

    What failed, what to do, and the lines that say so; details: all evidence, context, chain, hypotheses and reasons too.
    """
    width = max(width, MIN_WIDTH)
    return "\n".join(_text_lines(result, width, details)).rstrip() + "\n"


def _text_lines(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    yield f"{r['outcome'].upper()}  {r['failure_type']}  ({r['status']})"
    yield from _wrap(r["root_cause"], width, "  ")
    yield ""
    yield from _facts(r, width, details)
    yield from _steps(r, width, details)
    yield from _evidence(r, width, details)
    yield from _stacks(r.get("stacks"), width)
    yield from _timeline(r, width, details)
    if details or r["status"] != "established":
        yield from _hypotheses(r, width, details)
    yield from _similar(r, width, details)
    yield from _compared(r.get("compared"), width)
    yield from _runs(r, width)
    notes = [note for note in r["missing"] if not (r["remediation"] and note.startswith("to settle it"))]
    if notes:
        yield "Not seen"
        for note in notes:
            yield from _wrap(f"- {note}", width, "  ", "    ")
        yield ""
    if r.get("incident") is not None:
        yield f"Recorded as {f'attempt {n} of ' if (n := r.get('attempt', 1)) > 1 else ''}incident {r['incident']}."


def _steps(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    if not r["remediation"]:
        return
    yield "What to do"
    for i, step in enumerate(r["remediation"], 1):
        yield from _wrap(f"{i}. {step['step']}  [{step['risk']}]", width, "  ", "     ")
        if step.get("command"):
            yield f"     $ {step['command']}"
        if details and step.get("why"):
            yield from _wrap(f"= {step['why']}", width, "     ", "       ")
    yield ""


def _evidence(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    """The lines of the cause and what followed, then those that only go with it."""
    cited = [e for e in r["evidence"] if e["role"] != "context"]
    context = [e for e in r["evidence"] if e["role"] == "context"]
    shown = cited if details else _first_of_each(cited)[:CITED]
    doubtful = r["status"] in ("hypothesis", "unknown")
    beside = context if details else context[:2] if doubtful else []
    for title, items in (("Evidence", shown), ("Context", beside)):
        if items:
            yield title
            for before, e in zip([{}, *items[:-1]], items, strict=True):
                yield from _evidence_text(e, width, means=e.get("title", "") != before.get("title", ""))
            if title == "Evidence" and len(shown) < len(cited):
                yield f"  {len(cited) - len(shown)} more and their context: --verbose"
            yield ""


def _stacks(stacks: dict[str, Any] | None, width: int) -> Iterator[str]:
    """A branch of the tree keeps its indent where it is wrapped."""
    if stacks is None:
        return
    yield "Stacks, by rank"
    for row in tree(stacks):
        indent = "  " + " " * (len(row) - len(row.lstrip()))
        yield from _wrap(row, width, indent, f"{indent}    ")
    yield ""


def _first_of_each(cited: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of lines that mean the same, the first two."""
    seen: Counter[str] = Counter()
    kept = []
    for e in cited:
        seen[e.get("title", "")] += 1
        if seen[e.get("title", "")] <= 2:
            kept.append(e)
    return kept


def _hypotheses(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    if len(r["hypotheses"]) < 2:
        return
    yield "Other hypotheses"
    for i, h in enumerate(r["hypotheses"][1:], 1):
        yield from _wrap(f"{i}. {h['failure_type']} ({h['status']}): {h['root_cause']}", width, "  ", "     ")
        marks = [f"{name} {', '.join(h[name])}" for name in ("for", "against") if h[name]]
        if marks and details:
            yield "     " + "; ".join(marks)
    yield ""


def _similar(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    shown = r["similar"] if details else [s for s in r["similar"] if _tells(s)][:SIMILAR]
    if shown:
        yield "Similar incidents"
        for s in shown:
            yield from _wrap(f"{s['incident']}: {s['title']}", width, "  ", "     ")
            yield from _wrap(s["why"], width, "     ", "     ")
        yield ""


def _tells(similar: dict[str, Any]) -> bool:
    """Does more than its type and words of plain English make it alike? Terms with a digit, a capital or an underscore do."""
    why = str(similar["why"])
    named = ("same fingerprint", "same signature", "both mention", "same component")
    shared = re.search(r"shared words ((?:`[^`]*`(?:, )?)+)", why)
    terms = re.findall(r"`([^`]*)`", shared[1]) if shared else []
    return any(reason in why for reason in named) or any(re.search(r"\d|_|[A-Z]{2}|[a-z][A-Z]", term) for term in terms)


def _runs(r: dict[str, Any], width: int) -> Iterator[str]:
    if r["runs"]:
        yield "Runs in this input (the last is diagnosed)"
        for run in r["runs"]:
            ended = f": {_short(run['ended_by'], width - 40)}" if run.get("ended_by") else ""
            yield from _wrap(
                f"{run['file']}:{run['first_line']}-{run['last_line']} {run['outcome']}{ended}", width, "  ", "     "
            )
        yield ""


def _timeline(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    rows = course.timeline_rows(r, details)
    if rows:
        yield "Timeline"
        for row in rows:
            yield from _wrap(row, width, "  ", "     ")
        yield ""


def _facts(r: dict[str, Any], width: int, details: bool) -> Iterator[str]:
    rows = [("job" if i == 0 else " ", said) for i, said in enumerate(r.get("account", ()))]
    rows.append(("action", r["action"]))
    rows.append(("status", f"{r['status']}: {_STATUS[r['status']]}") if r["status"] != "established" else ("", ""))
    suspects = [f"{k} {', '.join(map(str, v))}" for k, v in r["suspects"].items() if v]
    rows.append(("suspects", "; ".join(suspects)) if suspects else ("", ""))
    for name, parts in (("progress", course.progress_parts(r)), ("cost", course.cost_parts(r))):
        rows.append((name, ", ".join(parts)) if parts else ("", ""))
    rows.append(("again", again) if (again := course.recurrence_text(r)) else ("", ""))
    c = r["compression"]
    if details:
        rows.append(("cause class", r["root_cause_class"]))
        rows.append(("chain", course.chain_text(r)) if len(r["chain"]) > 1 else ("", ""))
        if c["lines_in"]:
            rows.append(("log", f"{c['lines_in']:,} lines, {size_text(c['bytes_in'])}; {c['lines_kept']:,} lines kept"))
    for name, value in rows:
        if name:
            yield from _wrap(value, width, f"  {name:<12}", " " * 14)
    yield ""


def _evidence_text(e: dict[str, Any], width: int, means: bool = True) -> Iterator[str]:
    """means: whether to say what the line means, as the one before it may mean the same."""
    where = f"{e['file']}:{e['line']}"
    notes = [e["role"]]
    if e.get("repeats", 1) > 1:
        notes.append(f"x{e['repeats']}")
    if len(e.get("ranks", [])) > 1:
        notes.append(f"ranks {rank_ranges(e['ranks'])}")
    elif e.get("rank") is not None:
        notes.append(f"rank {e['rank']}")
    if e.get("node"):
        notes.append(e["node"])
    yield from _wrap(f"{e['id']} {where}  [{', '.join(notes)}]", width, "  ", "     ")
    yield from _quoted(e["text"], width, QUOTED_LINES if e["role"] == "root" else 2)
    if e.get("title") and means and not (e["id"] == "E1" and e["role"] == "root"):
        yield from _wrap(e["title"], width, "     = ", "       ")


def _compared(compared: dict[str, Any] | None, width: int) -> Iterator[str]:
    if compared is None:
        return
    yield from _wrap(f"Against the good run ({compared['words']})", width, "", "  ")
    found = list(differences(compared))
    for name, d in found:
        where = f"{name:<8} {d['kind']}  {places(d)}".rstrip()
        yield from _wrap(where, width, "  ", "     ")
        yield from _quoted(d["text"], width)
        yield from _wrap(d["why"], width, "     = ", "       ")
    if not found:
        yield "  no difference that tells anything"
    yield ""


def _quoted(text: str, width: int, most: int = QUOTED_LINES) -> Iterator[str]:
    """At most so many lines of the cited one, which loses its middle rather than its end."""
    short = middle_cut(" ".join(text.split()), (width - 7) * most - most * 8)
    lines = textwrap.wrap(short, width - 7, break_on_hyphens=False)
    for line in lines or [""]:
        yield f"     | {line}".rstrip()


def _wrap(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    lines = textwrap.wrap(
        " ".join(str(text).split()),
        width,
        initial_indent=first,
        subsequent_indent=rest if rest is not None else first,
        break_on_hyphens=False,
    )
    return lines or [first.rstrip()]


def _short(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: max(1, limit - 3)] + "..."


def size_text(n: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n = n / 1000  # type: ignore[assignment]
    return f"{n:.1f} GB"
