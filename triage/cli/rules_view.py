"""Learned rules as text for a terminal, and as JSON. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from triage.cli.kb_view import wrapped
from triage.domain import JobPrint, LearnedRule
from triage.store.values import RuleEvent
from triage.text import printable

if TYPE_CHECKING:
    from triage.cli.rules_check import Tried

SCHEMA = "triage.rules/1"
HEAD = ("RULE", "STATE", "LINES", "RUNS", "JOB", "PATTERN")
_SHORTEST_PATTERN = 16
_LONGEST_JOB = 24


def dump(document: Mapping[str, Any]) -> str:
    """The JSON text of one answer of `triage rules`."""
    return json.dumps({"schema": SCHEMA, **document}, ensure_ascii=False)


def as_list(found: Sequence[LearnedRule], jobs: Mapping[str, JobPrint | None], width: int) -> str:
    """One line a rule; the last column takes what is left of the width."""
    rows = [HEAD, *(_cells(rule, jobs[rule.job]) for rule in found)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD) - 1)]
    left = max(width - sum(widths) - 2 * len(widths), _SHORTEST_PATTERN)
    return "".join(_line(row, widths, left) + "\n" for row in rows)


def _cells(rule: LearnedRule, job: JobPrint | None) -> tuple[str, ...]:
    ran = ", ".join(_told(job, "script") or _told(job, "framework")) or rule.job
    return (
        rule.rule.id,
        rule.state,
        str(rule.hits),
        str(rule.runs),
        printable(cut(ran, _LONGEST_JOB)),
        printable(rule.rule.pattern),
    )


def _line(row: tuple[str, ...], widths: Sequence[int], left: int) -> str:
    cells = [
        cell.rjust(w) if at in (2, 3) else cell.ljust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=False))
    ]
    return "  ".join([*cells, cut(row[-1], left)]).rstrip()


def cut(text: str, width: int) -> str:
    """At most `width` characters."""
    return text if len(text) <= width else text[: width - 3] + "..."


def as_text(rule: LearnedRule, job: JobPrint | None, history: Sequence[RuleEvent], width: int) -> str:
    """Everything that is known of a rule."""
    return "\n".join(_text(rule, job, history, width)) + "\n"


def _text(rule: LearnedRule, job: JobPrint | None, history: Sequence[RuleEvent], width: int) -> Iterator[str]:
    origin = rule.origin
    yield f"{rule.rule.id}  {rule.state}"
    yield from wrapped(rule.rule.title, width, "")
    yield from ("", "Pattern:", f"  {printable(rule.rule.pattern)}", "")
    if rule.reason:
        yield from wrapped(f"Why {rule.state}: {rule.reason}", width, "", "  ")
    used = f", last {stamp(rule.last_used)}" if rule.last_used else ""
    yield f"Took: {rule.hits} lines in {rule.runs} runs{used}"
    told = ", ".join(feature.replace(":", " ", 1) for feature in _features(job))
    yield from wrapped(f"Job: {told or 'known by its wording alone'} ({rule.job})", width, "", "  ")
    model = f" {origin.model}" if origin.model else ""
    votes = f", {origin.votes} of {origin.asked} answers agreed" if origin.asked else ""
    learned = f" on {stamp(rule.created)}" if rule.created else ""
    yield from wrapped(f"Learned from: {origin.by}{model}{learned}{votes}", width, "", "  ")
    for prompt in origin.prompts:
        yield from wrapped(f"Prompt: {prompt.name} {prompt.version} ({prompt.sha256[:12]})", width, "", "  ")
    if origin.sample:
        yield f"Sample: {origin.sample[:12]}"
    if rule.approved_by:
        yield f"Approved by: {printable(rule.approved_by)}"
    for heading, lines in (
        ("Meant for", origin.lines),
        ("Examples", rule.rule.examples),
        ("Must not take", rule.rule.counter_examples),
    ):
        if lines:
            yield from ("", f"{heading}:", *(f"  {printable(line)}" for line in lines))
    yield from ("", "History:")
    for event in history:
        change = f"{event.before} -> {event.after}" if event.before else event.after
        why = f"; {event.reason}" if event.reason else ""
        said = f"{stamp(event.at)}, {event.what} by {event.who}: {change}{why}"
        yield from wrapped(said, width, "  ", "      ")


def _features(job: JobPrint | None) -> list[str]:
    """Without the hashes of words."""
    return [feature for feature in job.features if not feature.startswith("word:")] if job else []


def _told(job: JobPrint | None, kind: str) -> list[str]:
    return [feature.partition(":")[2] for feature in _features(job) if feature.startswith(kind + ":")]


def stamp(at: datetime | None) -> str:
    """A time to read; "" for none."""
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""


def summary(rule: LearnedRule, job: JobPrint | None) -> dict[str, Any]:
    return {
        "id": rule.rule.id,
        "state": rule.state,
        "pattern": rule.rule.pattern,
        "title": rule.rule.title,
        "reason": rule.reason,
        "hits": rule.hits,
        "runs": rule.runs,
        "created": iso(rule.created),
        "last_used": iso(rule.last_used),
        "approved_by": rule.approved_by,
        "source": rule.origin.by,
        "job": {"key": rule.job, "features": _features(job)},
    }


def document(rule: LearnedRule, job: JobPrint | None, history: Sequence[RuleEvent]) -> dict[str, Any]:
    """A rule with all that is known of it."""
    return {
        **summary(rule, job),
        "examples": list(rule.rule.examples),
        "counter_examples": list(rule.rule.counter_examples),
        "origin": dataclasses.asdict(rule.origin),
        "history": [dataclasses.asdict(event) | {"at": event.at.isoformat()} for event in history],
    }


def iso(at: datetime | None) -> str | None:
    """A time for JSON."""
    return at.isoformat() if at else None


def tried_text(tried: Tried) -> str:
    """The lines as grep prints them, how many there are, and whether the rule may be adopted."""
    lines = [f"{printable(file)}:{number}:{printable(text)}" for file, number, text in tried.lines]
    more = f" ({len(lines)} shown)" if len(lines) < tried.count else ""
    result = tried.result
    verdict = "accepted" if result.accepted else f"refused ({result.check}): {printable(result.reason)}"
    total = f"takes {tried.count} line{'' if tried.count == 1 else 's'}{more}"
    return "\n".join([*lines, *([""] if lines else []), total, f"verification: {verdict}"]) + "\n"


def tried_json(tried: Tried) -> dict[str, Any]:
    return {
        "rule": tried.rule,
        "pattern": tried.pattern,
        "taken": tried.count,
        "lines": [{"file": file, "line": number, "text": text} for file, number, text in tried.lines],
        "verification": dataclasses.asdict(tried.result),
    }
