"""Rank and node from the names of files, as launchers and people write them. Pure.

A wrong rank or node on a whole file misleads more than none, so a name must mean it: `resnet50.log` is no host.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

_ENDINGS = re.compile(
    r"(?:\.(?:gz|xz|bz2|zst|zstd|log|out|err|txt|stdout|stderr|std|json|jsonl|output|error|trace|pickle|dump))+$",
    re.IGNORECASE,
)
_RANK = re.compile(
    r"(?:^|[._-])(?<!node[_-])(?<!lora[_-])(?<!low[_-])(?:global[_-]?|mpi[_-]?|log[_-]?)?(?:rank|worker|task|proc)[_.=-]?(\d{1,6})(?=$|[._-])",
    re.IGNORECASE,
)
_LOCAL = re.compile(r"(?:^|[._-])local[_-]?rank[_.=-]?(\d{1,3})(?=$|[._-])", re.IGNORECASE)
_BARE = re.compile(r"\d{1,5}")
_OF_TASK = re.compile(r"(?:slurm-\d+|[A-Za-z][A-Za-z_-]*(?:[._-]\d{4,})?)\.(\d{1,5})\.(?:out|err|log|stdout|stderr)$")
_FLIGHT_RECORDER = re.compile(r"_dump_(\d{1,6})")
_TORCHRUN = re.compile(r"(?:^|/)attempt_\d+/(\d{1,3})/(?:stdout|stderr|error)\b")
_STEM = "node|gpu|dgx|hgx|host|nid|cn|gn|gnode|compute|vm|ip|iam|gh|cpu|h100|a100|h200|b200|gb200|n(?=\\d\\d)"
_NODE = re.compile(
    rf"(?:^|[._-])((?:[a-z][a-z0-9]*-){{0,3}}(?:(?:{_STEM})-?\d{{1,6}}[a-z]?(?:-\d{{1,4}}){{0,4}}|r\d{{1,3}}i\d{{1,3}}n\d{{1,3}}))(?=$|[._-])",
    re.IGNORECASE,
)
# dmesg-frontier-b12, gb-14.kmsg: what is beside the word is the host.
_NODE_LOG = re.compile(
    r"^(?:dmesg|kmsg|kern(?:el)?|journal|syslog|messages|slurmd)[-_.]([a-z][\w-]{1,40})$|^([a-z][\w-]{1,40})[-_.](?:dmesg|kmsg|kern(?:el)?|journal|syslog)$",
    re.IGNORECASE,
)
_MANY_DIGITS = re.compile(r"(?:^|[._-])([a-z]{1,12}(?:0\d{2,6}|\d{4}))(?=$|[._-])", re.IGNORECASE)
_QUALIFIED = re.compile(
    r"(?:^|[_-])([a-z][\w-]*\d[\w-]*(?:\.[a-z][\w-]*){0,4}\.(?:edu|org|com|net|gov|de|fr|uk|ch|it|jp|cn|eu|internal|local|cluster|lan))(?=$|[._])",
    re.IGNORECASE,
)
# Words that stand in front of a host name, or that a number makes no host.
_NO_HOST = frozenset(
    (
        "slurm", "slurmd", "slurmctld", "slurmstepd", "job", "jobs", "run", "log", "logs", "out", "err", "output", "error",
        "train", "training", "test", "eval", "exp", "try", "attempt", "dump", "part", "stdout", "stderr", "rank", "worker",
        "task", "step", "epoch", "seed", "dmesg", "messages", "syslog", "kern", "kernel", "journal", "console", "nvidia",
        "smi", "query", "ps", "pyspy", "spy", "py", "gdb", "stack", "stacks", "fabricmanager", "ibdiagnet", "dcgm", "v",
        "version", "r", "c", "e", "s", "x", "date", "lr", "bs", "batch", "layer", "iter", "checkpoint", "ckpt", "llama", "gpt", "bert", "resnet", "opt",
        "results", "result", "report", "incident", "case", "xid", "error", "rev", "build", "model", "seq", "len",
    )
)  # fmt: skip


class Place(NamedTuple):
    """Where a file's lines come from, as far as its name tells."""

    rank: int | None = None
    local_rank: int | None = None
    node: str | None = None


def place(name: str) -> Place:
    """Rank, local rank and node that a file's name and its folders mean; None for what they do not say."""
    path = PurePosixPath(name.replace("\\", "/"))
    base = _ENDINGS.sub("", path.name)
    folders = list(path.parts[:-1])[-3:]
    node = next((found for part in (base, *reversed(folders)) if (found := _node(part))), None)
    if match := _TORCHRUN.search(str(path)):
        return Place(local_rank=int(match[1]), node=node)
    local = _LOCAL.search(base)
    return Place(_rank(path.name, base, folders), int(local[1]) if local else None, node)


def _rank(name: str, base: str, folders: list[str]) -> int | None:
    match = _RANK.search(_LOCAL.sub("", base)) or (_RANK.fullmatch(folders[-1]) if folders else None)
    match = match or _FLIGHT_RECORDER.fullmatch(base) or _OF_TASK.fullmatch(name)
    if match:
        return int(match[1])
    return int(base) if base != name and _BARE.fullmatch(base) else None


def _node(text: str) -> str | None:
    if match := _QUALIFIED.search(text):
        return match[1]
    log = _NODE_LOG.search(text)
    if log and (named := log[1] or log[2]) and any(c.isdecimal() for c in named):
        return named
    if match := _NODE.search(text):
        parts = match[1].split("-")
        while len(parts) > 1 and parts[0].lower() in _NO_HOST:
            parts = parts[1:]
        return "-".join(parts)
    match = _MANY_DIGITS.search(text)
    return match[1] if match and match[1].rstrip("0123456789").lower() not in _NO_HOST else None
