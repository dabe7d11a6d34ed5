"""The conditions that steps of runbooks depend on: scheduler, spread, recurrence, and what the cause is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields

from triage.diagnose.candidates import Candidate
from triage.diagnose.cause_class import cause_class
from triage.diagnose.facts import Facts, node_of, rank_of
from triage.domain import LogFile, LogLine, Suspects, When
from triage.evidence.known import known_nodes
from triage.evidence.match import Finding
from triage.regex import compile_pattern

_SLURM = ("srun:", "slurmstepd:", "SLURM_", "Submitted batch job", "StepId=")
_KUBERNETES = ("kubelet", "kubectl ", "KUBERNETES_SERVICE_HOST")


@dataclass(frozen=True, slots=True)
class Situation:
    scheduler: str
    component: str
    signature: str
    cause: str
    action: str
    spread: str  # "" where the log does not tell
    recurrence: str

    lines: tuple[LogLine, ...] = ()

    def meets(self, when: When) -> bool:
        named = all(
            not (asked := getattr(when, f.name)) or getattr(self, f.name) in asked
            for f in fields(When)
            if f.name != "seen"
        )
        return named and (not when.seen or any(word in line.text for line in self.lines for word in when.seen))


def situation(facts: Facts, root: Candidate | None, found: Suspects, action: str) -> Situation:
    return Situation(
        scheduler=scheduler(facts),
        component=root.signature.component if root else "",
        signature=root.signature.id if root else "",
        cause=cause_class(facts, root) if root else "",
        action=action,
        spread=_spread(facts, root, found) if root else "",
        recurrence="again" if root and _seen_before(facts, root) else "first",
        lines=tuple(line for file in facts.log.files for line in file.lines),
    )


def scheduler(facts: Facts) -> str:
    """slurm or kubernetes where a file or a line tells, else none."""
    kinds = {file.kind for file in facts.log.files}
    if kinds & {"slurm", "sacct"} or any("slurm" in file.name.rpartition("/")[2].lower() for file in facts.log.files):
        return "slurm"
    if "kubernetes" in kinds or _told(facts, "kubernetes", _KUBERNETES):
        return "kubernetes"
    return "slurm" if _told(facts, "slurm", _SLURM) else "none"


def _told(facts: Facts, component: str, marks: tuple[str, ...]) -> bool:
    return any(f.signature.component == component for f in facts.findings) or any(
        mark in line.text for file in facts.log.files if file.kind == "job" for line in file.lines for mark in marks
    )


def _spread(facts: Facts, root: Candidate, found: Suspects) -> str:
    """many-nodes: the cause is seen on several; one-node: one of several is suspected."""
    files = {file.name: file for file in facts.log.files}
    seen = {name for finding in root.findings if (name := _node(facts, finding, files.get(finding.line.file)))}
    if len(seen) > 1 or len(found.nodes) > 1:
        return "many-nodes"
    return "one-node" if found.nodes and known_nodes(facts.log, facts.nodes_of_ranks) - set(found.nodes) else ""


def _node(facts: Facts, finding: Finding, file: LogFile | None) -> str | None:
    rank = rank_of(finding, file)
    return node_of(finding, file) or (facts.nodes_of_ranks.get(rank) if rank is not None else None)


def _seen_before(facts: Facts, root: Candidate) -> bool:
    """Did an earlier run in this log fail with a line of the same signature?"""
    patterns = [compile_pattern(pattern) for pattern in root.signature.patterns]
    for file in facts.log.files:
        failed = [run for run in file.runs if run.outcome in ("failed", "hung")]
        for line in file.earlier:
            if any(run.first_line <= line.number <= run.last_line for run in failed) and any(
                pattern.search(line.text) for pattern in patterns
            ):
                return True
    return False
