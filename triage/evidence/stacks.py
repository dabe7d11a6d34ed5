"""Which process stands elsewhere than the others, by stacks taken of all of them (py-spy, faulthandler). Pure."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from triage.domain import LogFile, LogLine

_MAIN = re.compile(r"^Thread .{0,80}MainThread|^(?:Current )?[Tt]hread 0x[0-9a-f]+ \(most recent call first\)")
_FRAME = re.compile(r"^\s+(?:File \"(?P<path>[^\"]{1,300})\", line (?P<at>\d+) in (?P<func>\S+)|(?P<name>\S.{0,200}?) \((?P<file>[^()]{1,200}):(?P<line>\d+)\))\s*$")  # fmt: skip
_RANK = re.compile(r"--(?:local[-_])?rank[= ](\d{1,6})\b|\b[Rr]ank (\d{1,6})\b")
_LIBRARY = re.compile(
    r"^<|^(?:torch|jax|numpy|deepspeed|megatron|nccl)/|site-packages|/lib(?:64)?/python\d|^lib\w*\.so"
)
FEWEST = 3  # stacks, for one to be the odd one out


@dataclass(frozen=True, slots=True)
class Stack:
    """Of one process's main thread, the frames of the program's own code, the outermost first: libraries poll here and there."""

    rank: int | None
    frames: tuple[tuple[str, str], ...]  # (function, file)
    lines: tuple[LogLine, ...]  # of the frames


def odd_ones(files: Iterable[LogFile]) -> tuple[tuple[Stack, LogLine], ...]:
    """Stacks that differ from what most show, each with the line of its own code that it stands in; () if none stands out."""
    found = [stack for file in files if file.kind == "stacks" and (stack := _stack(file)) is not None]
    counted = Counter(s.frames for s in found)
    if len(found) < FEWEST or len(counted) < 2:
        return ()
    usual, many = counted.most_common(1)[0]
    if many * 2 <= len(found):
        return ()
    return tuple((s, s.lines[-1]) for s in found if s.frames != usual)


def _stack(file: LogFile) -> Stack | None:
    rank = file.rank
    own: list[tuple[tuple[str, str], LogLine]] = []
    inside = seen = False
    for line in file.lines:
        if rank is None and (said := _RANK.search(line.text)):
            rank = int(said[1] or said[2])
        frame = _FRAME.match(line.text)
        if _MAIN.search(line.text):
            inside = True
        elif inside and frame:
            seen = True
            named = (frame["func"] or frame["name"], frame["path"] or frame["file"])
            if not _library(named[1]):
                own.append((named, line))
        elif inside and seen:
            break
    own.reverse()
    return Stack(rank, tuple(named for named, _ in own), tuple(line for _, line in own)) if own else None


def _library(file: str) -> bool:
    return bool(_LIBRARY.search(file)) or file.split("/", maxsplit=1)[0].removesuffix(".py") in sys.stdlib_module_names
