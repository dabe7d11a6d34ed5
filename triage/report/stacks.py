"""The merged stacks of a hung job: as JSON, and as a tree with ranges of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from triage.domain import StackClass, Stacks
from triage.text import how_many, rank_ranges

MOST_CLASSES = 12  # in the text
_SHOWN = 8  # frames of a branch, from its end


def stacks_json(s: Stacks) -> dict[str, Any]:
    return {
        "classes": [_class(c) for c in s.classes],
        "missing_ranks": list(s.missing),
        "fewer": [{"node": node, "stacks": n} for node, n in s.fewer],
        "looked_again": s.moving + s.again,
        "moved": s.moving,
    }


def _class(c: StackClass) -> dict[str, Any]:
    return {
        "processes": c.processes,
        "ranks": list(c.ranks),
        "nodes": list(c.nodes),
        "pids": list(c.pids),
        "frames": list(c.frames),
        "calls": c.calls,
        "doing": c.doing,
        "apart": c.odd,
        "file": c.file,
        "line": c.line,
    }


def tree(stacks: dict[str, Any]) -> Iterator[str]:
    """A line a class below what several have in common: `[0-5,7] train > all_reduce  (collective)`."""
    classes = stacks["classes"]
    yield from _branch(classes[:MOST_CLASSES], 0, 0)
    if len(classes) > MOST_CLASSES:
        yield f"{len(classes) - MOST_CLASSES} more places: --format json"
    if stacks["missing_ranks"]:
        yield f"no stack of rank {rank_ranges(stacks['missing_ranks'])}"
    for fewer in stacks["fewer"]:
        yield f"{how_many(fewer['stacks'], 'stack')} fewer of node {fewer['node']} than of the others"
    if stacks["looked_again"]:
        yield f"looked at again: {stacks['looked_again']}, of which {stacks['moved']} stood elsewhere"


def _branch(classes: Sequence[dict[str, Any]], depth: int, level: int) -> Iterator[str]:
    """Those that share their frames so far; what all of them share further on is one line."""
    shared = _shared([c["frames"][depth:] for c in classes])
    if len(classes) > 1 and shared:
        yield f"{'  ' * level}[{_who(classes)}] {_path(classes[0]['frames'][depth : depth + shared])}"
        depth, level = depth + shared, level + 1
    if len(classes) == 1:
        c = classes[0]
        path = _path([*c["frames"][depth:], *([c["calls"]] if c["calls"] else [])]) or "the same"
        doing = "" if c["doing"] == "code" else f"  ({c['doing']})"
        yield f"{'  ' * level}[{_who(classes)}] {path}{doing}{'  <- apart' if c['apart'] else ''}"
        return
    groups: dict[str, list[dict[str, Any]]] = {}
    for at, c in enumerate(classes):
        first = c["frames"][depth] if len(c["frames"]) > depth else f"\0{at}"
        groups.setdefault(first, []).append(c)
    for group in groups.values():
        yield from _branch(group, depth, level)


def _shared(frames: Sequence[Sequence[str]]) -> int:
    n = 0
    for column in zip(*frames, strict=False):
        if len(set(column)) > 1:
            break
        n += 1
    return n


def _path(frames: Sequence[str]) -> str:
    names = [frame.rsplit(" (", 1)[0] for frame in frames]
    return " > ".join((["..."] if len(names) > _SHOWN else []) + names[-_SHOWN:])


def _who(classes: Sequence[dict[str, Any]]) -> str:
    ranks = sorted({rank for c in classes for rank in c["ranks"]})
    unnamed = sum(c["processes"] - len(c["ranks"]) for c in classes)
    pids = [pid for c in classes for pid in c["pids"]]
    if not ranks and unnamed == 1 and pids:
        return f"process {pids[0]}"
    named = [rank_ranges(ranks)] if ranks else []
    return ", ".join([*named, *([how_many(unnamed, "process", "processes")] if unnamed > 0 else [])])
