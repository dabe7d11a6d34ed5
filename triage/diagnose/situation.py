"""The conditions that steps of runbooks depend on: scheduler, spread, recurrence, and what the cause is. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields

from triage.diagnose import memory
from triage.diagnose.candidates import Candidate
from triage.diagnose.cause_class import cause_class
from triage.diagnose.facts import Facts, node_of, rank_of
from triage.diagnose.hangs import Hang
from triage.domain import SHOWN, LogFile, LogLine, Progress, Suspects, When
from triage.evidence.known import known_nodes
from triage.evidence.match import Finding
from triage.evidence.schedulers import SCHEDULERS, scheduler_of
from triage.regex import compile_pattern

_OTHERS = ("org.apache.hadoop", "org.apache.spark", "yarn.", "RAY_JOB_ID")
_OTHER_COMPONENTS = frozenset({"hadoop", "yarn", "spark", "hdfs", "jvm", "mapreduce"})
_INFINIBAND = re.compile(
    r"NET/IB|\bmlx[45]_|\bib_[a-z]|\bibv_|[Ii]nfini[Bb]and|\bIB\b|\bib\d\b|\bRDMA\b|\bRoCE\b|\bopenib\b"
)
_ROCE = re.compile(r"RoCE|\bshow_gids\b|\b[Gg][Ii][Dd] (?:index|table)|\[RO\]")
_LOCAL = re.compile(r"/(?:tmp|var/tmp|dev/shm|run|local\w{0,12}|scratch/local|raid|nvme\w{0,12})(?:/|$|['\"])")
_LUSTRE = re.compile(r"/lustre\w{0,12}/|\blustre\b", re.IGNORECASE)
_QUOTA = re.compile(r"quota exceeded|EDQUOT|Errno 122\b|over quota|quota limit", re.IGNORECASE)
_PULL_LIMIT = re.compile(r"(?i)toomanyrequests|429 Too Many Requests|pull rate limit")
# What these show is of the failure itself, so that steps which ask for them are of this very case.
OF_FAILURE = frozenset({memory.FOREIGN, memory.PIECES, "quota", "pull-limit", "local-disk"})
_ANYWHERE = {"pull-limit": _PULL_LIMIT, "infiniband": _INFINIBAND, "roce": _ROCE, "nccl": re.compile("NCCL")}
_READ = 2000  # characters of a line
_LOOKED_AT = 6  # lines of the cause


@dataclass(frozen=True, slots=True)
class Situation:
    scheduler: str
    component: str
    signature: str
    cause: str
    action: str
    spread: str  # "" where the log does not tell
    recurrence: str

    lines: tuple[LogLine, ...] = ()
    shows: frozenset[str] = frozenset()  # of triage.domain.SHOWN: what the log tells of the job and its failure

    def meets(self, when: When) -> bool:
        named = all(
            not (asked := getattr(when, f.name)) or getattr(self, f.name) in asked
            for f in fields(When)
            if f.name not in ("seen", "shows")
        )
        if when.shows and not self.shows & set(when.shows):
            return False
        return named and (not when.seen or any(word in line.text for line in self.lines for word in when.seen))


def situation(
    facts: Facts,
    root: Candidate | None,
    found: Suspects,
    action: str,
    progress: Progress | None = None,
    asked: Collection[str] = SHOWN,
) -> Situation:
    return Situation(
        scheduler=scheduler(facts),
        component=root.signature.component if root else "",
        signature=root.signature.id if root else "",
        cause=cause_class(facts, root) if root else "",
        action=action,
        spread=_spread(facts, root, found) if root else "",
        recurrence="again" if root and _seen_before(facts, root) else "first",
        lines=tuple(line for file in facts.log.files for line in file.lines),
        shows=frozenset(_shown(facts, root, progress, asked)),
    )


def _shown(facts: Facts, root: Candidate | None, progress: Progress | None, asked: Collection[str]) -> Iterator[str]:
    """What conditions may ask for by `shows`. asked: what is looked for in every line, which takes its time, only if a step asks."""
    texts = [f.line.text for f in root.findings[:_LOOKED_AT]] if root else []
    found = memory.read(texts[0]) if texts else None
    if found and found.kind:
        yield found.kind
    if any(_QUOTA.search(text) for text in texts):
        yield "quota"
    yield "local-disk" if any(_LOCAL.search(text) for text in texts) else "shared-disk"
    if any(_LUSTRE.search(text) for text in texts):
        yield "lustre"
    for mark, pattern in _ANYWHERE.items():
        if mark in asked and any(pattern.search(line.text[:_READ]) for file in facts.log.files for line in file.lines):
            yield mark
    if any(facts.steps.values()):
        yield "steps"
    yield "stacks" if _all_stacks(facts.hang) else "no-stacks"
    yield "checkpoint" if progress and progress.last_checkpoint else "no-checkpoint"


def _all_stacks(hang: Hang) -> bool:
    """Are stacks here of all ranks that are known, and not of one that somebody looked at?"""
    stacks = hang.scene.stacks
    return stacks is not None and not stacks.missing and (len(hang.scene.seen) > 1 or hang.told.written)


def scheduler(facts: Facts) -> str:
    """One of triage.evidence.schedulers where a file or a line tells, other (YARN, Ray), else none."""
    files = facts.log.files
    if any("slurm" in file.name.rpartition("/")[2].lower() for file in files):
        return "slurm"
    if told := scheduler_of(files):
        return told
    components = [f.signature.component for f in facts.findings]
    if named := next((component for component in components if component in SCHEDULERS), ""):
        return named
    texts = (line.text for file in files if file.kind == "job" for line in file.lines)
    other = not _OTHER_COMPONENTS.isdisjoint(components) or any(mark in text for text in texts for mark in _OTHERS)
    return "other" if other else "none"


def _spread(facts: Facts, root: Candidate, found: Suspects) -> str:
    """many-nodes: the cause is seen on several; one-node: one of several is suspected."""
    files = {file.name: file for file in facts.log.files}
    seen = {name for finding in root.findings if (name := _node(facts, finding, files.get(finding.line.file)))}
    if len(seen) > 1 or len(found.nodes) > 1:
        return "many-nodes"
    return "one-node" if found.nodes and known_nodes(facts.log, facts.nodes_of_ranks) - set(found.nodes) else ""


def _node(facts: Facts, finding: Finding, file: LogFile | None) -> str | None:
    rank = rank_of(finding, file)
    return node_of(finding, file) or (facts.nodes_of_ranks.get(rank) if rank is not None else None)


def _seen_before(facts: Facts, root: Candidate) -> bool:
    """Did an earlier run in this log fail with a line of the same signature?"""
    patterns = [compile_pattern(pattern) for pattern in root.signature.patterns]
    for file in facts.log.files:
        failed = [run for run in file.runs if run.outcome in ("failed", "hung")]
        for line in file.earlier:
            if any(run.first_line <= line.number <= run.last_line for run in failed) and any(
                pattern.search(line.text) for pattern in patterns
            ):
                return True
    return False
