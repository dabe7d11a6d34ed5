"""What each metric measures on one case. The docstring is the definition, and goes into metrics.json with the figures.

A measure gives a number in 0..1 (or seconds, tokens ...), or None where the case is not labelled for it: unscored is
not wrong. Whether it counts depends on the label alone, unless the docstring says "of those". No answer (a crash, an
error, a timeout) is wrong wherever the case counts: 0 where higher is better, 1 where lower is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from triage.evaluation.answers import Answer, cited, decisive, decisive_groups, shows, text, texts

if TYPE_CHECKING:
    from triage.evaluation.bootstrap import Kind

Value = float | None
Better = Literal["higher", "lower", ""]
RESTARTS = frozenset(("restart", "restart-excluding", "rollback-and-skip", "kill-and-restart"))
STOPS = frozenset(("fix-and-resubmit", "none"))


@dataclass(frozen=True, slots=True)
class Measure:
    """better: which way is good. kind: a share or a mean lies in 0..1, GPU-hours can weigh it and no answer is worst."""

    name: str
    of: Callable[[Answer], Value]
    better: Better = "higher"
    kind: Kind = "share"

    @property
    def definition(self) -> str:
        return " ".join((self.of.__doc__ or "").split())

    def __call__(self, answer: Answer) -> Value:
        value = self.of(answer)
        if value is None or answer.answered or self.kind == "amount":
            return value
        return 1.0 if self.better == "lower" else 0.0


# ------------------------------------------------------------------------------------------------ labels
def type_exact(a: Answer) -> Value:
    """The failure type is the label."""
    return float(a.failure_type == a.want_type) if a.want_type else None


def type_accepted(a: Answer) -> Value:
    """The failure type is the label, or one that the label accepts (also_accept)."""
    return float(a.failure_type in a.accepted_types) if a.want_type else None


def outcome(a: Answer) -> Value:
    """The outcome is the label, or one that the label accepts (also_outcome)."""
    return float(a.outcome in a.accepted_outcomes) if a.want.get("outcome") else None


def category(a: Answer, categories: Mapping[str, str]) -> Value:
    """The category is that of the labelled type, or that of the type given where the label accepts this type."""
    if not a.want_type:
        return None
    good = {categories.get(a.want_type)} | ({categories.get(a.failure_type)} if type_accepted(a) else set())
    return float((text(a.got.get("category")) or categories.get(a.failure_type)) in good)


# ------------------------------------------------------------------------------------------------ evidence
def evidence_precision(a: Answer) -> Value:
    """Of the lines cited with the role root, the share inside a decisive range; 0 when none is cited."""
    ranges = decisive(a)
    if not ranges:
        return None
    roots = [c for c in cited(a) if c.role == "root"]
    return sum(any(shows(r, c) for r in ranges) for c in roots) / len(roots) if roots else 0.0


def evidence_recall(a: Answer) -> Value:
    """Of the decisive ranges, the share that holds a line cited with the role root; ranges that say the same but for
    numbers, paths and what is quoted (one line a rank) count as one."""
    groups = decisive_groups(a)
    roots = [c for c in cited(a) if c.role == "root"]
    return sum(any(shows(r, c) for r in g for c in roots) for g in groups) / len(groups) if groups else None


def evidence_f1(a: Answer) -> Value:
    """The harmonic mean of evidence_precision and evidence_recall of the case; the figure is its mean over cases."""
    precision, recall = evidence_precision(a), evidence_recall(a)
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def root_hit(a: Answer) -> Value:
    """A line inside a decisive range is cited with the role root."""
    ranges = decisive(a)
    return float(any(c.role == "root" and shows(r, c) for c in cited(a) for r in ranges)) if ranges else None


def any_hit(a: Answer) -> Value:
    """A line inside a decisive range is cited with any role."""
    ranges = decisive(a)
    return float(any(shows(r, c) for c in cited(a) for r in ranges)) if ranges else None


# ------------------------------------------------------------------------------------------------ what to do
def action(a: Answer) -> Value:
    """The action is one that the label accepts."""
    want = texts(a.want.get("action"))
    return float(a.action in want) if want else None


# ------------------------------------------------------------------------------------------------ errors that cost
def must_not(a: Answer) -> Value:
    """The failure type is one that the label calls misleading."""
    bad = texts(a.want.get("must_not"))
    return float(a.failure_type in bad) if bad else None


def false_stop(a: Answer) -> Value:
    """Fix-and-resubmit or none was said where the label accepts a restart and accepts neither of the two."""
    want = set(texts(a.want.get("action")))
    return float(a.action in STOPS) if want & RESTARTS and not want & STOPS else None


def false_restart(a: Answer) -> Value:
    """A restart was said where the label accepts fix-and-resubmit or none and no kind of restart."""
    want = set(texts(a.want.get("action")))
    return float(a.action in RESTARTS) if want & STOPS and not want & RESTARTS else None


def false_alarm(a: Answer) -> Value:
    """A healthy job was given another outcome, and not one that the label accepts."""
    return float(a.outcome not in a.accepted_outcomes) if a.healthy else None


def missed_failure(a: Answer) -> Value:
    """A job that was not healthy was called healthy, by outcome or type, and the label accepts that in neither."""
    if a.healthy or not a.want.get("outcome"):
        return None
    said = "healthy" in (a.outcome, a.failure_type)
    return float(said and "healthy" not in (*a.accepted_outcomes, *a.accepted_types))


def unknown_rate(a: Answer) -> Value:
    """Of those answered: the failure type given is unknown."""
    return float(a.failure_type == "unknown") if a.answered else None


def unknown_right(a: Answer) -> Value:
    """Of those answered with the type unknown: the label is unknown or accepts it."""
    return type_accepted(a) if a.failure_type == "unknown" else None


# ------------------------------------------------------------------------------------------------ lists
LABELLED = (
    Measure("type_exact", type_exact),
    Measure("type_accepted", type_accepted),
    Measure("outcome", outcome),
    Measure("evidence_precision", evidence_precision, kind="mean"),
    Measure("evidence_recall", evidence_recall, kind="mean"),
    Measure("evidence_f1", evidence_f1, kind="mean"),
    Measure("root_hit", root_hit),
    Measure("any_hit", any_hit),
    Measure("action", action),
    Measure("must_not", must_not, "lower"),
    Measure("false_stop", false_stop, "lower"),
    Measure("false_restart", false_restart, "lower"),
    Measure("false_alarm", false_alarm, "lower"),
    Measure("missed_failure", missed_failure, "lower"),
    Measure("unknown_rate", unknown_rate, ""),
    Measure("unknown_right", unknown_right),
)
"""What every answer says, a baseline's too."""


def category_measure(categories: Mapping[str, str]) -> Measure:
    """The measure that needs the taxonomy: failure type -> category."""

    def of(a: Answer) -> Value:
        return category(a, categories)

    of.__doc__ = category.__doc__
    return Measure("category", of)
