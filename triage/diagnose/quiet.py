"""Ranks of which the others speak: those that did not reach a collective, and those whose end the others report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from triage.diagnose.candidates import SKEW, Candidate
from triage.diagnose.facts import Facts, rank_of
from triage.evidence.cost import world_size
from triage.evidence.known import known_ranks

WAITING = frozenset({"nccl-timeout"})
_LEFT_BEHIND = frozenset({"nccl-timeout", "nccl-remote-error", "connection-error"})
_OWN_WORDS = 10  # weight below which a line repeats what another rank's watchdog found
_FEW = 3  # at most one of so many ranks may be silent


def waited_for(facts: Facts, waiting: Sequence[Candidate]) -> tuple[int, ...]:
    """Ranks that did not report the time-out: the others waited for them. Of those no line is of, if they are a few of the job."""
    reported = _report(waiting, WAITING)
    absent = known_ranks(facts.log) - reported
    unseen = _everyone(facts, reported) - reported
    if len(unseen) * 2 <= len(reported):
        absent |= unseen
    return tuple(sorted(absent)) if reported and len(absent) <= len(reported) else ()


def _everyone(facts: Facts, reported: set[int]) -> set[int]:
    """All ranks by the printed size of the job, or the gaps between those seen; of a file a rank, only those that are there."""
    if len(reported) < _FEW or any(f.rank is not None for f in facts.log.files):
        return set()
    return set(range(max(world_size(facts.log.files) or 0, *reported)))


def first_group(facts: Facts, root: Candidate) -> Candidate:
    """The same cause with the reports of the process group that waited first in front: others only waited for its ranks."""
    began = {(w.line.file, w.line.number): w for w in facts.collectives.waits if w.began and w.group}
    starts: dict[str, datetime] = {}
    for wait in began.values():
        if wait.began is not None:
            starts[wait.group] = min(wait.began, starts.get(wait.group, wait.began))
    order = sorted(starts, key=lambda group: starts[group])
    if root.failure_type not in WAITING or len(order) < 2 or starts[order[1]] - starts[order[0]] <= SKEW:
        return root
    first = [f for f in root.findings if (w := began.get((f.line.file, f.line.number))) and w.group == order[0]]
    return replace(root, findings=(*first, *(f for f in root.findings if f not in first)))


def their_nodes(facts: Facts, ranks: Sequence[int]) -> tuple[str, ...]:
    """The node, of several, all of whose ranks these are, and no others."""
    nodes = {facts.nodes_of_ranks.get(rank) for rank in ranks}
    node = nodes.pop() if len(nodes) == 1 else None
    there = {rank for rank, name in facts.nodes_of_ranks.items() if name == node}
    several = len(set(facts.nodes_of_ranks.values())) > 1
    return (node,) if node and several and len(there) > 1 and there == set(ranks) else ()


def silent(facts: Facts, consequences: Sequence[Candidate]) -> tuple[int, ...]:
    """The few ranks that report no lost peer where nearly all others do: it was they who went."""
    reported = _report(consequences, _LEFT_BEHIND)
    everyone = known_ranks(facts.log) | reported
    if len(reported) >= _FEW:  # then the numbers between are ranks that said nothing at all
        everyone |= set(range(max(everyone)))
    absent = everyone - reported
    few = len(absent) == 1 or len(absent) * _FEW <= len(reported)
    return tuple(sorted(absent)) if reported and few else ()


def _report(candidates: Sequence[Candidate], types: frozenset[str]) -> set[int]:
    told = [f for c in candidates if c.failure_type in types and c.signature.weight >= _OWN_WORDS for f in c.findings]
    return {rank for f in told if (rank := rank_of(f)) is not None} | {rank for f in told for rank in f.line.ranks}
