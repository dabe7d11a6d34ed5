"""What the names of a job's files mean, seen beside what its lines say: a number that is no rank, a host that lines name. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from triage.domain import LogFile, LogLine

_SAYS_RANK = re.compile(r"rank|worker|task|proc|attempt_\d|dump|slurm-\d", re.IGNORECASE)
_WORLD = re.compile(r"\bnranks[=: ]{1,2}(\d{1,7})\b|\bworld[_ ]size['\"]?[=: ]{1,2}(\d{1,7})\b", re.IGNORECASE)
_OF_NODES = frozenset({"kernel", "fabric", "slurm"})
_POD_NODE = re.compile(r"^Node:\s{1,20}([\w.-]{2,100})(?:/|\s*$)|Successfully assigned \S{1,200} to ([\w.-]{2,100})")
_ON_EACH_NODE = re.compile(r"ps\.txt|(?:pyspy|gdb|wchan|status)-\d{1,9}\.txt")
_LOOKED_AT = 5_000  # lines of each file


def without_false_ranks(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """`85.out` and `job.67.out` alone are of no rank: arrays and scripts number files so, where ranks come in rows.

    A lone file whose name says rank stays, but for a number that the job's own world size leaves out.
    """
    ranked = [f for f in files if f.rank is not None]
    if len(ranked) != 1 or not _is_false(ranked[0]):
        return tuple(files)
    return tuple(_unranked(f) if f is ranked[0] else f for f in files)


def _is_false(file: LogFile) -> bool:
    if not _SAYS_RANK.search("/".join(PurePosixPath(file.name).parts[-2:])):
        return True
    worlds = [
        int(found[1] or found[2]) for line in file.lines[:_LOOKED_AT] if (found := _WORLD.search(line.text[:1000]))
    ]
    return bool(worlds) and file.rank is not None and max(worlds) <= file.rank


def _unranked(file: LogFile) -> LogFile:
    named = re.compile(rf"(?<![\w.]){file.rank}(?![\w.])|[Rr]ank[ =:]*{file.rank}\b")
    return replace(file, rank=None, lines=tuple(_without(line, file.rank, named) for line in file.lines))


def _without(line: LogLine, rank: int | None, named: re.Pattern[str]) -> LogLine:
    taken = line.rank == rank and not named.search(line.text[:200])
    return replace(line, rank=None) if taken else line


def of_collected(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """In a folder that `triage hang collect` wrote, each node has a folder of its own, whatever it is called; so where the same
    is there of several, though nobody wrote a manifest."""
    tops = [str(PurePosixPath(f.name).parent) for f in files if f.is_manifest] or _over_nodes(files)
    return tuple(_of_node(f, node) if (node := _folder_of(f.name, tops)) else f for f in files)


def _over_nodes(files: Sequence[LogFile]) -> list[str]:
    """The folders above those that hold files of the same name, of a kind that is looked at on each node."""
    folders: dict[str, set[PurePosixPath]] = defaultdict(set)
    for path in (PurePosixPath(f.name) for f in files if f.kind in ("stacks", "processes") and f.node is None):
        if _ON_EACH_NODE.fullmatch(path.name):
            folders[path.name].add(path.parent)
    alike = {folder for found in folders.values() if len(found) > 1 for folder in found}
    return [str(above) for above in dict.fromkeys(folder.parent for folder in alike)]


def _folder_of(name: str, tops: Sequence[str]) -> str:
    for top in tops:
        parts = PurePosixPath(name).parts[len(PurePosixPath(top).parts) :]
        if PurePosixPath(top) in PurePosixPath(name).parents and len(parts) > 1 and parts[0] != "flight":
            return parts[0]
    return ""


def _of_node(file: LogFile, node: str) -> LogFile:
    """No rank: the numbers in the names of these files are those of processes."""
    lines = tuple(replace(x, node=node, rank=None if x.rank == file.rank else x.rank) for x in file.lines)
    return replace(file, node=node, rank=None, lines=lines)


def with_hosts(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """A node's own log whose file name holds a host that the job's lines name is of that host."""
    asked = [f for f in files if f.kind in _OF_NODES and f.node is None]
    hosts = set(_hosts(files)) if asked else set()
    found = {f.name: node for f in asked if (node := _host_in(f.name, hosts))}
    return tuple(_of_host(f, found[f.name]) if f.name in found else f for f in files)


def _hosts(files: Sequence[LogFile]) -> Iterator[str]:
    for file in files:
        for line in file.lines[:_LOOKED_AT]:
            if line.node and file.kind not in _OF_NODES:
                yield line.node
            elif file.kind == "kubernetes" and (said := _POD_NODE.search(line.text)):
                yield said[1] or said[2]


def _host_in(name: str, hosts: set[str]) -> str:
    """The longest host that stands in the name of the file as a word of its own."""
    base = PurePosixPath(name).name
    within = [
        host
        for host in hosts
        if re.search(rf"(?:^|[_.-]){re.escape(host.split('.')[0])}(?:[_.]|$)", base, re.IGNORECASE) and len(host) > 1
    ]
    return max(within, key=len, default="")


def _of_host(file: LogFile, node: str) -> LogFile:
    return replace(file, node=node, lines=tuple(replace(x, node=node) if x.node is None else x for x in file.lines))
