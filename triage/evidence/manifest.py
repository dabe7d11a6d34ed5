"""The manifest of a folder that `triage hang collect` wrote: the job's processes with their ranks, and what failed. Pure.

It is read line by line, as it is written with a key a line, so that what it says can be cited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from triage.domain import LogFile, LogLine
from triage.evidence.processes import short

_KEY = re.compile(r'^\s*"(\w{1,40})": (.*?),?\s*$')


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
class Manifest:
    """ranks: of processes by node without its domain and number."""

    ranks: dict[tuple[str, int], int] = field(default_factory=dict)
    failed: tuple[Failed, ...] = ()
    silent: tuple[Silent, ...] = ()
    nodes: int = 0  # that were asked


def is_manifest(file: LogFile) -> bool:
    return file.kind == "processes" and PurePosixPath(file.name).name == "manifest.json"


def read(files: Iterable[LogFile]) -> Manifest:
    """Of all manifests among the files."""
    ranks: dict[tuple[str, int], int] = {}
    failed, silent, nodes = [], [], 0
    for told, line in (item for file in files if is_manifest(file) for item in _objects(file)):
        node, pid, problem = short(str(told.get("node") or "")), told.get("pid"), str(told.get("problem") or "")
        if "tool" in told:
            if problem and not problem.startswith("there is no "):
                failed.append(Failed(node, pid if isinstance(pid, int) else None, str(told["tool"]), problem, line))
        elif isinstance(pid, int):
            if isinstance(told.get("rank"), int):
                ranks[node, pid] = told["rank"]
        elif node:
            nodes += 1
            silent += [Silent(node, problem, line)] if problem else []
    return Manifest(ranks, tuple(failed), tuple(silent), nodes)


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
            except ValueError:
                continue
            if found[1] == "problem":
                cited = line
