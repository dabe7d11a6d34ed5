"""Candidates for the cause: fatal findings of one kind together, and which explains which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from triage.diagnose.facts import Facts
from triage.domain import Cascade, Signature
from triage.evidence.match import Finding

SKEW = timedelta(seconds=3)  # clocks of hosts; also the buffering of output
INTERLEAVED = 3  # lines that ranks may print out of order into one file
FIRST_BONUS = 12  # what being first is worth, in points of signature weight


@dataclass(frozen=True, slots=True)
class Candidate:
    """Fatal findings of one signature, in order of file and line."""

    signature: Signature
    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def failure_type(self) -> str:
        return self.signature.failure_type


@dataclass(frozen=True, slots=True)
class Explained:
    effect: Candidate
    by: Candidate
    rule: Cascade

    @property
    def why(self) -> str:
        return self.rule.why


def candidates(facts: Facts, roles: Iterable[str]) -> list[Candidate]:
    """Fatal findings with one of the roles, grouped by signature, the earliest group first."""
    wanted = frozenset(roles)
    groups: dict[str, list[Finding]] = {}
    signatures: dict[str, Signature] = {}
    for finding in facts.findings:
        if finding.signature.role in wanted and not facts.handled(finding):
            groups.setdefault(finding.signature.id, []).append(finding)
            signatures[finding.signature.id] = finding.signature
    return [Candidate(signatures[name], tuple(found)) for name, found in groups.items()]


def not_later(cause: Finding, effect: Finding) -> bool:
    """Is the cause at or before the effect, as far as lines and clocks can tell?"""
    if cause.line.file == effect.line.file:
        return cause.line.number <= effect.line.number + INTERLEAVED
    if cause.line.time and effect.line.time:
        return cause.line.time <= effect.line.time + SKEW
    return True


def earlier(cause: Finding, effect: Finding) -> bool:
    """Does the cause stand before the effect, and no clock says otherwise?"""
    a, b = cause.line, effect.line
    if a.file == b.file:
        return a.number < b.number and not (a.time and b.time and a.time > b.time + SKEW)
    return bool(a.time and b.time and a.time < b.time)


_IN_ORDER = {"any": lambda _cause, _effect: True, "before": not_later, "first": earlier}


def explains(cause: Candidate, effect: Candidate, rules: Sequence[Cascade]) -> Cascade | None:
    """The rule by which `cause` explains `effect`, if any."""
    if cause.signature.id == effect.signature.id:
        return None
    for rule in rules:
        if not _named(cause, rule.cause) or not _named(effect, rule.effect):
            continue
        if _IN_ORDER[rule.order](cause.first, effect.first):
            return rule
    return None


def _named(candidate: Candidate, names: Sequence[str]) -> bool:
    return (
        candidate.failure_type in names
        or candidate.signature.id in names
        or ("*cascade*" in names and candidate.signature.role == "cascade")
    )


def explanations(found: Sequence[Candidate], rules: Sequence[Cascade]) -> list[Explained]:
    """Every pair where one candidate explains another. Where both explain each other, the stronger or earlier one does."""
    pairs = []
    for cause in found:
        for effect in found:
            rule = explains(cause, effect, rules)
            back = explains(effect, cause, rules) if rule else None
            if rule and (back is None or _wins(cause, rule, effect, back)):
                pairs.append(Explained(effect, cause, rule))
    return pairs


def _wins(cause: Candidate, rule: Cascade, effect: Candidate, back: Cascade) -> bool:
    """Where each explains the other: the rule that names the effect itself, else the better cause."""
    named, back_named = effect.signature.id in rule.effect, cause.signature.id in back.effect
    return named if named != back_named else not _beats(effect, cause)


def _beats(a: Candidate, b: Candidate) -> bool:
    """a is the better cause of the two: more specific, else earlier."""
    if abs(a.signature.weight - b.signature.weight) > FIRST_BONUS:
        return a.signature.weight > b.signature.weight
    return _earlier(a, b)


def _earlier(a: Candidate, b: Candidate) -> bool:
    x, y = a.first.line, b.first.line
    if x.file == y.file:
        return x.number < y.number
    return bool(x.time and y.time and x.time < y.time - SKEW)


def rank_causes(found: Sequence[Candidate], pairs: Sequence[Explained]) -> list[Candidate]:
    """Candidates from the likeliest cause down: unexplained ones first, then by weight with a bonus for being first."""
    explained = {e.effect.signature.id for e in pairs}

    def points(c: Candidate) -> tuple[int, int, int]:
        first = not any(_earlier(other, c) for other in found if other is not c)
        consequences = sum(1 for e in pairs if e.by is c)
        return (
            0 if c.signature.id in explained else 1,
            c.signature.weight + (FIRST_BONUS if first else 0) + min(consequences, 3) * 2,
            -c.first.line.number,
        )

    return sorted(found, key=points, reverse=True)
