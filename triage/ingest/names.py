"""Rank and node from the names of files, as launchers and people write them. Pure."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import NamedTuple

_ENDINGS = re.compile(r"(?:\.(?:gz|xz|bz2|zst|log|out|err|txt|stdout|stderr|std|jsonl?|output|o|e))+$", re.IGNORECASE)
_RANK = re.compile(
    r"(?:^|[._-])(?:global[_-]?)?(?:rank|worker|task|proc(?:ess)?|mpirank|pe)[_.=-]?(\d{1,6})(?![\d])", re.IGNORECASE
)
_LOCAL = re.compile(r"(?:^|[._-])local[_-]?rank[_.=-]?(\d{1,3})(?!\d)", re.IGNORECASE)
_BARE = re.compile(r"\d{1,5}")
_TORCHRUN = re.compile(r"(?:^|/)attempt_\d+/(\d{1,3})/(?:stdout|stderr|error)\b")
_NODE_WORD = re.compile(
    r"(?:^|[._-])((?:[a-z]{2,12}-)*(?:node|gpu|dgx|hgx|host|nid|cn|compute|slurmd|ip|iam|r\d{1,3}i\d{1,3}n|gn|cpu|vm|azwus\w*|h100|a100|b200)-?\d[\w-]*)"
    r"(?=$|[._])",
    re.IGNORECASE,
)
_HOST = re.compile(r"[a-z][a-z]*(?:-[a-z0-9]+)*-?\d{1,6}(?:\.[a-z0-9-]+)*", re.IGNORECASE)
_NOT_HOSTS = re.compile(
    r"(?:slurm|job|run|log|logs|out|err|train|training|test|eval|exp|try|attempt|dump|part|stdout|stderr|rank|worker|task|step|epoch|seed|dmesg|messages|syslog|gpu\.query|std|v|version|node_rank)[_-]?\d*",
    re.IGNORECASE,
)


class Place(NamedTuple):
    """Where a file's lines come from, as far as its name tells."""

    rank: int | None = None
    local_rank: int | None = None
    node: str | None = None


def place(name: str) -> Place:
    """Rank, local rank and node that the name of a file means; None for what it does not say."""
    posix = name.replace("\\", "/")
    base = _ENDINGS.sub("", PurePath(posix).name)
    folder = PurePath(posix).parent.name
    if match := _TORCHRUN.search(posix):
        return Place(local_rank=int(match[1]), node=_node(folder))
    local = _LOCAL.search(base)
    rest = _LOCAL.sub("", base)
    rank = _RANK.search(rest) or _RANK.fullmatch(folder)
    number = int(rank[1]) if rank else _bare_rank(base, posix)
    return Place(number, int(local[1]) if local else None, _node(base) or _node(folder))


def _bare_rank(base: str, name: str) -> int | None:
    """`0.stderr`, `17.out`: the whole name is a task number."""
    return int(base) if _BARE.fullmatch(base) and re.search(r"\.(?:std)?(?:out|err)|\.log$", name) else None


def _node(base: str) -> str | None:
    if match := _NODE_WORD.search(base):
        return match[1]
    if _HOST.fullmatch(base) and not _NOT_HOSTS.fullmatch(base):
        return base
    return None
