"""The manifest of a folder that `triage hang collect` wrote: the job's processes with their ranks, and what failed. Pure.

It is read line by line, as it is written with a key a line, so that what it says can be cited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from triage.domain import LogFile, LogLine
from triage.evidence.processes import short

_KEY = re.compile(r'^\s*"(\w{1,40})": (.*?),?\s*$')
_ABSENT = re.compile(r"there is no (\S{1,40})")
_MOST_RANK = 10**6
_MOST_PID = 2**31


@dataclass(frozen=True, slots=True)
class Failed:
    """A tool that did not do what it was asked on a node. pid: of the process that it was asked for, if any."""

    node: str
    pid: int | None
    tool: str
    problem: str
    line: LogLine


@dataclass(frozen=True, slots=True)
class Silent:
    """A node that did not answer, or not to the end."""

    node: str
    problem: str
    line: LogLine


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the job. command: its name as the kernel has it; code: with what it ended, as `wait` has it, None where it runs."""

    node: str
    pid: int
    parent: int | None
    rank: int | None
    command: str
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """ranks: of processes by node without its domain and number; written: there is a manifest."""

    members: tuple[Member, ...] = ()
    failed: tuple[Failed, ...] = ()
    silent: tuple[Silent, ...] = ()
    nodes: int = 0  # that were asked
    written: bool = False
    absent: tuple[str, ...] = ()  # tools that a node did not have

    @property
    def ranks(self) -> dict[tuple[str, int], int]:
        return {(m.node, m.pid): m.rank for m in self.members if m.rank is not None}


def read(files: Iterable[LogFile]) -> Manifest:
    """Of all manifests among the files."""
    members, failed, silent, nodes = list[Member](), [], [], 0
    absent: dict[str, None] = {}
    found = [file for file in files if file.is_manifest]
    for told, line in (item for file in found for item in _objects(file)):
        node, problem = short(str(told.get("node") or "")), str(told.get("problem") or "")
        pid = _number(told.get("pid"), _MOST_PID)
        if "tool" in told:
            if lacks := _ABSENT.match(problem):
                absent[lacks[1]] = None
            elif problem:
                failed.append(Failed(node, pid, str(told["tool"]), problem, line))
        elif pid is not None:
            members.append(_member(node, pid, told))
        elif node:
            nodes += 1
            silent += [Silent(node, problem, line)] if problem else []
    return Manifest(tuple(members), tuple(failed), tuple(silent), nodes, bool(found), tuple(absent))


def _member(node: str, pid: int, told: dict[str, Any]) -> Member:
    parent, rank = _number(told.get("ppid"), _MOST_PID), _number(told.get("rank"), _MOST_RANK)
    return Member(node, pid, parent, rank, str(told.get("comm") or "")[:40], _number(told.get("ended"), 1 << 16))


def _number(value: object, most: int) -> int | None:
    """What nodes told is text of strangers: true is no number, and no rank is as large as a list of all ranks could not be."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most else None


def _objects(file: LogFile) -> Iterator[tuple[dict[str, Any], LogLine]]:
    """The innermost objects, each with the line that names its problem, else its last one."""
    told: dict[str, Any] = {}
    cited: LogLine | None = None
    for line in file.lines:
        text = line.text.strip()
        if text.endswith("{"):
            told, cited = {}, None
        elif text.startswith("}"):
            if told:
                yield told, cited or line
            told, cited = {}, None
        elif found := _KEY.match(line.text):
            try:
                told[found[1]] = json.loads(found[2])
            except (ValueError, RecursionError):
                continue
            if found[1] == "problem":
                cited = line
