"""Ranks that are not where the others are by what each printed last, and nodes whose network is set up otherwise. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from triage.domain import LogFile, LogLine

_RANK = re.compile(r"\b[Rr]ank ?[:=\]]? ?\[?(\d{1,6})\b")
_EPOCH = re.compile(r"\b[Ee]poch ?[:=]? ?\[?(\d{1,6})\b(?:\]? ?[:\[]? ?\[?(\d{1,9}) ?/)?")
_TOGETHER = timedelta(seconds=120)
_CHANNEL = re.compile(
    r"(?:^|\s)([A-Za-z0-9][\w.-]{0,80}):\d{1,8}:\d{1,8} \[\d+\] NCCL INFO Channel \d+(?:/\d+)? : .{1,80} via (\S+)"
)


@dataclass(frozen=True, slots=True)
class Last:
    """What a rank printed last of its way. step: within the epoch, None where it is not told."""

    rank: int
    epoch: int
    step: int | None
    line: LogLine


def apart(files: Iterable[LogFile]) -> tuple[tuple[Last, ...], tuple[Last, ...]]:
    """(those in an earlier epoch, those further on), where both printed at about the same time; else nobody.

    Ranks change epochs one after the other too: those further on must be past the first steps of it.
    """
    last: dict[int, Last] = {}
    lines: Counter[tuple[int, int]] = Counter()
    for file in files:
        for line in file.lines if file.kind == "job" else ():
            if "poch" in line.text and (found := _EPOCH.search(line.text[:400])):
                named = _RANK.search(line.text[:400])
                rank = int(named[1]) if named else line.rank
                if rank is not None:
                    epoch = int(found[1])
                    lines[rank, epoch] += line.repeats
                    last[rank] = Last(rank, epoch, int(found[2]) if found[2] else None, line)
    epochs = {at.epoch for at in last.values()}
    if len(epochs) != 2 or len(last) < 2:
        return (), ()
    behind = tuple(at for at in last.values() if at.epoch == min(epochs))
    ahead = tuple(at for at in last.values() if at.epoch == max(epochs))
    entered = all((at.step or 0) > 2 or lines[at.rank, at.epoch] > 2 for at in ahead)
    return (behind, ahead) if entered and _at_once(behind, ahead) else ((), ())


def _at_once(behind: tuple[Last, ...], ahead: tuple[Last, ...]) -> bool:
    """Did the last ranks behind still print when the first ahead printed last?"""
    late = [at.line.time for at in behind if at.line.time]
    early = [at.line.time for at in ahead if at.line.time]
    if late and early:
        return abs(max(late) - min(early)) <= _TOGETHER
    same = {at.line.file for at in (*behind, *ahead)}
    numbers = [at.line.number for at in (*behind, *ahead)]
    return len(same) == 1 and max(numbers) - min(numbers) <= 4 * len(numbers)


def without_gdr(files: Iterable[LogFile]) -> tuple[LogLine, tuple[LogLine, ...]] | None:
    """(a channel with GPU-direct RDMA, the first channel of each node that has none), of a job on several nodes whose
    nodes differ in it; None where all are alike, or not all of their channels were kept."""
    first: dict[str, LogLine] = {}
    direct: dict[str, LogLine] = {}
    for file in files:
        for line in file.lines if file.kind == "job" else ():
            if "NCCL INFO Channel" in line.text and (found := _CHANNEL.search(line.text[:400])):
                if line.repeats > 1 and "NET/" in line.text:
                    return None
                first.setdefault(found[1], line)
                if found[2].endswith("GDRDMA"):
                    direct.setdefault(found[1], line)
    without = tuple(line for node, line in first.items() if node not in direct)
    return (next(iter(direct.values())), without) if direct and without else None
