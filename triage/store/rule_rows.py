"""Learned rules as rows, and rows as learned rules: pure. Every free text passes `clean` on its way in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from triage.domain import FilterRule, JobPrint, LearnedRule, PromptUsed, RuleOrigin
from triage.store import clean
from triage.store.base import key_behind

Row = dict[str, Any]
PREFIX = "learned."
SECRET = "its pattern holds what looks like a secret"  # noqa: S105 - a reason, no secret


def rule_id(key: int) -> str:
    """The id that people see: "learned.7"."""
    return f"{PREFIX}{key}"


def key_of(rule: str) -> int:
    """The row's number; 0 for an id that no learned rule can have."""
    return key_behind(PREFIX, rule)


def digest(pattern: str) -> str:
    return hashlib.sha256(pattern.encode("utf-8", "replace")).hexdigest()


def job_kind(job: JobPrint) -> Row:
    return {"key": clean.name(job.key), "features": clean.dump([clean.text(f) for f in job.features])}


def job_print(row: Mapping[Any, Any]) -> JobPrint:
    return JobPrint(row["key"], tuple(json.loads(row["features"])))


def new(learned: LearnedRule) -> Row:
    """A pattern that holds a secret is kept without it, and never comes into force."""
    rule, origin = learned.rule, learned.origin
    pattern = clean.text(rule.pattern)
    unsafe = pattern != clean.storable(rule.pattern)
    return {
        "digest": digest(rule.pattern),
        "pattern": pattern,
        "title": clean.text(rule.title),
        "examples": _texts(rule.examples),
        "counter_examples": _texts(rule.counter_examples),
        "state": "retired" if unsafe else learned.state,
        "reason": SECRET if unsafe else clean.text(learned.reason),
        "source": origin.by,
        "model": clean.text(origin.model),
        "prompts": clean.dump(clean.tree([asdict(prompt) for prompt in origin.prompts])),
        "sample": clean.storable(origin.sample),
        "lines": _texts(origin.lines),
        "votes": origin.votes,
        "asked": origin.asked,
        "hits": 0,
        "runs": 0,
        "last_used": None,
        "approved_by": clean.text(learned.approved_by),
    }


def _texts(values: tuple[str, ...]) -> str:
    return clean.dump([clean.text(value) for value in values])


def learned(row: Mapping[Any, Any]) -> LearnedRule:
    """row: of `rule`, with the key of its kind of job as `job`."""
    return LearnedRule(
        rule=FilterRule(
            id=rule_id(row["id"]),
            title=row["title"],
            pattern=row["pattern"],
            examples=tuple(json.loads(row["examples"])),
            counter_examples=tuple(json.loads(row["counter_examples"])),
        ),
        job=row["job"],
        state=row["state"],
        origin=RuleOrigin(
            by=row["source"],
            model=row["model"],
            prompts=tuple(PromptUsed(**prompt) for prompt in json.loads(row["prompts"])),
            sample=row["sample"],
            lines=tuple(json.loads(row["lines"])),
            votes=row["votes"],
            asked=row["asked"],
        ),
        reason=row["reason"],
        hits=row["hits"],
        runs=row["runs"],
        created=row["created_at"],
        last_used=row["last_used"],
        approved_by=row["approved_by"],
    )
