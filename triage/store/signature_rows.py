"""Learned signatures as rows, and rows as learned signatures: pure. Every free text passes `clean` on its way in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from triage.domain import SIGNATURE_PREFIX, LearnedSignature, PromptUsed, RuleOrigin, Signature
from triage.regex import compile_pattern
from triage.store import clean
from triage.store.base import key_behind
from triage.store.rule_rows import Row

# Below the weight from which a line alone establishes a cause, and above all that know an exception by its class alone.
WEIGHT = 60
APPROVED_WEIGHT = 75  # a person has looked at it
# The level of a line of no trouble, in front of its message: alone, in brackets, as a field, or glog's letter.
QUIET = (
    r"^.{0,120}?(?:(?:^|[\s\[|(<-])(?:TRACE|DEBUG|INFO|NOTICE)(?:[\s\]|)>:,-]|$)"
    r"|\[(?:trace|debug|info|notice|Trace|Debug|Info|Notice)\]|\blevel\W{1,4}(?:trace|debug|info|notice)\b)"
    r"|^\[?I\d{4} \d\d:\d\d"
)


def signature_id(key: int) -> str:
    """The id that people and evidence see: "learned-signature.7"."""
    return f"{SIGNATURE_PREFIX}{key}"


def key_of(signature: str) -> int:
    """The row's number; 0 for an id that no learned signature can have."""
    return key_behind(SIGNATURE_PREFIX, signature)


def digest(signature: Signature) -> str:
    said = f"{signature.failure_type}|{signature.patterns[0]}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


def spared(lines: Iterable[str]) -> tuple[str, ...]:
    """What no signature for these lines is asked of: lines of no trouble, unless one of its own is such a line."""
    return () if any(map(compile_pattern(QUIET).search, lines)) else (QUIET,)


def new(learned: LearnedSignature) -> Row:
    signature, origin = learned.signature, learned.origin
    return {
        "incident_id": learned.incident,
        "digest": digest(signature),
        "pattern": clean.storable(signature.patterns[0]),
        "title": clean.text(signature.title),
        "failure_type": signature.failure_type,
        "root_cause_class": signature.root_cause_class,
        "outcome": signature.outcome,
        "remedy": clean.text(signature.remedy),
        "state": learned.state,
        "reason": clean.text(learned.reason),
        "source": origin.by,
        "model": clean.text(origin.model),
        "prompts": clean.dump(clean.tree([asdict(prompt) for prompt in origin.prompts])),
        "sample": clean.storable(origin.sample),
        "lines": clean.dump([clean.text(line) for line in origin.lines]),
        "who": clean.text(learned.who),
        "expires_at": learned.expires,
        "approved_by": clean.text(learned.approved_by),
    }


def learned(row: Mapping[Any, Any]) -> LearnedSignature:
    """row: of `learned_signature`, with how many outcomes `confirmed` and `contradicted` it, and `taught_by`: the fingerprint
    of the incident that gave it, None where that was forgotten."""
    lines = tuple(json.loads(row["lines"]))
    unless = spared(lines)
    signature = Signature(
        id=signature_id(row["id"]),
        title=row["title"],
        patterns=(row["pattern"],),
        failure_type=row["failure_type"],
        root_cause_class=row["root_cause_class"],
        role="root" if unless else "cascade",  # a line of no trouble yields to each that tells of some
        remedy=row["remedy"],
        weight=APPROVED_WEIGHT if row["approved_by"] else WEIGHT,
        outcome=row["outcome"],
        unless=unless,
        fingerprint=row["taught_by"] or "",
    )
    origin = RuleOrigin(
        by=row["source"],
        model=row["model"],
        prompts=tuple(PromptUsed(**prompt) for prompt in json.loads(row["prompts"])),
        sample=row["sample"],
        lines=lines,
    )
    return LearnedSignature(
        signature=signature,
        state=row["state"],
        origin=origin,
        incident=row["incident_id"],
        who=row["who"],
        reason=row["reason"],
        confirmed=row["confirmed"],
        contradicted=row["contradicted"],
        created=row["created_at"],
        expires=row["expires_at"] if row["state"] == "candidate" else None,
        approved_by=row["approved_by"],
    )
