"""A result for a ticket or a chat message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from triage.report import course
from triage.report.compared import differences, places
from triage.report.stacks import tree


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
    yield from _course(r)
    if r["evidence"]:
        yield "\n### Evidence\n"
        for e in r["evidence"]:
            extra = f" ×{e['repeats']}" if e.get("repeats", 1) > 1 else ""
            yield f"- **{e['id']}** `{_code(e['file'])}:{e['line']}` {e['role']}{extra}"
            yield f"  ``{_code(e['text'])}``"
    yield from _stacks(r.get("stacks"))
    yield from _timeline(r)
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
    if r.get("compared"):
        yield f"\n### Against the good run\n\n{_escape(r['compared']['words'])}\n"
        for name, d in differences(r["compared"]):
            yield f"- **{name}** {d['kind']} `{_code(places(d)) or '-'}`: {_escape(d['why'])}"
            yield f"  ``{_code(d['text'])}``"
    if r["missing"]:
        yield "\n### Not seen\n"
        for note in r["missing"]:
            yield f"- {_escape(note)}"


def _stacks(stacks: dict[str, Any] | None) -> Iterator[str]:
    if stacks:
        yield "\n### Stacks, by rank\n"
        yield from (f"    {row}" for row in tree(stacks))


def _course(r: dict[str, Any]) -> Iterator[str]:
    yield from (f"- **job**: {_escape(said)}" for said in r.get("account", ()))
    for name, parts in (("progress", course.progress_parts(r)), ("cost", course.cost_parts(r))):
        if parts:
            yield f"- **{name}**: {_escape(', '.join(parts))}"
    if again := course.recurrence_text(r):
        yield f"- **again**: {_escape(again)}"


def _timeline(r: dict[str, Any]) -> Iterator[str]:
    rows = course.timeline_rows(r)
    if rows:
        yield "\n### Timeline\n"
        yield from (f"- {_escape(row)}" for row in rows)


_MARKUP = re.compile(r"([\\*_\[\]<>#|~])")


def _escape(text: str) -> str:
    """Markup characters lose their meaning outside `code`."""
    parts = re.split(r"(`[^`]*`)", " ".join(str(text).split()))
    return "".join(
        p if p.startswith("`") and p.endswith("`") and len(p) > 1 else _MARKUP.sub(r"\\\1", p) for p in parts
    )


def _code(text: str) -> str:
    return " ".join(str(text).replace("`", "'").split())
