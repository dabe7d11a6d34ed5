"""Verification of learned rules for the command line: again before they are approved, and on a log for a trial."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from triage import kb, learned, pipeline
from triage.cli import wiring
from triage.cli.learned_rules import LearnedRules
from triage.compress.takes import LineTakers, taker
from triage.compress.verify import MIN_LINES, Verifier
from triage.domain import FilterRule, JobLog, LearnedRule, RuleCheck, RuleOrigin
from triage.errors import KnowledgeError, NotFoundError, UsageError

if TYPE_CHECKING:
    from triage.store.rules import RuleStore

# No reason of a person outweighs these.
NEVER = frozenset(("empty", "compiles", "size", "protected", "hides"))
_NAMED = 3  # lines that a pattern of the user's own is taken to be meant for


def again(store: RuleStore, rule: LearnedRule) -> RuleCheck:
    """Whether the rule may be adopted today: judged on the lines that it was learned from."""
    others = tuple(other for other in store.in_force(rule.job) if other.rule.id != rule.rule.id)
    sample = [(line, MIN_LINES) for line in rule.origin.lines]
    in_force = (*kb.filter_rules(), *learned.applied(others))
    named = tuple(dict.fromkeys((*rule.origin.lines, *rule.rule.examples)))
    return wiring.verifier(store).check(rule.rule, named, sample, in_force)


def demand(rule: str, result: RuleCheck, anyway: bool, reason: str) -> None:
    """Errors: UsageError, when the rule may not be put in force."""
    if result.accepted:
        return
    said = f"{rule} is refused: {result.reason}"
    if result.check in NEVER:
        raise UsageError(said, "no reason outweighs that: write a narrower rule")
    if not anyway or not reason:
        raise UsageError(said, "to use it all the same: --anyway --reason WHY")


@dataclass(frozen=True, slots=True)
class Tried:
    """What a rule takes of a log. lines: (file, number, text) of the first; count: of all; result: of verification."""

    rule: str
    pattern: str
    lines: tuple[tuple[str, int, str], ...]
    count: int
    result: RuleCheck


def tried(rule: str | None, pattern: str | None, paths: Sequence[str], limit: int) -> Tried:
    """A rule by its id, or a pattern. Errors: NotFoundError, InputError, UsageError for a pattern that is none."""
    settings = wiring.settings()
    source = LearnedRules(settings.database_url, writes=False)
    known = wiring.parts(settings, lambda _text: None, record=False, similar=False, rules=source)
    found = _of_pattern(pattern) if pattern is not None else _of_id(rule or "", source)
    taken = pipeline.taken_by(found.rule, paths, known)
    shown = tuple((file, line.number, line.text) for file, line in itertools.islice(taken, limit))
    count = len(shown) + sum(1 for _ in taken)
    with wiring.rule_store(settings) as store:
        result = _verdict(found, pipeline.read(paths, known), wiring.verifier(store))
    if not count and result.check == "named":
        result = RuleCheck(False, "named", "it takes no line of this log that rules in force do not take already")
    return Tried(rule or "pattern", found.rule.pattern, shown, count, result)


def _of_pattern(pattern: str) -> LearnedRule:
    rule = FilterRule("pattern", "", pattern)
    try:
        _ = taker(pattern).matcher
    except KnowledgeError as error:
        raise UsageError(f"--pattern cannot be used: {error.message.removeprefix(': ')}", error.hint) from None
    return LearnedRule(rule, "", "candidate", RuleOrigin("user"))


def _of_id(rule: str, source: LearnedRules) -> LearnedRule:
    shipped = next((known for known in kb.filter_rules() if known.id == rule), None)
    if shipped is not None:
        raise UsageError(
            f"{rule} is a shipped rule, which its own examples prove", f"triage compress --dropped {rule} PATH..."
        )
    found = source.find(rule)
    if found is None:
        raise NotFoundError(f"no learned rule {rule!r}", "see: triage rules list")
    return found


def _verdict(rule: LearnedRule, log: JobLog, verifier: Verifier) -> RuleCheck:
    """On the lines that other rules leave over."""
    sample = learned.sample(log, but=rule.rule.id)
    named = rule.origin.lines
    if not named:
        places = LineTakers([line for line, _ in sample]).of([rule.rule])[0]
        named = tuple(sample[at][0] for at in sorted(places)[:_NAMED])
    others = tuple(other for other in log.learned if other.rule.id != rule.rule.id)
    return verifier.check(rule.rule, named, sample, (*kb.filter_rules(), *learned.applied(others)))
