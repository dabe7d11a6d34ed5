"""The allgather test of nodes: which worlds to run next, from what the earlier rounds said. Pure.

Round one pairs the nodes (an odd count makes one world of three). A world that passes proves its nodes; those of a world that fails
are suspects, and each is run again with nodes that were proved. Where no world passes, other pairings are tried. A pair that
fails although both its nodes are good with others is run again by itself: it is the link between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

World: TypeAlias = tuple[str, ...]  # nodes that run one allgather together
Pair: TypeAlias = frozenset[str]

WITNESSES = (
    3  # good nodes that a node must fail with before it is named; all of them where there are fewer, but two at least
)
LINK_RUNS = 3  # runs of a pair before its link is named
MOST_ROUNDS = 24


@dataclass(frozen=True, slots=True)
class Ran:
    """One world that was run. said: why it failed, in words; gbps: bandwidth of its bus where the check measures it.

    begun: False where the launcher refused it or the nodes lack the check, which tells nothing of the nodes.
    """

    world: World
    passed: bool
    said: str = ""
    seconds: float = 0.0
    gbps: float | None = None
    begun: bool = True


Round: TypeAlias = Sequence[Ran]


@dataclass(frozen=True, slots=True)
class Record:
    """What the rounds so far say. good: nodes that a passing world, or its user, proved."""

    nodes: tuple[str, ...]
    good: frozenset[str]
    passed: Mapping[Pair, int]
    failed: Mapping[Pair, int]
    wide: frozenset[Pair]  # worlds of three that failed

    def partners(self, node: str, of: Mapping[Pair, int]) -> set[str]:
        return {next(iter(pair - {node})) for pair in of if node in pair}

    def witnesses(self, node: str) -> set[str]:
        """Good nodes with which it failed, and never passed."""
        return (self.partners(node, self.failed) - self.partners(node, self.passed)) & self.good

    def enough(self, node: str) -> bool:
        """Has it failed with as many good nodes as there are to be had?"""
        there = len(self.good - {node})
        return there >= 2 and len(self.witnesses(node)) >= min(WITNESSES, there)


def record(nodes: Sequence[str], rounds: Iterable[Round], known_good: Collection[str] = ()) -> Record:
    good = set(known_good)
    passed: Counter[Pair] = Counter()
    failed: Counter[Pair] = Counter()
    wide: set[Pair] = set()
    for ran in (ran for played in rounds for ran in played):
        world = frozenset(ran.world)
        if ran.passed:
            good |= world
            passed.update(frozenset(pair) for pair in combinations(ran.world, 2))
        elif len(world) == 2:
            failed[world] += 1
        else:
            wide.add(world)
    return Record(tuple(nodes), frozenset(good), passed, failed, frozenset(wide))


def refused(rounds: Iterable[Round]) -> str:
    """Why no world of all that were run has even begun, in the words of the first; "" where one has."""
    played = [ran for one in rounds for ran in one]
    return played[0].said if played and not any(ran.passed or ran.begun for ran in played) else ""


def next_round(
    nodes: Sequence[str], rounds: Sequence[Round], known_good: Collection[str] = (), most: int = MOST_ROUNDS
) -> tuple[World, ...]:
    """Worlds that share no node, to be run at once; () when there is nothing left to learn, `most` rounds are over or none can begin.

    nodes: two at least, each once; rounds: all so far, oldest first; known_good: of other nodes or these, not tested again.
    """
    if len(rounds) >= most or refused(rounds):
        return ()
    told = record(nodes, rounds, known_good)
    if not told.good:
        return _pairing(nodes, len(rounds)) if len(rounds) < searches(nodes) else ()
    worlds = _with_witnesses(told)
    return (*worlds, *_links(told, {node for world in worlds for node in world}))


def searches(nodes: Sequence[str]) -> int:
    """Rounds after which every pair was tried."""
    return len(nodes) - 1 if len(nodes) % 2 == 0 else len(nodes) + 1


def _pairing(nodes: Sequence[str], turn: int) -> tuple[World, ...]:
    """The pairing of this turn, of `searches` in which all pairs come up. The one left over makes a third in the first."""
    ring: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    by = turn % (len(ring) - 1)
    order = [ring[0], *ring[len(ring) - by :], *ring[1 : len(ring) - by]]
    half = len(order) // 2
    pairs = [tuple(n for n in (order[i], order[-1 - i]) if n is not None) for i in range(half)]
    whole = [pair for pair in pairs if len(pair) == 2]
    alone = next((pair[0] for pair in pairs if len(pair) == 1), None)
    if alone is None or not whole:
        return tuple(whole)
    if turn == 0:
        return (*whole[:-1], (*whole[-1], alone))
    return tuple(whole)  # in a third of a failed world nobody proves anything: later each is left over once


def _with_witnesses(told: Record) -> list[World]:
    """Each suspect with a good node that it was not tried with; those that were tried least come first."""
    suspects = [node for node in told.nodes if node not in told.good and not told.enough(node)]
    suspects.sort(key=lambda node: len(told.witnesses(node)))
    failures = Counter(node for pair in told.failed for node in pair)
    free = sorted(told.good, key=lambda node: failures[node])
    worlds: list[World] = []
    for suspect in suspects:
        tried = told.partners(suspect, told.failed)
        partner = next((node for node in free if node not in tried), None)
        if partner is not None:
            free.remove(partner)
            worlds.append((suspect, partner))
    return worlds


def _links(told: Record, busy: set[str]) -> list[World]:
    """Pairs of good nodes that failed together and were not run often enough to tell whether they always do."""
    worlds: list[World] = []
    for pair in sorted(doubtful(told), key=sorted):
        if told.failed.get(pair, 0) + told.passed.get(pair, 0) < LINK_RUNS and not pair & busy:
            busy |= pair
            worlds.append(tuple(sorted(pair)))
    return worlds


def doubtful(told: Record) -> set[Pair]:
    """Pairs that failed, of nodes that are all good with others; those of a world of three until one of them fails by itself."""
    found = {pair for pair in told.failed if pair <= told.good}
    for world in told.wide:
        inside = {frozenset(pair) for pair in combinations(sorted(world), 2)}
        if world <= told.good and not inside & found:
            found |= {pair for pair in inside if not told.passed.get(pair)}
    return found
