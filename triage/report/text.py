"""A result for a terminal or a CI log."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from triage.report import course
from triage.report.compared import differences, places
from triage.text import rank_ranges

MIN_WIDTH = 40
QUOTED_LINES = 3
_STATUS = {
    "established": "the evidence says so",
    "supported": "the evidence points here; a rival is not ruled out or the line is general",
    "hypothesis": "a guess that fits; check it first",
    "unknown": "this log does not show why",
}


def render_text(result: dict[str, Any], width: int = 80) -> str:
    """For a terminal or a CI log: fits `width` columns, no colours, no box characters."""
    width = max(width, MIN_WIDTH)
    return "\n".join(_text_lines(result, width)).rstrip() + "\n"


def _text_lines(r: dict[str, Any], width: int) -> Iterator[str]:
    yield f"{r['outcome'].upper()}  {r['failure_type']}  ({r['status']})"
    yield from _wrap(r["root_cause"], width, "  ")
    yield ""
    yield from _facts(r, width)
    cited = [e for e in r["evidence"] if e["role"] != "context"]
    context = [e for e in r["evidence"] if e["role"] == "context"]
    for title, items in (("Evidence", cited), ("Context", context)):
        if items:
            yield title
            for before, e in zip([{}, *items[:-1]], items, strict=True):
                yield from _evidence_text(e, width, means=e.get("title", "") != before.get("title", ""))
            yield ""
    yield from _timeline(r, width)
    if len(r["hypotheses"]) > 1:
        yield "Other hypotheses"
        for i, h in enumerate(r["hypotheses"][1:], 1):
            said = h["root_cause"]
            yield from _wrap(f"{i}. {h['failure_type']} ({h['status']}): {said}", width, "  ", "     ")
            marks = [
                f"for {', '.join(h['for'])}" if h["for"] else "",
                f"against {', '.join(h['against'])}" if h["against"] else "",
            ]
            if any(marks):
                yield "     " + "; ".join(m for m in marks if m)
        yield ""
    if r["remediation"]:
        yield "What to do"
        for i, step in enumerate(r["remediation"], 1):
            yield from _wrap(f"{i}. {step['step']}  [{step['risk']}]", width, "  ", "     ")
            if step.get("command"):
                yield f"     $ {step['command']}"
        yield ""
    if r["similar"]:
        yield "Similar incidents"
        for s in r["similar"]:
            yield from _wrap(f"{s['incident']}: {s['title']}", width, "  ", "     ")
            yield from _wrap(s["why"], width, "     ", "     ")
        yield ""
    yield from _compared(r.get("compared"), width)
    if r["runs"]:
        yield "Runs in this input (the last is diagnosed)"
        for run in r["runs"]:
            ended = f": {_short(run['ended_by'], width - 40)}" if run.get("ended_by") else ""
            yield from _wrap(
                f"{run['file']}:{run['first_line']}-{run['last_line']} {run['outcome']}{ended}", width, "  ", "     "
            )
        yield ""
    notes = [note for note in r["missing"] if not (r["remediation"] and note.startswith("to settle it"))]
    if notes:
        yield "Not seen"
        for note in notes:
            yield from _wrap(f"- {note}", width, "  ", "    ")
        yield ""
    if r.get("incident") is not None:
        yield f"Recorded as {f'attempt {n} of ' if (n := r.get('attempt', 1)) > 1 else ''}incident {r['incident']}."


def _timeline(r: dict[str, Any], width: int) -> Iterator[str]:
    rows = course.timeline_rows(r)
    if rows:
        yield "Timeline"
        for row in rows:
            yield from _wrap(row, width, "  ", "     ")
        yield ""


def _facts(r: dict[str, Any], width: int) -> Iterator[str]:
    rows = [("status", f"{r['status']}: {_STATUS[r['status']]}")]
    rows.append(("cause class", r["root_cause_class"]))
    suspects = [f"{k} {', '.join(map(str, v))}" for k, v in r["suspects"].items() if v]
    rows.append(("suspects", "; ".join(suspects)) if suspects else ("", ""))
    rows.append(("action", r["action"]))
    for name, parts in (("progress", course.progress_parts(r)), ("cost", course.cost_parts(r))):
        rows.append((name, ", ".join(parts)) if parts else ("", ""))
    rows.append(("again", again) if (again := course.recurrence_text(r)) else ("", ""))
    rows.append(("chain", " > ".join(r["chain"])) if len(r["chain"]) > 1 else ("", ""))
    c = r["compression"]
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
    yield from _quoted(e["text"], width)
    if e.get("title") and means:
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


def _quoted(text: str, width: int) -> Iterator[str]:
    """At most three lines of the cited one."""
    lines = textwrap.wrap(
        " ".join(text.split()), width - 7, max_lines=QUOTED_LINES, placeholder=" ...", break_on_hyphens=False
    )
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
