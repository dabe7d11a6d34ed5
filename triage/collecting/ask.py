"""Sends what looks at a node to each of them, and has written what comes back."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from triage import reach
from triage.collecting.folder import Folder
from triage.errors import UsageError
from triage.reach import Reach

# In the order in which they are read; each imports from those before it alone.
_PARTS = ("children", "processes", "looks", "native", "main")
_OWN_IMPORT = re.compile(r"^from triage\.\S+ import (?:\([^)]*\)|[^(\n]*)\n", re.MULTILINE)
_STARTING = 20.0  # seconds that a node may take to begin: a step of srun, a connection
_FLIGHT = 40.0  # seconds at the end for the flight recorder
_STACK = 10.0  # seconds of one attempt at a stack


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of which processes: pid and all below it; those of a Slurm job; every one, as in a pod; none of these: those with a rank.

    job: its name in the manifest; seconds: of a node, for the first look; again: seconds until a second look at the
    stacks, 0 for none; nonblocking: no process is stopped for its stack; trigger: the flight recorders are asked for a
    dump, the one thing that writes; ras: NCCL is asked on its port of this machine.
    """

    job: str = ""
    pid: int | None = None
    slurm: str = ""
    every: bool = False
    seconds: float = 60.0
    again: float = 0.0
    nonblocking: bool = False
    trigger: bool = False
    ras: bool = True


@dataclass(frozen=True, slots=True)
class Collected:
    """silent: why, of each node that did not answer or not to the end; processes, stacks: how many of the job."""

    folder: Path
    nodes: tuple[str, ...]
    silent: Mapping[str, str] = field(default_factory=dict)
    processes: int = 0
    stacks: int = 0
    problems: tuple[str, ...] = ()


def script() -> str:
    """What runs on a node, as one text."""
    here = Path(__file__).parent / "on_node"
    texts = ((here / f"{part}.py").read_text("utf-8") for part in _PARTS)
    return "\n\n".join(_OWN_IMPORT.sub("", text) for text in texts) + "\n\nmain()\n"


def collect(at: Reach, wanted: Wanted, folder: Path, tell: Callable[[str], None] = lambda _text: None) -> Collected:
    """Writes what each node told as it comes. Errors: UsageError for a folder that holds something; InputError where it
    cannot be written."""
    if wanted.slurm and not re.fullmatch(r"\d{1,18}", wanted.slurm):
        raise UsageError(f"{wanted.slurm!r} is no id of a Slurm job", "give its number, as squeue -o %A shows it")
    into = Folder.make(folder, wanted.job, at.by or "local")
    most = wanted.seconds + (wanted.again + wanted.seconds if wanted.again else 0) + _FLIGHT + _STARTING
    python = "python3" if at.by else sys.executable
    try:
        for number, answer in enumerate(
            reach.each(at, [python, "-I", "-S", "-", _options(wanted)], script().encode(), most), 1
        ):
            into.add(answer)
            tell(f"{number} of {len(at.nodes)} nodes: {answer.node} {answer.problem or 'answered'}")
    finally:
        into.close()
    return Collected(
        folder, at.nodes, into.silent, len(into.processes), into.stacks, tuple(dict.fromkeys(into.problems()))
    )


def _options(wanted: Wanted) -> str:
    told = {
        "pid": wanted.pid,
        "slurm": wanted.slurm,
        "every": wanted.every,
        "seconds": wanted.seconds,
        "stack_seconds": min(_STACK, wanted.seconds / 4),
        "again": wanted.again,
        "nonblocking": wanted.nonblocking,
        "trigger": wanted.trigger,
        "ras": wanted.ras,
        "bins": [str(Path(sys.executable).parent)],
    }
    return json.dumps(told)
