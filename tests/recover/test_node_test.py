"""The node test over simulated clusters: exactly the faulty nodes are named, or it says what it cannot decide."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triage.recover.node_verdict import NodeVerdict, alone, next_alone, verdict
from triage.recover.pairing import MOST_ROUNDS, WITNESSES, Ran, Round, World, next_round


@dataclass(frozen=True)
class Cluster:
    """faulty: no world with one of them passes; cut: pairs that never work together; loose: pairs that fail by `chance`."""

    nodes: tuple[str, ...]
    faulty: frozenset[str] = frozenset()
    cut: frozenset[frozenset[str]] = frozenset()
    loose: frozenset[frozenset[str]] = frozenset()
    unsteady: frozenset[str] = frozenset()
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def run(self, world: World) -> bool:
        pairs = {frozenset(pair) for pair in combinations(world, 2)}
        if self.faulty & set(world) or pairs & self.cut:
            return False
        shaky = len(pairs & self.loose) + len(self.unsteady & set(world))
        return all(self.chance.random() < 0.5 for _ in range(shaky))


def play(cluster: Cluster, known_good: Collection[str] = (), most: int = 10_000) -> tuple[NodeVerdict, list[Round]]:
    rounds: list[Round] = []
    while worlds := next_round(cluster.nodes, rounds, known_good, most):
        used = [node for world in worlds for node in world]
        assert len(used) == len(set(used)), "worlds of a round share no node"
        rounds.append([Ran(world, cluster.run(world)) for world in worlds])
    return verdict(cluster.nodes, rounds, known_good), rounds


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{i:04d}" for i in range(count))


@st.composite
def clusters(draw: st.DrawFn, most: int = 60, share: float = 0.3) -> Cluster:
    nodes = names(draw(st.integers(2, most)))
    chance = random.Random(draw(st.integers(0, 2**32)))
    faulty = frozenset(chance.sample(nodes, draw(st.integers(0, int(len(nodes) * share)))))
    return Cluster(nodes, faulty, chance=chance)


@settings(deadline=None, max_examples=examples(150))
@given(clusters(share=1.0))
def test_any_number_of_faulty_nodes_is_named_as_long_as_two_good_ones_are_left(cluster: Cluster) -> None:
    found, _ = play(cluster)
    good = set(cluster.nodes) - cluster.faulty
    if len(good) >= 2:
        assert set(found.faulty) == cluster.faulty
        assert set(found.good) == good
        assert not found.undecided and not found.links
    else:
        assert not found.faulty and not found.good
        assert set(found.undecided) == set(cluster.nodes)


@settings(deadline=None, max_examples=examples(150))
@given(clusters(), st.data())
def test_a_cut_link_never_makes_a_good_node_faulty(cluster: Cluster, data: st.DataObject) -> None:
    """Of good nodes each has at most one link that is cut or loose: with more, nobody can tell it from a faulty node."""
    good = sorted(set(cluster.nodes) - cluster.faulty)
    cluster.chance.shuffle(good)
    pairs = [frozenset(good[i : i + 2]) for i in range(0, len(good) - 1, 2)]
    broken = pairs[: data.draw(st.integers(0, len(pairs)))]
    cut = frozenset(broken[::2])
    loose = frozenset(broken[1::2])
    cluster = Cluster(cluster.nodes, cluster.faulty, cut, loose, chance=cluster.chance)
    found, _ = play(cluster)

    assert set(found.faulty) <= cluster.faulty
    assert set(found.good) | set(found.faulty) | set(found.undecided) == set(cluster.nodes)
    assert {frozenset(link.nodes) for link in found.links} <= cut | loose
    if len(good) >= WITNESSES + 2:
        assert set(found.faulty) == cluster.faulty
        assert set(found.good) == set(good)


@settings(deadline=None, max_examples=100)
@given(clusters(share=0.2), st.data())
def test_nodes_that_fail_now_and_then_make_no_steady_one_faulty(cluster: Cluster, data: st.DataObject) -> None:
    good = sorted(set(cluster.nodes) - cluster.faulty)
    cluster.chance.shuffle(good)
    unsteady = frozenset(good[: data.draw(st.integers(0, min(2, len(good) // 4)))])
    cluster = Cluster(cluster.nodes, cluster.faulty, unsteady=unsteady, chance=cluster.chance)
    found, _ = play(cluster)

    assert set(found.faulty) <= cluster.faulty | unsteady
    assert set(found.faulty) >= (cluster.faulty if len(good) >= WITNESSES + 3 else set())
    if (
        len(good) >= WITNESSES + 3
    ):  # a steady node whose partners failed beside it may stay undecided, and no more of them than those
        assert not set(found.undecided) & cluster.faulty
        assert len(set(found.undecided) - unsteady) <= len(unsteady)
    assert all(unsteady & set(link.nodes) for link in found.links)


@pytest.mark.parametrize("count", [2, 3, 5, 16, 101, 512, 999, 1000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3])
def test_the_number_of_rounds_stays_small(count: int, share: float) -> None:
    """A pairing, the witnesses of each suspect, and the runs of a link: at 30 % faulty nodes not more than nine rounds."""
    chance = random.Random(count)
    nodes = names(count)
    faulty = frozenset(chance.sample(nodes, int(count * share)))
    good = [n for n in nodes if n not in faulty]
    cut = frozenset({frozenset(good[:2])}) if len(good) > 6 else frozenset()
    found, rounds = play(Cluster(nodes, faulty, cut), most=MOST_ROUNDS)

    assert set(found.faulty) == faulty
    assert len(rounds) <= 9
    assert found.worlds <= 3 * count


def test_without_faults_one_round_is_enough_and_an_odd_node_makes_a_world_of_three() -> None:
    found, rounds = play(Cluster(names(7)))
    assert len(rounds) == 1
    assert sorted(len(ran.world) for ran in rounds[0]) == [2, 2, 3]
    assert found.good == names(7)


def test_a_cut_link_is_named_with_its_two_ends() -> None:
    nodes = names(6)
    first = next_round(nodes, [])[0]
    found, _ = play(Cluster(nodes, cut=frozenset({frozenset(first)})))
    (link,) = found.links
    assert set(link.nodes) == set(first)
    assert link.failed == link.runs == 3
    assert found.good == nodes


def test_a_link_that_fails_now_and_then_is_named_with_its_count() -> None:
    nodes = names(6)
    pair = frozenset(next_round(nodes, [])[0])
    answers = iter([False, True, False])
    rounds: list[Round] = []
    while worlds := next_round(nodes, rounds):
        rounds.append([Ran(w, next(answers) if frozenset(w) == pair else True) for w in worlds])
    (link,) = verdict(nodes, rounds).links
    assert (link.failed, link.runs) == (2, 3)


def test_two_nodes_that_fail_together_are_not_decided_unless_others_are_known_good() -> None:
    cluster = Cluster(("a", "b"), frozenset({"b"}))
    found, rounds = play(cluster)
    assert len(rounds) == 1
    assert set(found.undecided) == {"a", "b"}
    assert "--known-good" in found.undecided["a"]

    found, _ = play(cluster, known_good=("c",))
    assert set(found.faulty) == {"b"}
    assert "a, c" in found.faulty["b"]


def test_a_test_that_is_cut_short_says_so() -> None:
    found, rounds = play(Cluster(names(20), frozenset(names(20)[:4])), most=2)
    assert len(rounds) == 2
    assert set(found.undecided) >= set(names(20)[:4])
    assert all("stopped after 2 rounds" in why for why in found.undecided.values())


def test_worlds_that_are_much_slower_than_the_others_are_told() -> None:
    ran = [Ran((f"a{i}", f"b{i}"), True, gbps=100.0) for i in range(5)] + [Ran(("c", "d"), True, gbps=20.0)]
    nodes = [node for r in ran for node in r.world]
    assert verdict(nodes, [ran]).slow == ((("c", "d"), 20.0),)


def test_a_check_of_single_nodes_is_repeated_where_it_failed() -> None:
    nodes = ("a", "b", "c")
    rounds: list[Round] = [[Ran((n,), n == "a") for (n,) in next_alone(nodes, [])]]
    assert next_alone(nodes, rounds) == (("b",), ("c",))
    rounds.append([Ran(("b",), False), Ran(("c",), True)])
    assert next_alone(nodes, rounds) == ()
    found = alone(nodes, rounds)
    assert (found.good, set(found.faulty), set(found.undecided)) == (("a",), {"b"}, {"c"})


def test_no_node_is_accused_and_no_round_added_where_no_world_begins() -> None:
    nodes = names(6)
    rounds: list[Round] = [[Ran(world, False, "no account", begun=False) for world in next_round(nodes, [])]]
    assert next_round(nodes, rounds) == ()
    found = verdict(nodes, rounds)
    assert (found.good, found.faulty, set(found.undecided)) == ((), {}, set(nodes))
    assert all("no account" in why for why in found.undecided.values())
    each: list[Round] = [[Ran(world, False, "no dcgmi", begun=False) for world in next_alone(nodes, [])]]
    assert next_alone(nodes, each) == ()
    assert (alone(nodes, each).faulty, set(alone(nodes, each).undecided)) == ({}, set(nodes))
