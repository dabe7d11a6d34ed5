"""Which node, rank and GPU. Never a suspect without a line that says so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from triage.diagnose import hang_story, quiet, sieve
from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, node_of, rank_of
from triage.diagnose.places import are_launchers
from triage.diagnose.shared_paths import everywhere
from triage.domain import LogFile, Suspects
from triage.evidence.fallen import Fallen, first_fallen
from triage.evidence.known import known_nodes, known_ranks
from triage.evidence.match import Finding
from triage.evidence.processes import short
from triage.heads import split
from triage.regex import skeleton

# Types whose node is at fault itself, so that leaving it out helps.
NODE_TYPES = frozenset({"nvlink-error", "node-failure", "ecc-error", "gpu-lost", "network-error"})
# Faults of one node that are not its hardware's, but its mounts', limits' or set-up's.
SPREAD_TYPES = frozenset({"file-not-found", "permission-error", "import-error", "os-error", "cuda-error"})
LOCAL_TYPES = SPREAD_TYPES | {"storage-error", "launch-failure", "hang", "disk-full"}
# What only stands on one node: a process that holds a port there, a CPU of another type.
_HELD_THERE = frozenset({"ascend.port-taken", "jax.port", "kernel.invalid-opcode"})
# What a sick node may bring about, so that its own health check decides.
TAKEN_OUT_FOR = frozenset({"cuda-error", "native-crash", "runtime-error", "storage-error", "hang", "nccl-timeout"})
_KILLED_THERE = re.compile(r"Killed|Out Of Memory")
_MANY = 4  # processes that say the same without their rank
_MACHINE = re.compile(
    r"\bspot\b|preemptible|PreemptScheduled|RebalanceRecommendation|node ?shutdown|TerminationByKubelet", re.IGNORECASE
)
_REPORTER = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON ")


def suspects(facts: Facts, root: Candidate | None, others: Sequence[Candidate]) -> Suspects:
    """others: consequences and rivals of the cause. Nodes only of the job's own, where its scheduler said which those are: whoever
    submits a job writes its log, and could have any node of the cluster drained."""
    found = _suspects(facts, root, others)
    own = {short(node) for node in facts.log.job_nodes}
    return replace(found, nodes=tuple(node for node in found.nodes if short(node) in own)) if own else found


def _suspects(facts: Facts, root: Candidate | None, others: Sequence[Candidate]) -> Suspects:
    if root is None:
        return Suspects(ranks=_fallen(facts))
    if (stuck := hang_story.suspects(facts.hang, root.signature, root.failure_type)) is not None:
        return stuck
    if root.signature.component == "switch":
        return Suspects()  # no job runs on it, and all who talk over it are victims
    files = {f.name: f for f in facts.log.files}
    if root.failure_type in quiet.WAITING or root.failure_type == "hang":
        named = _elsewhere(facts, root) or _ranks(facts, root, files) if root.failure_type == "hang" else ()
        ranks = named or facts.flight.culprits or facts.collectives.lagging or quiet.waited_for(facts, (root, *others))
        return Suspects(nodes=quiet.their_nodes(facts, ranks), ranks=ranks)
    if lost := lost_by_all(facts, root):
        return Suspects(nodes=quiet.their_nodes(facts, lost), ranks=lost)
    same = [c for c in others if c.failure_type == root.failure_type and c.signature.role == "root"]
    at_fault = any(c.signature.node_fault for c in (root, *same)) or root.failure_type in NODE_TYPES
    # Another line of the same failure may name the node that the cause's own does not.
    told = next((c for c in (root, _together(root, same)) if _nodes(facts, c, files)), root)
    nodes = _nodes(facts, told, files)
    if not at_fault and not _cloud_took(root) and not (len(nodes) == 1 and _one_of_many(facts, told, nodes[0])):
        nodes = ()
    if len(nodes) > 1 and set(nodes) >= known_nodes(facts.log, facts.nodes_of_ranks):
        nodes = ()  # the same on every node is no node's own fault
    gpus = _common(_gpu(f.groups.get("gpu") or f.line.gpu) for f in root.findings)
    ranks = facts.collectives.apart or facts.flight.culprits if root.failure_type == "collective-mismatch" else ()
    ranks = (
        ranks
        or _ranks(facts, root, files)
        or _killed_there(facts, root, nodes)
        or _first_to_fall(facts, root, others, nodes)
        or _fallen(facts, root)
    )
    if not ranks and not _named_ranks(root, files):
        ranks = _elsewhere(facts, root) or facts.flight.culprits or _there(facts, quiet.silent(facts, others), nodes)
    nodes = nodes or taken_out(facts, root, ranks)
    return Suspects(nodes=nodes, ranks=ranks, gpus=gpus if at_fault else ())


def lost_by_all(facts: Facts, root: Candidate) -> tuple[int, ...]:
    """Where nothing but lost peers is told: the few ranks that tell of none."""
    return quiet.silent(facts, (root,)) if root.signature.role == "cascade" else ()


def taken_out(facts: Facts, root: Candidate, ranks: Sequence[int]) -> tuple[str, ...]:
    """The one node of the cause, or of these ranks, that the scheduler itself took out of service."""
    out = {f.groups.get("node") for f in facts.findings if f.signature.id == sieve.DRAINED}
    own = {facts.nodes_of_ranks.get(r) for r in ranks} | {node_of(f) for f in root.findings}
    found = tuple(node for node in out & own if node)
    return found if len(found) == 1 and root.failure_type in TAKEN_OUT_FOR else ()


def _together(root: Candidate, same: Sequence[Candidate]) -> Candidate:
    return Candidate(root.signature, (*root.findings, *(f for c in same for f in c.findings)))


def _cloud_took(root: Candidate) -> bool:
    """Does an event of the cluster name the machine that it took away? One on which a pod made room stays as it is."""
    of_cluster = root.signature.component == "kubernetes" and root.failure_type == "preempted"
    return of_cluster and any(_MACHINE.search(f.line.text) for f in root.findings)


def _elsewhere(facts: Facts, root: Candidate) -> tuple[int, ...]:
    """Ranks that a line of context, such as a list of processes, names with the same failure."""
    named = {
        rank
        for f in facts.findings
        if f.signature.role == "context"
        and (f.signature.failure_type == root.failure_type or _lists_for(f.signature.id, root))
        if (rank := f.groups.get("rank", "")).isdigit()
    }
    return tuple(sorted(int(rank) for rank in named))


def _lists_for(signature: str, root: Candidate) -> bool:
    """JAX names the tasks that it misses below what it says of them, whatever that is."""
    return signature == "jax.task-missing" and root.signature.component == "jax"


def _there(facts: Facts, ranks: tuple[int, ...], nodes: tuple[str, ...]) -> tuple[int, ...]:
    """Of the ranks those that may have run on the suspect nodes."""
    return tuple(r for r in ranks if not nodes or facts.nodes_of_ranks.get(r, nodes[0]) in nodes)


def _one_of_many(facts: Facts, root: Candidate, node: str) -> bool:
    """Does only this node of several show a fault of a kind that a node's mounts, limits or links can cause?"""
    slurmd = {f.name for f in facts.log.files if f.kind == "slurm" and f.node == node}
    if root.failure_type == "launch-failure" and any(f.line.file in slurmd for f in root.findings):
        return True  # the node's own daemon says that it could not start what others started
    others = known_nodes(facts.log, facts.nodes_of_ranks) - {node}
    if others and (root.signature.id in _HELD_THERE or _kernels_of_others(facts, root, node)):
        return True
    if not others or root.failure_type not in LOCAL_TYPES:
        return False
    if root.failure_type == "disk-full" and everywhere(root.findings):
        return False
    if root.failure_type in SPREAD_TYPES and len(others) < 2:
        return False  # of two nodes that differ, neither is the odd one
    ranks = {r for f in root.findings if (r := rank_of(f)) is not None}
    there = {r for r, n in facts.nodes_of_ranks.items() if n == node}
    return root.failure_type not in SPREAD_TYPES or (len(there) > 1 and ranks >= there)


def _kernels_of_others(facts: Facts, root: Candidate, node: str) -> bool:
    """Memory ran out on this node, by its kernel's word, and the kernel logs of others say nothing of it."""
    kernels = {f.node for f in facts.log.files if f.kind == "kernel" and f.node}
    return root.failure_type == "host-out-of-memory" and node in kernels and len(kernels) > 1


def _killed_there(facts: Facts, root: Candidate, nodes: tuple[str, ...]) -> tuple[int, ...]:
    """The task that was killed on the node whose memory ran out; the others fell with it."""
    if root.failure_type != "host-out-of-memory" or are_launchers(facts.log, facts.fallen):
        return ()
    there = [r for r in facts.fallen if r.tasks and r.node in nodes and _KILLED_THERE.match(r.status)]
    return there[0].ranks if there and len(there[0].ranks) == 1 else ()


def _first_to_fall(
    facts: Facts, root: Candidate, cascade: Sequence[Candidate], nodes: tuple[str, ...]
) -> tuple[int, ...]:
    """The rank whose own error the node's fault explains: the first one, on that node."""
    for c in cascade:
        rank = rank_of(c.first)
        if rank is not None and len(c.findings) <= 2 and _of_one_part(c, root) and nodes:
            where = facts.nodes_of_ranks.get(rank)
            return (rank,) if where is None or where in nodes else ()
    return ()


def _of_one_part(effect: Candidate, root: Candidate) -> bool:
    """Is it the rank's own error, or the same part of its machine that speaks?"""
    return effect.signature.role == "root" or effect.signature.component == root.signature.component


def _fallen(facts: Facts, root: Candidate | None = None) -> tuple[int, ...]:
    """The rank whose process went first, where the cause's own lines name none."""
    if root is not None and (root.signature.outcome != "failed" or any(rank_of(f) is not None for f in root.findings)):
        return ()
    by_pid = [r for r in facts.fallen if r.pid and root and any(_names_pid(f, r.pid) for f in root.findings)]
    found = first_fallen([r for r in facts.fallen if not by_pid or r in by_pid or _same_process(r, by_pid)])
    if found is None or (found.tasks and are_launchers(facts.log, facts.fallen)):
        return ()
    everyone = known_ranks(facts.log) | {n for r in facts.fallen for n in r.ranks}
    if all_alike := _alike(facts, found, everyone):
        return all_alike
    if root is not None and _said_by_many(root, everyone):
        return tuple(range(len(everyone))) if everyone == set(range(len(root.findings))) else ()
    told_to_end = {f.groups.get("pid") for f in facts.findings if f.signature.id == "te.closing-signal"}
    there = max(max(everyone, default=0), len(told_to_end)) + 1  # ranks count from 0
    return found.ranks if len(found.ranks) * 2 <= there else ()


def _alike(facts: Facts, found: Fallen, everyone: set[int]) -> tuple[int, ...]:
    """All that ended on their own with the same code, where every rank did: then the first in the list is no more at fault than the rest."""
    own = {r for f in facts.fallen if f.status == found.status for r in f.ranks}
    by_itself = found.status.isdigit() or found.status.startswith("Exited")
    return tuple(sorted(own)) if by_itself and len(own) > 1 and own >= everyone else ()


def _said_by_many(root: Candidate, everyone: set[int]) -> bool:
    said = [f for f in root.findings if rank_of(f) is None]
    return len(said) >= _MANY and len(said) * 2 > max(everyone, default=0)


def _names_pid(finding: Finding, pid: int) -> bool:
    return re.search(rf"(?<!\d){pid}(?!\d)", finding.line.text) is not None


def _same_process(report: Fallen, others: Sequence[Fallen]) -> bool:
    return any(report.pid == other.pid for other in others)


def _nodes(facts: Facts, root: Candidate, files: dict[str, LogFile]) -> tuple[str, ...]:
    """Nodes that a line names as faulty; else those that the lines come from, or that the ranks ran on."""
    named = _common(f.groups.get("node") for f in root.findings)
    if named:
        return named
    # A daemon that reports an event elsewhere is only the messenger.
    own = [f for f in root.findings if not _REPORTER.search(f.line.text)]
    found = _common(
        node_of(f, files.get(f.line.file))
        or facts.pods_on.get((f.line.file, f.line.number))
        or facts.nodes_of_ranks.get(_known(rank_of(f, files.get(f.line.file))))
        for f in own
    )
    return found or _the_one_that_failed(facts, root, files)


def _the_one_that_failed(facts: Facts, root: Candidate, files: dict[str, LogFile]) -> tuple[str, ...]:
    """A kernel's log that names no host is that of the one node which the scheduler lost."""
    kernels = [f for f in files.values() if f.kind == "kernel"]
    if len(kernels) != 1 or any(f.line.file != kernels[0].name for f in root.findings):
        return ()
    lost = {f.groups.get("node") for f in facts.findings if f.signature.failure_type == "node-failure"} - {None}
    return _common(lost) if len(lost) == 1 else ()


def _known(rank: int | None) -> int:
    return -1 if rank is None else rank


def _gpu(name: str | None) -> str | None:
    """One name for PCI:0000:4A:00, 0000:4a:00.0 and 0000:4a:00."""
    return name.removeprefix("PCI:").removesuffix(".0").lower() if name and ":" in name else name


def _ranks(facts: Facts, root: Candidate, files: dict[str, LogFile]) -> tuple[int, ...]:
    found = _named_ranks(root, files)
    everyone = known_ranks(facts.log)
    # The same error on half of the ranks or more is the code's or the data's, no rank's own.
    if len(found) > 1 and everyone and len(found) * 2 > len(everyone):
        return ()
    return tuple(sorted(found))


def _named_ranks(root: Candidate, files: dict[str, LogFile]) -> set[int]:
    return {r for f in root.findings if (r := rank_of(f, files.get(f.line.file))) is not None}


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
