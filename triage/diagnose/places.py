"""Which rank ran on which node, as far as the log says. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from triage.domain import JobLog, LogFile
from triage.evidence.fallen import Fallen
from triage.evidence.known import known_ranks
from triage.evidence.match import Best, Finding
from triage.evidence.placement import placed
from triage.heads import split

_ON = re.compile(
    r"\b[Rr]ank (\d{1,6})(?: ?(?:of|/) ?\d{1,6})? (?:is |runs |running )?on (?:host |node )?([A-Za-z][\w.-]{1,80}\d)\b"
)
_DIGITS = re.compile(r"\d+")
_SRUN_LABEL = re.compile(r" {0,6}(\d{1,6}): ")
_LABEL_AND_RANK = re.compile(r" {0,6}(\d{1,6}): \[rank(\d{1,6})\]")
_ENOUGH = 2  # lines that carry both
_HCCL_PID = re.compile(r"\bHCCL\((\d{1,9}),")
_HCCL_RANK = re.compile(r"\bHCCL\((\d{1,9}),.{1,200}?(?<!root )\brank\[(\d{1,6})\]")
_HEADED = re.compile(
    r"^host ([A-Za-z][\w.-]{1,80}) (?:task|rank|process) (\d{1,6}) ?(?:/|of) ?\d{1,6}\b"
    r"|^\[([A-Za-z][\w.-]{0,80}\d)\] rank (\d{1,6}) (?:device|gpu|ip|local)\b"
)
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
            if line.text.startswith(("host ", "[")) and (head := _HEADED.match(line.text)):
                found.setdefault(int(head[2] or head[4]), head[1] or head[3])
            elif line.rank is not None and line.rank not in found:
                node = line.node or _host_named_first(line.text, hosts)
                if node:
                    found[line.rank] = node
            elif "ank " in line.text and (said := _ON.search(line.text) or _BESIDE.search(line.text)):
                found.setdefault(int(said[1]), said[2])
    for f in findings:
        rank, node = f.groups.get("rank", ""), f.groups.get("node")
        if rank.isdigit() and node:
            found[int(rank)] = node
    return {**placed(log, found, known_ranks(log)), **found}


def _host_named_first(text: str, hosts: set[str | None]) -> str | None:
    """`3: n117: starting`: the host that the program names first under its rank's label."""
    first = split(text)[1].split(" ", 1)[0].rstrip(":")
    if first in hosts or (
        _DIGITS.search(first) and _DIGITS.sub("#", first) in {_DIGITS.sub("#", h) for h in hosts if h}
    ):
        return first
    said = _ON.search(text) or _BESIDE.search(text) if "ank " in text else None
    return said[2] if said else None


def are_launchers(log: JobLog, gone: Sequence[Fallen]) -> bool:
    """Are srun's tasks launchers of several ranks each? Then ranks go beyond the tasks, and srun's labels are not theirs."""
    tasks = {n for r in gone if r.tasks for n in r.ranks}
    if all(rank <= max(tasks, default=0) for rank in known_ranks(log)):
        return False
    labels = [
        (int(found[1]), line.rank) for f in log.files for line in f.lines if (found := _SRUN_LABEL.match(line.text))
    ]
    return not labels or any(label != rank for label, rank in labels)


def give_ranks(best: Best, log: JobLog) -> None:
    """Findings whose line names no rank get the one that srun's label or their process's number stands for."""
    labels = {f.name for f in log.files if _labels_are_ranks(f)}
    of_pids = {f.name: _ranks_of_pids(f) for f in log.files if f.kind == "job"}
    for key, f in best.items():
        if f.line.rank is not None or "rank" in f.groups or key[0] not in of_pids:
            continue
        label = _SRUN_LABEL.match(f.line.text) if key[0] in labels else None
        process = _HCCL_PID.search(f.line.text)
        rank = label[1] if label else of_pids[key[0]].get(process[1]) if process else None
        if rank is not None:
            best[key] = replace(f, groups={**f.groups, "rank": rank})


def _labels_are_ranks(file: LogFile) -> bool:
    """Do srun's labels say the rank wherever the program does too?"""
    both = [found for line in file.lines if (found := _LABEL_AND_RANK.match(line.text))]
    return len(both) >= _ENOUGH and all(found[1] == found[2] for found in both)


def _ranks_of_pids(file: LogFile) -> dict[str, str]:
    """Processes of which HCCL says the rank."""
    found: dict[str, str] = {}
    for line in file.lines:
        if "HCCL(" in line.text and (said := _HCCL_RANK.search(line.text)):
            found.setdefault(said[1], said[2])
    return found
