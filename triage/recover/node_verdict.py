"""What the rounds of the node test prove: good and faulty nodes, links, and what they cannot decide. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from triage.recover.pairing import LINK_RUNS, Record, Round, doubtful, next_round, record, refused, searches

SLOW = 0.5  # of the median bandwidth
_FEWEST = 4  # worlds with a bandwidth, for a median to mean something


@dataclass(frozen=True, slots=True)
class Link:
    """Two nodes that are good with others. failed of runs: always, or now and then."""

    nodes: tuple[str, str]
    failed: int
    runs: int


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """faulty: why, by node; undecided: what is missing, by node; slow: (nodes, Gbit/s) of worlds that passed."""

    good: tuple[str, ...]
    faulty: Mapping[str, str]
    undecided: Mapping[str, str]
    links: tuple[Link, ...] = ()
    slow: tuple[tuple[tuple[str, ...], float], ...] = ()
    rounds: int = 0
    worlds: int = 0


def verdict(nodes: Sequence[str], rounds: Sequence[Round], known_good: Collection[str] = ()) -> NodeVerdict:
    """A node is faulty only when it failed with several good ones and passed with none."""
    if why := refused(rounds):
        return _untested(nodes, rounds, known_good, why)
    told = record(nodes, rounds, known_good)
    links = _links(told)
    unsteady = _unsteady(told, links)
    faulty = {node: _why(told, node) for node in nodes if node not in told.good and told.enough(node)}
    over = next_round(nodes, rounds, known_good, len(rounds) + 1) == ()
    undecided = {
        node: _open(told, node, over, len(rounds)) for node in nodes if node not in told.good and node not in faulty
    }
    undecided |= {
        node: f"failed now and then, with {', '.join(others)}; run it more often" for node, others in unsteady.items()
    }
    return NodeVerdict(
        good=tuple(node for node in nodes if node in told.good and node not in unsteady),
        faulty=faulty,
        undecided=undecided,
        links=tuple(link for link in links if not set(link.nodes) & unsteady.keys()),
        slow=_slow(rounds),
        rounds=len(rounds),
        worlds=sum(map(len, rounds)),
    )


def alone(nodes: Sequence[str], rounds: Sequence[Round]) -> NodeVerdict:
    """Of a check that each node runs by itself: one that fails twice is faulty, one that fails once is run again."""
    if why := refused(rounds):
        return _untested(nodes, rounds, (), why)
    runs: dict[str, list[bool]] = {node: [] for node in nodes}
    for ran in (ran for played in rounds for ran in played):
        for node in ran.world:
            runs[node].append(ran.passed)
    faulty = {n: f"its check failed {len(r)} times of {len(r)}" for n, r in runs.items() if len(r) > 1 and not any(r)}
    good = tuple(n for n, r in runs.items() if r and all(r))
    rest = {
        n: f"its check failed {r.count(False)} of {len(r)} times"
        for n, r in runs.items()
        if n not in faulty and n not in good
    }
    return NodeVerdict(good, faulty, rest, rounds=len(rounds), worlds=sum(map(len, rounds)))


def next_alone(nodes: Sequence[str], rounds: Sequence[Round]) -> tuple[tuple[str, ...], ...]:
    """Every node by itself, then those that failed once more."""
    if len(rounds) > 1 or refused(rounds):
        return ()
    bad = {ran.world[0] for played in rounds for ran in played if not ran.passed}
    return tuple((node,) for node in nodes if not rounds or node in bad)


def _untested(nodes: Sequence[str], rounds: Sequence[Round], known_good: Collection[str], why: str) -> NodeVerdict:
    """What no launcher starts accuses no node."""
    good = tuple(node for node in nodes if node in known_good)
    rest = {node: f"not tested, as no world began: {why}" for node in nodes if node not in good}
    return NodeVerdict(good, {}, rest, rounds=len(rounds), worlds=sum(map(len, rounds)))


def _links(told: Record) -> list[Link]:
    found = []
    for pair in sorted(doubtful(told), key=sorted):
        failed, runs = told.failed.get(pair, 0), told.failed.get(pair, 0) + told.passed.get(pair, 0)
        if failed and runs >= LINK_RUNS:
            one, other = sorted(pair)
            found.append(Link((one, other), failed, runs))
    return found


def _unsteady(told: Record, links: Sequence[Link]) -> dict[str, list[str]]:
    """Good nodes that failed with several others, of which each fails with nobody else: rather the node than its links."""
    of = Counter(node for pair in told.failed if pair <= told.good for node in pair)
    found: dict[str, list[str]] = {}
    for node, count in of.items():
        others = sorted(next(iter(set(link.nodes) - {node})) for link in links if node in link.nodes)
        if count > 1 and len(others) > 1 and all(of[other] == 1 for other in others):
            found[node] = others
    return found


def _why(told: Record, node: str) -> str:
    return f"failed with {', '.join(sorted(told.witnesses(node)))}, which are good with others, and passed with none"


def _open(told: Record, node: str, over: bool, rounds: int) -> str:
    if not over:
        return f"the test was stopped after {rounds} rounds"
    if not told.good:
        tried = "every pair was tried" if rounds >= searches(told.nodes) else f"{rounds} pairings were tried"
        return f"no world passed ({tried}): with no node known good, none can be judged; add one with --known-good"
    with_ = sorted(told.witnesses(node))
    return f"failed with {', '.join(with_) or 'all that it was tried with'}, and there is no further good node to try it with"


def _slow(rounds: Sequence[Round]) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Worlds that passed with less than half of what is usual."""
    known = [(ran.world, ran.gbps) for played in rounds for ran in played if ran.passed and ran.gbps]
    if len(known) < _FEWEST:
        return ()
    usual = median(gbps for _, gbps in known)
    return tuple((world, gbps) for world, gbps in known if gbps < SLOW * usual)
