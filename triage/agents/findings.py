"""What a learning session has found so far: rules that were adopted, and those refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from triage.compress.takes import LineTakers
from triage.compress.verify import Verifier
from triage.domain import FilterRule, LearnedRule, RuleCheck, RuleOrigin, RuleState
from triage.redact import redact

NOT_KEPT = frozenset({"duplicate", "secret"})


class Findings:
    """in_force grows by what is adopted; lines: those left over, with how often each stands in the log."""

    def __init__(self, verifier: Verifier, in_force: list[FilterRule], lines: Sequence[tuple[str, int]]) -> None:
        self._verifier = verifier
        self.in_force = in_force
        self.lines = lines
        self.rules: list[LearnedRule] = []

    @property
    def adopted(self) -> list[LearnedRule]:
        return [learned for learned in self.rules if learned.state in ("active", "shadow")]

    def rule(self, title: str, pattern: str, lines: Sequence[str]) -> FilterRule:
        return FilterRule(f"new.{len(self.rules) + 1}", title, pattern, tuple(lines))

    def check(self, rule: FilterRule) -> RuleCheck:
        if redact(rule.pattern) != rule.pattern:
            return RuleCheck(False, "secret", "its pattern holds what looks like a secret, or the place of one")
        return self._verifier.check(rule, rule.examples, self.lines, self.in_force)

    def take(self, rule: FilterRule, origin: RuleOrigin, state: RuleState, reason: str) -> RuleCheck:
        """Verifies the rule, and adopts it in this state or keeps it as refused. A duplicate is not worth keeping."""
        found = self.check(rule)
        if found.accepted:
            self.adopt(rule, origin, state, reason)
        elif found.check not in NOT_KEPT:
            self.keep(rule, origin, found.reason)
        return found

    def adopt(self, rule: FilterRule, origin: RuleOrigin, state: RuleState, reason: str) -> None:
        """A rule that was verified."""
        self.in_force.append(rule)
        self.rules.append(LearnedRule(rule, "", state, origin, reason))

    def keep(self, rule: FilterRule, origin: RuleOrigin, reason: str) -> None:
        """As a candidate that is not in force, so that it is not tried again."""
        self.rules.append(LearnedRule(rule, "", "candidate", origin, reason))

    def is_taken(self, line: str) -> bool:
        """Does a rule adopted in this session take the line?"""
        mine = [learned.rule for learned in self.adopted]
        return any(LineTakers([line]).of(mine)) if mine else False

    def taken(self, rule: FilterRule, texts: Sequence[str], most: int) -> tuple[str, ...]:
        """A few of these lines that the rule takes."""
        (places,) = LineTakers(texts).of([rule])
        return tuple(texts[at] for at in sorted(places)[:most])
