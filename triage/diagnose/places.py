"""Which rank ran on which node, as far as the log says. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from triage.domain import JobLog
from triage.evidence.fallen import Fallen
from triage.evidence.match import Finding
from triage.heads import split

_ON = re.compile(
    r"\b[Rr]ank (\d{1,6})(?: ?(?:of|/) ?\d{1,6})? (?:is |runs |running )?on (?:host |node )?([A-Za-z][\w.-]{1,80}\d)\b"
)
_DIGITS = re.compile(r"\d+")
_POD_NODE = re.compile(r"Node:\s{1,20}([\w.-]{1,100})(?:/|\s*$)")
_SRUN_LABEL = re.compile(r" {0,6}(\d{1,6}): ")
_BESIDE = re.compile(r"\b[Rr]ank (\d{1,6}) \(([A-Za-z][\w.-]{0,80}\d), local")


def nodes_of_ranks(log: JobLog, findings: Iterable[Finding], gone: Sequence[Fallen]) -> dict[int, str]:
    """From lines that carry both: under a rank label, in a launcher's report, or in words."""
    found: dict[int, str] = {}
    for report in gone:
        if report.node and not (report.tasks and are_launchers(log, gone)):
            found.update(dict.fromkeys(report.ranks, report.node))
    hosts = {report.node for report in gone} | {line.node for f in log.files for line in f.lines}
    for file in log.files:
        for line in file.lines:
            if line.rank is not None and line.rank not in found:
                node = line.node or _host_named_first(line.text, hosts)
                if node:
                    found[line.rank] = node
            elif "ank " in line.text and (said := _ON.search(line.text) or _BESIDE.search(line.text)):
                found.setdefault(int(said[1]), said[2])
    for f in findings:
        rank, node = f.groups.get("rank", ""), f.groups.get("node")
        if rank.isdigit() and node:
            found[int(rank)] = node
    return found


def _host_named_first(text: str, hosts: set[str | None]) -> str | None:
    """`3: n117: starting`: the host that the program names first under its rank's label."""
    first = split(text)[1].split(" ", 1)[0].rstrip(":")
    if first in hosts or (
        _DIGITS.search(first) and _DIGITS.sub("#", first) in {_DIGITS.sub("#", h) for h in hosts if h}
    ):
        return first
    said = _ON.search(text) or _BESIDE.search(text) if "ank " in text else None
    return said[2] if said else None


def pods_on(log: JobLog) -> dict[tuple[str, int], str]:
    """The node of each line that kubectl prints to describe a pod."""
    found: dict[tuple[str, int], str] = {}
    for file in log.files:
        node = None
        for line in file.lines if file.kind == "kubernetes" else ():
            if line.text.startswith("Name:"):
                node = None
            elif said := _POD_NODE.match(line.text):
                node = said[1]
            if node:
                found[(file.name, line.number)] = node
    return found


def are_launchers(log: JobLog, gone: Sequence[Fallen]) -> bool:
    """Are srun's tasks launchers of several ranks each? Then ranks go beyond the tasks, and srun's labels are not theirs."""
    tasks = {n for r in gone if r.tasks for n in r.ranks}
    if all(rank <= max(tasks, default=0) for rank in known_ranks(log)):
        return False
    labels = [
        (int(found[1]), line.rank) for f in log.files for line in f.lines if (found := _SRUN_LABEL.match(line.text))
    ]
    return not labels or any(label != rank for label, rank in labels)


def known_ranks(log: JobLog) -> set[int]:
    seen = {line.rank for f in log.files for line in f.lines if line.rank is not None}
    seen |= {r for f in log.files for line in f.lines for r in line.ranks}
    return seen | {f.rank for f in log.files if f.rank is not None}


def known_nodes(log: JobLog, of_ranks: Mapping[int, str]) -> set[str]:
    seen = {line.node for f in log.files for line in f.lines if line.node}
    return seen | {f.node for f in log.files if f.node} | set(of_ranks.values())
