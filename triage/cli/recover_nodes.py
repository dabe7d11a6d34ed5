"""`triage recover node-test`: shown, printed as jobs, read from results, or run."""

from __future__ import annotations

import json
import shlex
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triage import reach
from triage.cli import output, wiring
from triage.cli.who import user
from triage.errors import InputError, UsageError
from triage.recover import node_jobs
from triage.recover.hosts import is_name, named
from triage.recover.node_jobs import Check, Command
from triage.recover.node_verdict import NodeVerdict
from triage.recover.pairing import Round, World, refused
from triage.recovering import node_test
from triage.recovering.processes import Ended
from triage.text import excluding, host_list, how_many

WAYS = ("srun", "ssh")
KIND = "node-test"


@dataclass(frozen=True, slots=True)
class Test:
    nodes: tuple[str, ...]
    good: tuple[str, ...]
    check: Check
    by: str
    most: int

    def launch(self, check: Check, world: World, port: int) -> tuple[Command, ...]:
        if self.by == "srun":
            return node_jobs.by_srun(check, world, port)
        return node_jobs.by_node(check, world, port, reach.ssh(world).wrap)

    def worlds(self, rounds: Sequence[Round]) -> tuple[World, ...]:
        return node_test.worlds_of(self.check, self.nodes, rounds, self.good, self.most)

    def commands(self, worlds: Sequence[World]) -> list[tuple[World, tuple[Command, ...]]]:
        return [(world, self.launch(self.check, world, node_jobs.port_of(world, worlds))) for world in worlds]


def prepared(nodes: str, known_good: str, check: str, by: str, most: int, **more: Any) -> Test:
    """Errors: UsageError."""
    found, good = named(nodes), named(known_good) if known_good else ()
    if not set(found) - set(good):
        raise UsageError(
            "all of --nodes are --known-good: nothing is left to test", "name other nodes, or fewer as good"
        )
    if by not in WAYS:
        raise UsageError(f"--by {by!r} is not known", f"use {' or '.join(WAYS)}")
    chosen = node_jobs.chosen(check, **{**more, "options": tuple(more["options"])})
    if bad := [option for option in chosen.options if not option.startswith("-")]:
        raise UsageError(
            f"--srun-option {bad[0]!r} is no option", "write it in one word, such as --srun-option=--partition=gpu"
        )
    if len(found) < 2 and not good and not chosen.alone:
        raise UsageError(
            "one node alone cannot be tested", "name two at least, or one that is known to work with --known-good"
        )
    return Test(tuple(n for n in found if n not in good), good, chosen, by, most)


def print_round(test: Test, rounds: Sequence[Round]) -> int:
    """The next round as a script; the check stands in it where the nodes need it."""
    worlds = test.worlds(rounds)
    script = node_jobs.script(len(rounds) + 1, test.commands(worlds))
    output.write("#!/bin/bash\n" + _file(test.check) + script)
    output.note(
        f"round {len(rounds) + 1}, {how_many(len(worlds), 'world')}; run it in a folder that the nodes share, then:"
        f" triage recover node-test ... --print --results triage-node-test-*.out"
    )
    return 0


def _file(check: Check) -> str:
    if check.words or check.alone:
        return ""
    return f"cat > {node_jobs.FILE} <<'END-OF-CHECK'\n{node_test.check_text()}END-OF-CHECK\n"


def from_results(test: Test, files: Sequence[Path], print_jobs: bool, chosen: str) -> int:
    """What they say; with print_jobs the next round, as long as there is one. Errors: InputError, UsageError."""
    texts = []
    for path in files:
        try:
            texts.append(path.read_text("utf-8", "replace"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", "give the files that the printed jobs left") from None
    rounds = node_jobs.rounds_of(test.check, texts)
    strangers = {n for r in rounds for ran in r for n in ran.world} - {*test.nodes, *test.good}
    if strangers:
        raise UsageError(
            f"the results are of {sorted(strangers)[0]}, which --nodes does not name", "give the same nodes"
        )
    if print_jobs and test.worlds(rounds):
        return print_round(test, rounds)
    return tell(node_test.judged(test.check, test.nodes, rounds, test.good), rounds, chosen)


def run(test: Test, incident: int | None, yes: bool, chosen: str) -> int:
    """Shows the first round, or with `yes` runs all. Errors: UsageError where the settings do not allow it."""
    settings = wiring.settings()
    if not yes:
        return _shown(test, chosen)
    if KIND not in settings.recover_allow.split(", "):
        raise UsageError(
            "the settings do not allow node tests to be run", "set TRIAGE_RECOVER_ALLOW=node-test, or use --print"
        )
    check = test.check
    sent = check if check.words or check.alone else _with_text(check)
    tell_progress = output.teller(False)
    with _Recorder(settings.database_url, incident) as recorder:
        found, rounds = node_test.run(
            test.nodes, sent, test.launch, test.good, test.most, tell_progress, recorder.begun, recorder.ended
        )
    output.clear_progress(False)
    return tell(found, rounds, chosen)


def _with_text(check: Check) -> Check:
    from dataclasses import replace

    return replace(check, script=("-c", node_test.check_text()))


class _Recorder:
    """Writes down each command before it runs, and how it ended."""

    def __init__(self, url: str, incident: int | None) -> None:
        from triage.store.actions import ActionStore

        self._store, self._incident, self._lock = ActionStore.open(url), incident, threading.Lock()

    def __enter__(self) -> _Recorder:
        return self

    def __exit__(self, *_error: object) -> None:
        self._store.close()

    def begun(self, world: World, commands: Sequence[Command]) -> list[int]:
        from triage.store.actions import Action

        what, undo = f"allgather of {', '.join(world)}", "scancel --name=triage-node-test"
        with self._lock:
            return [
                self._store.begin(Action(KIND, what, "reversible", c, user(), undo, self._incident)) for c in commands
            ]

    def ended(self, numbers: Sequence[int], all_ended: Sequence[Ended]) -> None:
        with self._lock:
            for number, one in zip(numbers, all_ended, strict=True):
                self._store.end(number, one.code, one.output)


def _shown(test: Test, chosen: str) -> int:
    worlds = test.worlds([])
    shown = [shlex.join(c) for _, commands in test.commands(worlds[:3]) for c in commands]
    if chosen == "json":
        listed = [{"world": list(w), "commands": [list(c) for c in cs]} for w, cs in test.commands(worlds)]
        output.write(json.dumps({"dry_run": True, "round": 1, "worlds": listed}))
        return 0
    lines = [
        f"Round 1 would run {how_many(len(worlds), 'world')}, the first of them:",
        *(f"  {line}" for line in shown),
    ]
    output.write("\n".join(lines))
    output.note("nothing was run; --yes runs the test, --print prints it as jobs")
    return 0


def tell(found: NodeVerdict, rounds: Sequence[Round], chosen: str) -> int:
    """1 where a node or a link is named, or left undecided."""
    if chosen == "json":
        played = [[asdict(ran) for ran in one] for one in rounds]
        output.write_last(json.dumps({**asdict(found), "exclude": host_list(found.faulty), "runs": played}))
    else:
        output.write_last("\n".join(_lines(found, rounds)))
    return 1 if found.faulty or found.links or found.undecided else 0


def _lines(found: NodeVerdict, rounds: Sequence[Round]) -> list[str]:
    head = f"{how_many(len(found.good), 'good node')}, {len(found.faulty)} faulty, {len(found.undecided)} undecided"
    lines = [f"{head}, in {how_many(found.rounds, 'round')} and {how_many(found.worlds, 'world')}"]
    for node, why in found.faulty.items():
        lines.append(f"  faulty     {node}: {why}")
        lines += [f"             {said}" for said in _said(rounds, node)]
    lines += [f"  undecided  {node}: {why}" for node, why in found.undecided.items()]
    if not found.good and not refused(rounds):
        lines += [f"             {said}" for said in _reasons(rounds)]
    lines += [
        f"  link       {' - '.join(link.nodes)}: failed {link.failed} of {link.runs} runs; each is good with others"
        for link in found.links
    ]
    lines += [f"  slow       {', '.join(world)}: {gbps:g} Gbit/s" for world, gbps in found.slow]
    if found.faulty and all(map(is_name, found.faulty)):
        lines += ["", f"Submit without: {excluding('slurm', found.faulty)}"]
    return lines


def _reasons(rounds: Sequence[Round]) -> list[str]:
    """The commonest ones, for who sees no world pass."""
    told = Counter(ran.said for one in rounds for ran in one if ran.said)
    return [f"{said} ({how_many(count, 'world')})" for said, count in told.most_common(3)]


def _said(rounds: Sequence[Round], node: str) -> list[str]:
    return [ran.said for one in rounds for ran in one if node in ran.world and ran.said][:1]
