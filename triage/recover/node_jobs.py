"""The jobs of a node test: what is started for a world of nodes, and what its output says. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.errors import UsageError
from triage.recover.pairing import Ran, Round, World
from triage.text import host_list, printable

CHECKS = ("nccl", "gloo", "dcgm")
MARK = "TRIAGE-CHECK "
FILE = "triage_allgather.py"
FIRST_PORT, PORTS = 29_600, 300
_WORLD = re.compile(r"^TRIAGE-WORLD (\d{1,4}) ([\w.,-]{1,800}) (-?\d{1,4})\s*$", re.MULTILINE | re.ASCII)
# What the launcher or the shell of a node says where the check itself never ran.
_UNBEGUN = re.compile(
    r"srun: (?:error|fatal): (?:Unable to (?:allocate|create|confirm|submit)|[Ii]nvalid )|srun: (?:unrecognized|invalid) option"
    r"|ModuleNotFoundError: |execve\(\): |: (?:command )?not found|can't open file"
)
_OF_TASKS = re.compile(r"srun: error: .{0,300}: tasks? |srun: Terminating|srun: Job step|slurmstepd: error: \*\*\* ")
_MOST_SAID = 400
_MOST_RATE = 1e6  # Gbit/s; nodes that are tested may answer anything

Command = tuple[str, ...]
Wrap = Callable[[str, Sequence[str]], list[str]]  # the command of this machine that runs argv on a node


@dataclass(frozen=True, slots=True)
class Check:
    """What is run on a world. words: the user's own command, which passes with exit code 0; timeout: seconds for one world.

    ranks: processes of each node; script: how the allgather check is called there: its file, or -c and its text.
    """

    name: str
    words: tuple[str, ...] = ()
    ranks: int = 1
    timeout: int = 60
    python: str = "python3"
    script: tuple[str, ...] = (FILE,)
    options: tuple[str, ...] = ()  # more of srun's own

    @property
    def alone(self) -> bool:
        """Does each node run it by itself?"""
        return self.name == "dcgm"


def chosen(text: str, **more: Any) -> Check:
    """The check of that name, or of that command. Errors: UsageError."""
    if text in CHECKS:
        return Check(text, **more)
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        words = ()
    if not words:
        raise UsageError(f"--check {printable(text[:80])!r} is no command", f"use {', '.join(CHECKS)}, or a command")
    return Check("command", words, **more)


def port_of(world: Sequence[str], of_round: Iterable[World]) -> int:
    """A port of its own for each world of a round, as two may share a machine in between."""
    return FIRST_PORT + list(of_round).index(tuple(world)) % PORTS


def by_srun(check: Check, world: World, port: int) -> tuple[Command, ...]:
    """One job step for the whole world; a rank that fails ends the others."""
    minutes = max(1, -(-3 * check.timeout // 60))
    base = [
        "srun", "--job-name=triage-node-test", f"--nodes={len(world)}", f"--nodelist={host_list(world)}",
        f"--ntasks-per-node={1 if check.alone or check.words else check.ranks}", f"--time={minutes}",
        "--kill-on-bad-exit=1", "--wait=10", *check.options,
    ]  # fmt: skip
    return ((*base, *_payload(check, f"{world[0]}:{port}")),)


def by_node(check: Check, world: World, port: int, wrap: Wrap) -> tuple[Command, ...]:
    """One process for each rank, each started on its node by itself, as over ssh."""
    if check.alone or check.words:
        return tuple(tuple(wrap(node, _payload(check, ""))) for node in world)
    size = len(world) * check.ranks
    started = []
    for at, node in enumerate(world):
        for local in range(check.ranks):
            own = ("--rank", at * check.ranks + local, "--world", size, "--local", local)
            started.append(tuple(wrap(node, [*_payload(check, f"{world[0]}:{port}"), *map(str, own)])))
    return tuple(started)


def _payload(check: Check, store: str) -> list[str]:
    if check.words:
        return list(check.words)
    if check.alone:
        return ["dcgmi", "diag", "-r", "2"]
    asked = ("--backend", check.name, "--store", store, "--timeout", str(check.timeout))
    return [check.python, *check.script, *asked]


def result(check: Check, world: World, codes: Sequence[int | None], output: str, seconds: float) -> Ran:
    """A world passes when each of its processes ended with 0, and each rank of the allgather found its data right.

    codes: None of a process that was ended from outside, as it took too long.
    """
    told = list(_told(output))
    ended_well = all(code == 0 for code in codes)
    if check.words or check.alone:
        passed = ended_well
    else:
        passed = ended_well and len(told) >= len(world) * check.ranks and all(one.get("ok") is True for one in told)
    rate = min(_rates(told), default=None) if passed else None
    begun = passed or not _UNBEGUN.search(output)
    return Ran(world, passed, "" if passed else _why(codes, told, output), seconds, rate, begun)


def _rates(told: Iterable[Mapping[str, Any]]) -> Iterator[float]:
    for one in told:
        rate = one.get("gbps")
        if isinstance(rate, (int, float)) and 0 < rate < _MOST_RATE:
            yield float(rate)


def _told(output: str) -> Iterator[Mapping[str, Any]]:
    for line in output.splitlines():
        _, mark, rest = line.partition(MARK)  # launchers put a label before it
        if mark:
            try:
                found = json.loads(rest)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def _why(codes: Sequence[int | None], told: Sequence[Mapping[str, Any]], output: str) -> str:
    errors = [f"{one.get('host', '?')}: {one['error']}" for one in told if one.get("error")]
    if errors:
        return printable(errors[0][:_MOST_SAID])
    wrong = [str(one.get("host", "?")) for one in told if one.get("wrong")]
    if wrong:
        return "wrong data came through: " + printable(wrong[0][:_MOST_SAID])
    if None in codes:
        return "no end within its time"
    lines = [line.strip() for line in output.splitlines() if line.strip() and MARK not in line]
    lines = [line for line in lines if not _OF_TASKS.match(line)] or lines  # that a task failed is no reason
    bad = next((code for code in codes if code), 0)
    return printable(f"exit code {bad}" + (f": {lines[-1][:200]}" if lines else ""))


def script(number: int, worlds: Sequence[tuple[World, Sequence[Command]]]) -> str:
    """A round as a bash script that runs its worlds at once and leaves one file of output for each. number: from 1."""
    lines = []
    for world, commands in worlds:
        out = f"triage-node-test-{number}-{'+'.join(world)[:120]}.out"
        run = "; ".join(shlex.join(command) for command in commands)
        if len(commands) > 1:
            run = " & ".join(shlex.join(command) for command in commands) + " & wait"
        lines.append(f'({run}; echo "TRIAGE-WORLD {number} {",".join(world)} $?") > {shlex.quote(out)} 2>&1 &')
    return "\n".join([*lines, "wait", ""])


def rounds_of(check: Check, outputs: Iterable[str]) -> list[Round]:
    """What the scripts of earlier rounds left, by their rounds; files in any order. Errors: UsageError for output without its mark."""
    found: dict[int, list[Ran]] = {}
    for output in outputs:
        last = 0
        for mark in _WORLD.finditer(output):
            world = tuple(mark[2].split(","))
            part, last = output[last : mark.start()], mark.end()
            found.setdefault(int(mark[1]), []).append(result(check, world, [int(mark[3])], part, 0.0))
        if not last:
            raise UsageError(
                "a result holds no line TRIAGE-WORLD", "give the files that the printed jobs left, once they are over"
            )
    return [found[number] for number in sorted(found)]
