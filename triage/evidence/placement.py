"""Where each rank was put, as launchers print it and host files say it. Pure.

Weaker than a line that carries both a rank and its node: it says where a rank was to run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from triage.domain import JobLog, LogFile, LogLine
from triage.hostlist import expand

_HOST = r"[A-Za-z0-9][\w.-]{0,80}"
_DEEPSPEED = re.compile(r"global_rank_mapping=defaultdict\(<class 'list'>, \{([^}]{1,100000})\}")
_OF_HOST = re.compile(rf"'({_HOST})': \[([\d, ]*)\]")
_STEP = re.compile(rf"launching StepId=\S+ on host ({_HOST}), \d+ tasks: \[?([\d,-]+)\]?")
_BOUND = re.compile(
    rf"^\[({_HOST}):\d+\] (?:MCW )?[Rr]ank (\d{{1,6}}) (?:is )?bound\b|^\[({_HOST}):\d+\] MCW rank (\d{{1,6}}) "
)
_INTEL = re.compile(rf"\[\d+\] MPI startup\(\): (\d{{1,6}})\s+\d+\s+({_HOST})(?:\s|$)")
_RAY = re.compile(rf"\(node_id=\w+, ip=({_HOST}), pid=\d+\) world_rank=(\d{{1,6}}),")
_NCCL_INIT = re.compile(rf"^({_HOST}):\d+:\d+ \[\d+\] NCCL INFO .*\brank (\d{{1,6}}) nranks \d+")
_SLOTS = re.compile(rf"^({_HOST})(?:[ \t]+(?:slots|max_slots|max-slots)[ \t]?=[ \t]?(\d{{1,4}}).*|:(\d{{1,4}}))?\s*$")
_NAMED = re.compile(
    r"host_?-?file|machine_?-?file|pe_?-?hostfile|(?:^|/)(?:machines|hosts|nodefile)(?:\.\w+)?$", re.IGNORECASE
)
_SLURM = re.compile(r"\bSLURM_((?:JOB_)?NODELIST|NTASKS_PER_NODE)[=: ]{1,3}['\"]?([\w.,\[\]-]{1,2000})")
_NUMBER = re.compile(r"\d{1,7}")
_MOST_RANKS = 1 << 18
_SRUN_TASK = re.compile(rf"srun: error: ({_HOST}): task (\d{{1,6}}): ")

Pair: TypeAlias = tuple[int, str]
Readers: TypeAlias = tuple[tuple[str, Callable[[str], Iterator[Pair]]], ...]  # a word that must be there, who reads it


def placed(log: JobLog, seen: Mapping[int, str], ranks: Collection[int]) -> dict[int, str]:
    """The node of each rank that is not seen yet.

    seen: what lines say that carry both; ranks: all that occur. Places that are counted out (srun's tasks, the slots of
    a host file) stand only where they cover every rank and nothing that was seen speaks against them.
    """
    said = dict(pair for file in log.files for line in file.lines for pair in _read(line, _LAUNCHERS))
    if said:
        return said
    tasks = dict(pair for file in log.files for line in file.lines for pair in _read(line, _TASKS))
    for counted in (tasks, *map(_host_file, log.files), _node_list(log)):
        if counted and counted.keys() >= set(ranks) and all(counted.get(r) in (None, n) for r, n in seen.items()):
            return counted
    return {}


def _read(line: LogLine, readers: Readers) -> Iterator[Pair]:
    for word, read in readers:
        if word in line.text:
            yield from read(line.text)


def _deepspeed(text: str) -> Iterator[Pair]:
    if found := _DEEPSPEED.search(text):
        for node, ranks in _OF_HOST.findall(found[1]):
            yield from ((int(rank), node) for rank in ranks.replace(" ", "").split(",") if _NUMBER.fullmatch(rank))


def _step(text: str) -> Iterator[Pair]:
    if found := _STEP.search(text):
        for span in filter(None, found[2].split(",")):
            first, _, last = span.partition("-")
            if (
                _NUMBER.fullmatch(first)
                and _NUMBER.fullmatch(last or first)
                and int(last or first) - int(first) < 100_000
            ):
                yield from ((rank, found[1]) for rank in range(int(first), int(last or first) + 1))


def _bound(text: str) -> Iterator[Pair]:
    if found := _BOUND.match(text):
        yield int(found[2] or found[4]), found[1] or found[3]


def _rank_first(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Pair]]:
    return lambda text: ((int(found[1]), found[2]) for found in pattern.finditer(text))


def _node_first(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Pair]]:
    return lambda text: ((int(found[2]), found[1]) for found in pattern.finditer(text))


_LAUNCHERS: Readers = (
    ("global_rank_mapping", _deepspeed),
    ("ank ", _bound),
    ("MPI startup()", _rank_first(_INTEL)),
    ("world_rank", _node_first(_RAY)),
    ("nranks", _node_first(_NCCL_INIT)),
)
_TASKS: Readers = (("launching StepId", _step),)


def _host_file(file: LogFile) -> dict[int, str]:
    """A file of nothing but hosts and their slots, by name or by its slots: ranks fill it from the top."""
    lines = [line.text.strip() for line in file.lines if line.text.strip() and not line.text.lstrip().startswith("#")]
    hosts = [found for line in lines if (found := _SLOTS.match(line))]
    told = any(found[2] or found[3] for found in hosts) or bool(_NAMED.search(file.name))
    if not told or len(hosts) != len(lines):
        return {}
    of_each = [found[1] for found in hosts for _ in range(int(found[2] or found[3] or 1))]
    return dict(enumerate(of_each))


def _node_list(log: JobLog) -> dict[int, str]:
    """Slurm's list of nodes and tasks on each, where the job prints them: ranks fill the nodes in order."""
    said = {found[1]: found[2] for f in log.files for line in f.lines if (found := _SLURM.search(line.text))}
    each = said.get("NTASKS_PER_NODE", "")
    count = int(each) if _NUMBER.fullmatch(each) else 0
    nodes = expand(said.get("JOB_NODELIST", said.get("NODELIST", "")))
    return dict(enumerate(itertools.islice((node for node in nodes for _ in range(count)), _MOST_RANKS)))


def task_nodes(log: JobLog) -> list[str]:
    """The nodes in the order of their ranks, where a line says it: Slurm's list, or one task of a step on each of them."""
    said = {
        found[1]: found[2]
        for f in log.files
        for line in f.lines
        if "NODELIST" in line.text and (found := _SLURM.search(line.text))
    }
    if listed := expand(said.get("JOB_NODELIST", said.get("NODELIST", ""))):
        return list(listed)
    tasks = {
        int(found[2]): found[1]
        for f in log.files
        for line in f.lines
        if "srun: error" in line.text and (found := _SRUN_TASK.search(line.text[:200]))
    }
    in_order = [tasks[n] for n in range(len(tasks))] if tasks.keys() == set(range(len(tasks))) else []
    return list(dict.fromkeys(in_order))
