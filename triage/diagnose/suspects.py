"""Which node, rank and GPU. Never a suspect without a line that says so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, node_of, rank_of
from triage.diagnose.places import are_launchers, known_ranks
from triage.domain import LogFile, Suspects
from triage.evidence.fallen import Fallen, first_fallen
from triage.evidence.match import Finding
from triage.heads import split
from triage.regex import skeleton

# Types whose node is at fault itself, so that leaving it out helps.
NODE_TYPES = frozenset({"nvlink-error", "node-failure", "ecc-error", "gpu-lost", "network-error"})
# Faults of one node that are not its hardware's, but its mounts', limits' or set-up's.
SPREAD_TYPES = frozenset({"file-not-found", "permission-error", "import-error", "os-error", "cuda-error"})
LOCAL_TYPES = SPREAD_TYPES | {"storage-error", "launch-failure", "hang", "disk-full"}
_REPORTER = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON ")
WAITING = frozenset({"nccl-timeout"})


def suspects(facts: Facts, root: Candidate | None, cascade: Sequence[Candidate]) -> Suspects:
    if root is None:
        return Suspects(ranks=_fallen(facts))
    files = {f.name: f for f in facts.log.files}
    if root.failure_type in WAITING or root.failure_type == "hang":
        stuck = _ranks(facts, root, files) if root.failure_type == "hang" else ()
        return Suspects(ranks=stuck or facts.collectives.lagging or _absent_ranks(facts, (root, *cascade)))
    at_fault = root.signature.node_fault or root.failure_type in NODE_TYPES
    nodes = _nodes(facts, root, files)
    if not at_fault and not (len(nodes) == 1 and (_one_of_many(facts, root, nodes[0]))):
        nodes = ()
    if len(nodes) > 1 and set(nodes) >= known_nodes(facts):
        nodes = ()  # the same on every node is no node's own fault
    gpus = _common(_gpu(f.groups.get("gpu") or f.line.gpu) for f in root.findings)
    ranks = _ranks(facts, root, files) or _first_to_fall(facts, cascade, nodes) or _fallen(facts, root)
    return Suspects(nodes=nodes, ranks=ranks, gpus=gpus if at_fault else ())


def _one_of_many(facts: Facts, root: Candidate, node: str) -> bool:
    """Does only this node of several show a fault of a kind that a node's mounts, limits or links can cause?"""
    others = known_nodes(facts) - {node}
    if not others or root.failure_type not in LOCAL_TYPES:
        return False
    if root.failure_type in SPREAD_TYPES and len(others) < 2:
        return False  # of two nodes that differ, neither is the odd one
    ranks = {r for f in root.findings if (r := rank_of(f)) is not None}
    there = {r for r, n in facts.nodes_of_ranks.items() if n == node}
    return root.failure_type not in SPREAD_TYPES or (len(there) > 1 and ranks >= there)


def _first_to_fall(facts: Facts, cascade: Sequence[Candidate], nodes: tuple[str, ...]) -> tuple[int, ...]:
    """The rank whose own error the node's fault explains: the first one, on that node."""
    for c in cascade:
        rank = rank_of(c.first)
        if rank is not None and len(c.findings) <= 2 and c.signature.role == "root" and nodes:
            where = facts.nodes_of_ranks.get(rank)
            return (rank,) if where is None or where in nodes else ()
    return ()


def _fallen(facts: Facts, root: Candidate | None = None) -> tuple[int, ...]:
    """The rank whose process went first, where the cause's own lines name none."""
    if root is not None and (root.signature.outcome != "failed" or any(rank_of(f) is not None for f in root.findings)):
        return ()
    by_pid = [r for r in facts.fallen if r.pid and root and any(_names_pid(f, r.pid) for f in root.findings)]
    found = first_fallen([r for r in facts.fallen if not by_pid or r in by_pid or _same_process(r, by_pid)])
    if found is None or (found.tasks and are_launchers(facts.log, facts.fallen)):
        return ()
    everyone = known_ranks(facts.log) | {n for r in facts.fallen for n in r.ranks}
    there = max(everyone, default=0) + 1  # ranks count from 0
    return found.ranks if len(found.ranks) * 2 <= there else ()


def _names_pid(finding: Finding, pid: int) -> bool:
    return re.search(rf"(?<!\d){pid}(?!\d)", finding.line.text) is not None


def _same_process(report: Fallen, others: Sequence[Fallen]) -> bool:
    return any(report.pid == other.pid for other in others)


def known_nodes(facts: Facts) -> set[str]:
    seen = {line.node for f in facts.log.files for line in f.lines if line.node}
    return seen | {f.node for f in facts.log.files if f.node} | set(facts.nodes_of_ranks.values())


def _nodes(facts: Facts, root: Candidate, files: dict[str, LogFile]) -> tuple[str, ...]:
    """Nodes that a line names as faulty; else those that the lines come from, or that the ranks ran on."""
    named = _common(f.groups.get("node") for f in root.findings)
    if named:
        return named
    # A daemon that reports an event elsewhere is only the messenger.
    own = [f for f in root.findings if not _REPORTER.search(f.line.text)]
    return _common(
        node_of(f, files.get(f.line.file)) or facts.nodes_of_ranks.get(_known(rank_of(f, files.get(f.line.file))))
        for f in own
    )


def _known(rank: int | None) -> int:
    return -1 if rank is None else rank


def _gpu(name: str | None) -> str | None:
    """One name for PCI:0000:4A:00, 0000:4a:00.0 and 0000:4a:00."""
    return name.removeprefix("PCI:").removesuffix(".0").lower() if name and ":" in name else name


def _ranks(facts: Facts, root: Candidate, files: dict[str, LogFile]) -> tuple[int, ...]:
    found = {r for f in root.findings if (r := rank_of(f, files.get(f.line.file))) is not None}
    everyone = known_ranks(facts.log)
    # The same error on half of the ranks or more is the code's or the data's, no rank's own.
    if len(found) > 1 and everyone and len(found) * 2 > len(everyone):
        return ()
    return tuple(sorted(found))


def _absent_ranks(facts: Facts, waiting: Sequence[Candidate]) -> tuple[int, ...]:
    """Ranks that are known but did not report the time-out: the others waited for them."""
    reported = {r for c in waiting if c.failure_type in WAITING for f in c.findings if (r := rank_of(f)) is not None}
    absent = known_ranks(facts.log) - reported
    return tuple(sorted(absent)) if reported and len(absent) <= len(reported) else ()


def _common(names: object) -> tuple[str, ...]:
    counted = Counter(n for n in names if n)  # type: ignore[attr-defined]
    return tuple(name for name, _ in counted.most_common(8))


def telling(findings: Sequence[Finding]) -> list[Finding]:
    """The first finding of each wording; which ranks said it is told by the first."""
    wordings: set[str] = set()
    chosen = []
    for finding in findings:
        wording = _wording(finding)
        if wording not in wordings:
            chosen.append(finding)
        wordings.add(wording)
    return chosen


def _wording(finding: Finding) -> str:
    return skeleton(split(finding.line.text)[1][:200].encode()).decode()
