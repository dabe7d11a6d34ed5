"""Runs a node test: one round after the other, the worlds of a round at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import TypeAlias

from triage.recover import node_jobs
from triage.recover.node_jobs import Check, Command
from triage.recover.node_verdict import NodeVerdict, alone, next_alone, verdict
from triage.recover.pairing import MOST_ROUNDS, Ran, Round, World, next_round
from triage.recovering.processes import Ended, together

Launch: TypeAlias = Callable[
    [Check, World, int], tuple[Command, ...]
]  # node_jobs.by_srun, or by_node with a way to the nodes
AT_ONCE = 64  # worlds; each is a process of this machine
_SLACK = 30  # seconds that a launcher may need besides


def check_text() -> str:
    """The source of the allgather check, which is sent to the nodes."""
    return resources.files("triage.recovering").joinpath("allgather_check.py").read_text("utf-8")


def worlds_of(
    check: Check, nodes: Sequence[str], rounds: Sequence[Round], good: Collection[str], most: int
) -> tuple[World, ...]:
    """The next round; () when the test is over."""
    return next_alone(nodes, rounds) if check.alone else next_round(nodes, rounds, good, most)


def judged(check: Check, nodes: Sequence[str], rounds: Sequence[Round], good: Collection[str]) -> NodeVerdict:
    return alone(nodes, rounds) if check.alone else verdict(nodes, rounds, good)


def run(
    nodes: Sequence[str],
    check: Check,
    launch: Launch,
    known_good: Collection[str] = (),
    most: int = MOST_ROUNDS,
    tell: Callable[[str], None] = lambda _text: None,
    begun: Callable[[World, Sequence[Command]], list[int]] = lambda _world, _commands: [],
    ended: Callable[[Sequence[int], Sequence[Ended]], None] = lambda _numbers, _ended: None,
) -> tuple[NodeVerdict, list[Round]]:
    """Until nothing is left to learn. begun, ended: are told of each world; Errors: InputError when the launcher is not there."""
    rounds: list[Round] = []
    stop = threading.Event()
    while worlds := worlds_of(check, nodes, rounds, known_good, most):
        tell(f"round {len(rounds) + 1}: {len(worlds)} worlds")

        def play(world: World, of_round: tuple[World, ...] = worlds) -> Ran:
            commands = launch(check, world, node_jobs.port_of(world, of_round))
            numbers = begun(world, commands)
            done = together(commands, 2 * check.timeout + _SLACK, stop)
            ended(numbers, done)
            output = "\n".join(one.output for one in done)
            return node_jobs.result(check, world, [one.code for one in done], output, max(e.seconds for e in done))

        with ThreadPoolExecutor(min(AT_ONCE, len(worlds)), "world") as pool:
            try:
                rounds.append(list(pool.map(play, worlds)))
            except BaseException:  # interrupted: nothing that was begun outlives us
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
    return judged(check, nodes, rounds, known_good), rounds
