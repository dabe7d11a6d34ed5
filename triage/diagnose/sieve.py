"""Findings that are not of this job, this time or any weight: taken out before the judge sees them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from triage.domain import JobLog
from triage.evidence.job import job_id, node_numbers
from triage.evidence.known import known_nodes
from triage.evidence.match import Best
from triage.evidence.tracebacks import Traceback
from triage.heads import split
from triage.jobids import base_and_task

# Files that hold no job output.
SYSTEM_KINDS = frozenset({"kernel", "slurm", "sacct", "kubernetes", "fabric"})
DRAINED = "slurm.node-drained"
AROUND = timedelta(hours=1)  # of the job's own span of time; what a node logs about it
ZONES = timedelta(hours=14)
CLUSTER_GAP = timedelta(hours=6)
_IGNORED = re.compile(r"Exception ignored in|Error in atexit|Exception in thread .*(?:pin_memory|QueueFeeder|Monitor)")
_JOB_NAMED = re.compile(r"\bJobI[dD][=: ](\d+(?:_\d+)?)|^\s*(\d{2,12}(?:_\d{1,9})?)(?:[._+|\s])")

_ROW = re.compile(r"\s{0,20}(\d{2,12}(?:[_+]\d{1,9})?(?:\.\w{1,20})?)[|\s]")
_SAMPLE = re.compile(
    r"^\W{0,3}[-=#*]{3,40} ?(?:\w{1,20} ){0,3}(?:samples?|generat\w{2,5}|completions?|predictions?|responses?|output)\b.{0,120}[-=#*]{3}\s*$",
    re.I,
)
_SAMPLE_ENDS = re.compile(r"^\W{0,3}[-=#*]{3,40} ?end\b.{0,120}[-=#*]{3}\s*$", re.I)
# A label that a program puts before each text of a model or a data set.
_LABELLED = re.compile(
    r"^(?:\W{0,3}\d{1,6}\W{1,3})?(?:sample(?: text)?|generated(?: text)?|generation|completion|prompt|prediction|hypothesis|reference)"
    r"(?: ?[\[(#]?\d{1,6}[\])]?)? ?[:>|]",
    re.I,
)
_PHASE = re.compile(r"Status:\s{1,40}(\w{1,20})\s*$")


def drop_other_times(best: Best, log: JobLog) -> None:
    """A node's own log goes back days: of its findings only those around the job stay, or else the last cluster."""
    own = (
        {"kubernetes"} if log.job_ids else set()
    )  # what a cluster says of a job that it was asked for is of no other time
    system = {f.name for f in log.files if f.kind in SYSTEM_KINDS}
    span = [line.time for f in log.files if f.name not in system for line in f.lines if line.time]
    for name in (f.name for f in log.files if f.kind in SYSTEM_KINDS - own):
        timed = sorted((f.line.time, key) for key, f in best.items() if key[0] == name and f.line.time)
        if not timed:
            continue
        near = {key for at, key in timed if span and min(span) - AROUND <= at <= max(span) + AROUND}
        # Clocks may tell another zone, so a few hours off is near enough when nothing is nearer.
        zone = {key for at, key in timed if span and min(span) - ZONES <= at <= max(span) + ZONES}
        keep = near or zone or (set() if span else _last_cluster(timed))
        for _, key in timed:
            if key not in keep:
                del best[key]


def _last_cluster(timed: Sequence[tuple[datetime, tuple[str, int]]]) -> set[tuple[str, int]]:
    keep = {timed[-1][1]}
    for (earlier, key), (later, _) in zip(reversed(timed[:-1]), reversed(timed), strict=False):
        if later - earlier > CLUSTER_GAP:
            break
        keep.add(key)
    return keep


def drop_ignored(best: Best, log: JobLog, tracebacks: Sequence[Traceback]) -> None:
    """Python says of some tracebacks itself that they are ignored, or come from its own shutdown."""
    said = {(f.name, line.number) for f in log.files for line in f.lines if _IGNORED.search(line.text)}
    for t in tracebacks:
        if {(t.start.file, t.start.number - n) for n in (1, 2)} & said:
            best.pop((t.end.file, t.end.number), None)


def drop_other_jobs(best: Best, log: JobLog) -> None:
    """Scheduler files hold the lines of all jobs: those that name another one than ours, or a node that is not ours, go."""
    own = [f for f in log.files if f.kind == "job"]
    asked = frozenset(log.job_ids)
    mine = _Names(log.job_ids[0], asked) if asked else _Names(job_id(own), node_numbers(own))
    scheduler = {f.name for f in log.files if f.kind in ("slurm", "sacct")}
    nodes = known_nodes(replace(log, files=tuple(f for f in log.files if f.name not in scheduler)))
    for key, finding in list(best.items()):
        named = _JOB_NAMED.search(finding.line.text) if mine.job and key[0] in scheduler else None
        drained = finding.groups.get("node", "") if finding.signature.id == DRAINED and nodes else ""
        if (named and not mine.has(named[1] or named[2])) or (drained and drained not in nodes):
            del best[key]


@dataclass(frozen=True, slots=True)
class _Names:
    """What the scheduler calls our job. job: as its own output tells it; numbers: of the task of an array besides."""

    job: str
    numbers: frozenset[str]

    def has(self, named: str) -> bool:
        """The array's number alone may mean our task, and a task may be ours where we know only the array's."""
        base, task = base_and_task(self.job)
        return named in {self.job, base, *self.numbers} or (not task and base_and_task(named)[0] == base)


def drop_earlier_attempts(best: Best, log: JobLog) -> None:
    """The accounting has a row for each attempt of a job that was put back into the queue: the last one counts."""
    for file in log.files:
        if file.kind != "sacct":
            continue
        last = {found[1]: line.number for line in file.lines if (found := _ROW.match(line.text))}
        for key in [key for key in best if key[0] == file.name]:
            row = _ROW.match(best[key].line.text)
            if row and last.get(row[1], 0) > key[1]:
                del best[key]


def quoted(log: JobLog) -> frozenset[tuple[str, int]]:
    """File and number of lines that are no log: what a model wrote, between the fences of a sample and its end or after a label."""
    found: set[tuple[str, int]] = set()
    for file in log.files:
        within: list[int] | None = None
        for line in file.lines:
            if _SAMPLE_ENDS.search(line.text):
                found |= {(file.name, number) for number in within or ()}
                within = None
            elif _SAMPLE.search(line.text):
                within = []
            elif within is not None:
                within.append(line.number)
            elif _LABELLED.match(split(line.text)[1][:80]):
                found.add((file.name, line.number))
    return frozenset(found)


def drop_succeeded_pods(best: Best, log: JobLog) -> None:
    """A pod that succeeded tells of what its containers went through before."""
    for file in log.files:
        if file.kind != "kubernetes":
            continue
        phases = [(line.number, found[1]) for line in file.lines if (found := _PHASE.match(line.text))]
        for key in [key for key in best if key[0] == file.name]:
            before = [phase for number, phase in phases if number < key[1]]
            if before and before[-1] == "Succeeded":
                del best[key]


def drop_chain_links(best: Best, tracebacks: Sequence[Traceback]) -> None:
    """Of a chain of exceptions only the most telling one stays: the highest weight, the first among equals."""
    chains: dict[tuple[str, int], list[Traceback]] = defaultdict(list)
    for t in tracebacks:
        chains[(t.first.end.file, t.first.end.number)].append(t)
    for chain in chains.values():
        found = [(key, best[key]) for t in chain if (key := (t.end.file, t.end.number)) in best]
        if len(found) < 2:
            continue
        keep = max(found, key=lambda item: item[1].signature.weight)[0]
        for key, finding in found:
            if key != keep and finding.signature.weight < 60:
                del best[key]
