"""Which candidate is the cause, and how far the evidence goes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triage.diagnose import ended, joining, outlived, quiet
from triage.diagnose.candidates import Candidate, Explained, candidates, explanations, rank_causes
from triage.diagnose.facts import Facts
from triage.domain import Cascade, Outcome, Status
from triage.taxonomy import Taxonomy

ESTABLISHED_WEIGHT = 70
RIVAL_MARGIN = 10
SYMPTOM_WEIGHT = 12  # below it a line only says that something was ended
# By these a consequence is none the less told apart from a cause: what brought it about had ended already.
_ENDED_BEFORE = frozenset({"a-lost-peer-ends-its-launcher", "an-abort-ends-its-step"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """pairs: what explains what."""

    root: Candidate | None
    rivals: tuple[Candidate, ...]  # other possible causes, best first
    cascade: tuple[Candidate, ...]
    pairs: tuple[Explained, ...]
    status: Status
    outcome: Outcome

    @property
    def same(self) -> tuple[Candidate, ...]:
        """Other lines of the event that is the cause."""
        return tuple(e.effect for e in self.pairs if e.by is self.root and e.rule.same_event)


def decide(facts: Facts, labels: Taxonomy, cascades: Sequence[Cascade]) -> Verdict:
    """What came first, what else may have, and what only followed."""
    roots = [quiet.first_group(facts, c) for c in candidates(facts, ("root",))]
    consequences = [quiet.first_group(facts, c) for c in candidates(facts, ("cascade",))]
    pairs = [e for e in explanations([*roots, *consequences], cascades) if not joining.too_late(facts, e)]
    # What only a failed process can have brought about is no cause, though the process's own reason is not seen.
    led = {e.effect.signature.id for e in pairs if e.by.failure_type == "unknown" and e.by.signature.role == "cascade"}
    led |= {e.effect.signature.id for e in pairs if e.rule.id in _ENDED_BEFORE and e.by.signature.role == "cascade"}
    ranked = [c for c in rank_causes(roots, pairs) if c.signature.id not in led]
    ranked = outlived.survived_last(facts, ranked, pairs)
    ranked = joining.outside_last(facts, ranked, pairs)
    consequences += [c for c in roots if c.signature.id in led]
    if ranked:
        root, rivals = ranked[0], ranked[1:]
        before = ended.before_the_end(facts, root)
        hung = before is not None and before.kind == "hang"
        status = _status(root, rivals, pairs)
        if before is not None and before.kind == "zone" and status == "established":
            status = "supported"
        outcome = "hung" if hung or _stands(facts, root) else _outcome(root, labels)
        return Verdict(root, tuple(rivals), tuple(consequences), tuple(pairs), status, outcome)
    # A node's own log is full of other jobs' consequences: alone they say nothing of this one.
    mine = [
        c
        for c in consequences
        if c.signature.id not in led and any(f.line.file not in facts.node_files for f in c.findings)
    ]
    symptoms = [
        c for c in rank_causes(mine, pairs) if c.failure_type != "unknown" and c.signature.weight >= SYMPTOM_WEIGHT
    ]
    if symptoms:
        root = symptoms[0]
        rest = tuple(c for c in consequences if c is not root)
        return Verdict(root, tuple(symptoms[1:]), rest, tuple(pairs), "hypothesis", _outcome(root, labels))
    return Verdict(None, (), tuple(consequences), tuple(pairs), "unknown", "unknown")


def _stands(facts: Facts, root: Candidate) -> bool:
    """Only a node tells of trouble, stacks were taken of the job, and no file of it says that anything of it ended?"""
    if root.first.line.file not in facts.node_files or facts.ends or not any(s.doing for s in facts.hang.scene.seen):
        return False
    return all(f.line.file in facts.node_files or f.signature.role not in ("root", "cascade") for f in facts.findings)


def _outcome(root: Candidate, labels: Taxonomy) -> Outcome:
    if labels.category(root.failure_type) == "scheduler" and root.failure_type != "launch-failure":
        return "interrupted"
    return root.signature.outcome


def _status(root: Candidate, rivals: Sequence[Candidate], pairs: Sequence[Explained]) -> Status:
    """How far the evidence goes: no rival that is left unexplained, and a line that says the cause itself."""
    explained = {e.effect.signature.id for e in pairs}
    open_rivals = [
        r
        for r in rivals
        if r.signature.id not in explained
        and r.failure_type != root.failure_type
        and r.signature.weight > root.signature.weight - RIVAL_MARGIN
    ]
    if open_rivals:
        return "hypothesis" if len(open_rivals) > 1 else "supported"
    return "established" if root.signature.weight >= ESTABLISHED_WEIGHT else "supported"
