"""A diagnosis as JSON (`triage.diagnosis/1`), as text for a terminal or CI log, as markdown. Pure.

Text and markdown are made from the JSON object, so that a stored result prints the same years later.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from triage.domain import Diagnosis, Evidence, Hypothesis, Run, Similar

SCHEMA = "triage.diagnosis/1"
_STATUS = {
    "established": "the evidence says so",
    "supported": "the evidence points here; a rival is not ruled out or the line is general",
    "hypothesis": "a guess that fits; check it first",
    "unknown": "this log does not show why",
}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MIN_WIDTH = 40


def to_json(d: Diagnosis) -> dict[str, Any]:
    """The object of the contract; only JSON types, times as ISO 8601 with zone."""
    return {
        "schema": SCHEMA,
        "incident": d.incident,
        "outcome": d.outcome,
        "failure_type": d.failure_type,
        "category": d.category,
        "root_cause_class": d.root_cause_class,
        "status": d.status,
        "root_cause": d.root_cause,
        "evidence": [_evidence(e) for e in d.evidence],
        "chain": list(d.chain),
        "hypotheses": [_hypothesis(h) for h in d.hypotheses],
        "suspects": {"nodes": list(d.suspects.nodes), "ranks": list(d.suspects.ranks), "gpus": list(d.suspects.gpus)},
        "action": d.action,
        "remediation": [_drop_empty({**asdict(r), "evidence": list(r.evidence), "incidents": list(r.incidents)}, {"command"}) for r in d.remediation],
        "similar": [_similar(s) for s in d.similar],
        "runs": [_run(r) for r in d.runs],
        "progress": _drop_empty(
            {
                "last_step": d.progress.last_step,
                "last_checkpoint": d.progress.last_checkpoint,
                "lost_time": d.progress.lost_time,
                "stage": d.progress.stage,
            },
            {"last_step", "last_checkpoint", "lost_time"},
        ),
        "compression": {
            "bytes_in": d.compression.bytes_in,
            "lines_in": d.compression.lines_in,
            "lines_kept": d.compression.lines_kept,
            "bytes_kept": d.compression.bytes_kept,
            "tokens_kept": d.compression.tokens_kept,
            "dropped": [{"rule": rule, "lines": n} for rule, n in d.compression.dropped.items()],
            "folded": d.compression.folded,
            "cut": d.compression.cut,
        },
        "produced_by": d.produced_by,
        "prompts": [],
        "missing": list(d.missing),
        "fingerprint": d.fingerprint,
        "files": list(d.files),
        "timing": {stage: round(seconds, 3) for stage, seconds in d.timing.items()},
        "usage": {"llm_calls": 0, "tokens_in": 0, "tokens_out": 0, **d.usage},
    }


def _evidence(e: Evidence) -> dict[str, Any]:
    full = {
        "id": e.id, "file": e.file, "line": e.line, "text": _CONTROL.sub("�", e.text[:500]), "role": e.role, "failure_type": e.failure_type,
        "title": e.title, "signature": e.signature, "rank": e.rank, "node": e.node, "gpu": e.gpu,
        "time": _time(e.time), "repeats": e.repeats, "ranks": list(e.ranks),
    }  # fmt: skip
    return _drop_empty(full, {"title", "signature", "rank", "node", "gpu", "time", "ranks"})


def _hypothesis(h: Hypothesis) -> dict[str, Any]:
    return {
        "failure_type": h.failure_type, "root_cause_class": h.root_cause_class, "root_cause": h.root_cause, "status": h.status,
        "for": list(h.supporting), "against": list(h.against), "check": h.check,
    }  # fmt: skip


def _similar(s: Similar) -> dict[str, Any]:
    return {"incident": s.incident, "title": s.title, "score": round(s.score, 3), "why": s.why, "outcome": s.outcome, "remediation": list(s.remediation)}


def _run(r: Run) -> dict[str, Any]:
    full = {"file": r.file, "first_line": r.first_line, "last_line": r.last_line, "outcome": r.outcome, "ended_by": r.ended_by, "ended_line": r.ended_line}
    return _drop_empty(full, {"ended_by", "ended_line"})


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def _drop_empty(full: dict[str, Any], optional: set[str]) -> dict[str, Any]:
    return {k: v for k, v in full.items() if k not in optional or (v not in (None, "", [], ()))}


# ------------------------------------------------------------------------------------------------ text
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
            for e in items:
                yield from _evidence_text(e, width)
            yield ""
    if len(r["hypotheses"]) > 1:
        yield "Hypotheses"
        for i, h in enumerate(r["hypotheses"], 1):
            yield from _wrap(f"{i}. {h['failure_type']} ({h['status']}): {h['root_cause']}", width, "  ", "     ")
            marks = [f"for {', '.join(h['for'])}" if h["for"] else "", f"against {', '.join(h['against'])}" if h["against"] else ""]
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
    if r["runs"]:
        yield "Runs in this input (the last is diagnosed)"
        for run in r["runs"]:
            ended = f": {_short(run['ended_by'], width - 40)}" if run.get("ended_by") else ""
            yield from _wrap(f"{run['file']}:{run['first_line']}-{run['last_line']} {run['outcome']}{ended}", width, "  ", "     ")
        yield ""
    if r["missing"]:
        yield "Not seen"
        for note in r["missing"]:
            yield from _wrap(f"- {note}", width, "  ", "    ")
        yield ""
    if r.get("incident") is not None:
        yield f"Recorded as incident {r['incident']}."


def _facts(r: dict[str, Any], width: int) -> Iterator[str]:
    rows = [("status", f"{r['status']}: {_STATUS[r['status']]}")]
    rows.append(("cause class", r["root_cause_class"]))
    suspects = [f"{k} {', '.join(map(str, v))}" for k, v in r["suspects"].items() if v]
    rows.append(("suspects", "; ".join(suspects)) if suspects else ("", ""))
    rows.append(("action", r["action"]))
    progress = r["progress"]
    parts = [f"stage {progress['stage']}"] if progress.get("stage", "unknown") != "unknown" else []
    parts += [f"last step {progress['last_step']}"] if "last_step" in progress else []
    parts += [f"last checkpoint {progress['last_checkpoint']}"] if "last_checkpoint" in progress else []
    parts += [progress["lost_time"]] if "lost_time" in progress else []
    rows.append(("progress", ", ".join(parts)) if parts else ("", ""))
    c = r["compression"]
    if c["lines_in"]:
        rows.append(("log", f"{c['lines_in']:,} lines, {_size(c['bytes_in'])}; {c['lines_kept']:,} lines kept"))
    for name, value in rows:
        if name:
            yield from _wrap(value, width, f"  {name:<12}", " " * 14)
    yield ""


def _evidence_text(e: dict[str, Any], width: int) -> Iterator[str]:
    where = f"{e['file']}:{e['line']}"
    notes = [e["role"]]
    if e.get("repeats", 1) > 1:
        notes.append(f"x{e['repeats']}")
    if len(e.get("ranks", [])) > 1:
        notes.append(f"ranks {ranges(e['ranks'])}")
    elif e.get("rank") is not None:
        notes.append(f"rank {e['rank']}")
    if e.get("node"):
        notes.append(e["node"])
    yield from _wrap(f"{e['id']} {where}  [{', '.join(notes)}]", width, "  ", "     ")
    yield f"     | {_short(e['text'], width - 7)}"


def ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] -> "0-2,5"."""
    out: list[list[int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def _wrap(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    lines = textwrap.wrap(" ".join(str(text).split()), width, initial_indent=first, subsequent_indent=rest if rest is not None else first, break_on_hyphens=False)
    return lines or [first.rstrip()]


def _short(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: max(1, limit - 3)] + "..."


def _size(n: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n = n / 1000  # type: ignore[assignment]
    return f"{n:.1f} GB"


# ------------------------------------------------------------------------------------------------ markdown
def render_markdown(result: dict[str, Any]) -> str:
    """For a ticket or a chat: log text only inside code, so that it cannot act as markup."""
    return "\n".join(_markdown_lines(result)).rstrip() + "\n"


def _markdown_lines(r: dict[str, Any]) -> Iterator[str]:
    yield f"## {r['outcome']}: {r['failure_type']} ({r['status']})"
    yield ""
    yield _escape(r["root_cause"])
    yield ""
    for name in ("root_cause_class", "action", "produced_by"):
        yield f"- **{name.replace('_', ' ')}**: {r[name]}"
    for name, values in r["suspects"].items():
        if values:
            yield f"- **suspect {name}**: {_escape(', '.join(map(str, values)))}"
    if r["evidence"]:
        yield "\n### Evidence\n"
        for e in r["evidence"]:
            extra = f" ×{e['repeats']}" if e.get("repeats", 1) > 1 else ""
            yield f"- **{e['id']}** `{_code(e['file'])}:{e['line']}` {e['role']}{extra}"
            yield f"  ``{_code(e['text'])}``"
    if len(r["hypotheses"]) > 1:
        yield "\n### Hypotheses\n"
        for i, h in enumerate(r["hypotheses"], 1):
            yield f"{i}. **{h['failure_type']}** ({h['status']}): {_escape(h['root_cause'])}"
    if r["remediation"]:
        yield "\n### What to do\n"
        for i, step in enumerate(r["remediation"], 1):
            yield f"{i}. {_escape(step['step'])} _({step['risk']})_"
            if step.get("command"):
                yield f"   `{_code(step['command'])}`"
    if r["similar"]:
        yield "\n### Similar incidents\n"
        for s in r["similar"]:
            yield f"- **{s['incident']}** {_escape(s['title'])}: {_escape(s['why'])}"
    if r["missing"]:
        yield "\n### Not seen\n"
        for note in r["missing"]:
            yield f"- {_escape(note)}"


_MARKUP = re.compile(r"([\\*_\[\]<>#|~])")


def _escape(text: str) -> str:
    """Markup characters lose their meaning outside `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(str(text).split()))
    return "".join(p if p.startswith("`") and p.endswith("`") and len(p) > 1 else _MARKUP.sub(r"\\\1", p) for p in parts)


def _code(text: str) -> str:
    return " ".join(str(text).replace("`", "'").split())
