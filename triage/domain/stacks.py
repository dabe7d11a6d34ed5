"""Stacks of a job's processes, merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a process does where it stands.
Doing = Literal[
    "collective", "point-to-point", "rendezvous", "gpu", "data-loader", "sleep", "lock", "file", "debugger", "native",
    "code", "no answer",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class StackClass:
    """Processes that stand in the same place; ranks and nodes as far as they are known.

    frames: of the main thread, the outermost first, as `function (file)`; calls: the library call that they stand in, "" in
    their own code; file, line: where one of them is to be read; odd: they stand elsewhere than those who wait.
    """

    processes: int
    ranks: tuple[int, ...]
    nodes: tuple[str, ...]
    pids: tuple[int, ...]
    frames: tuple[str, ...]
    calls: str
    doing: Doing
    file: str
    line: int
    odd: bool = False


@dataclass(frozen=True, slots=True)
class Stacks:
    """classes: the largest first. missing: ranks of which there is no stack; fewer: nodes that gave fewer stacks than the others,
    with how many fewer; moving: of processes with several stacks, how many stood elsewhere the next time; again: how many did not.
    """

    classes: tuple[StackClass, ...] = ()
    missing: tuple[int, ...] = ()
    fewer: tuple[tuple[str, int], ...] = ()
    moving: int = 0
    again: int = 0
