"""What the judge reasons over: findings with their place in the run, tracebacks, where work last went on, how the run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from triage.diagnose import (
    accounted,
    bystanders,
    divergence,
    flight,
    full_disks,
    gpu_dump,
    hangs,
    links,
    of_data,
    outages,
    outlived,
    pods,
    resets,
    sieve,
    standing,
    strangers,
)
from triage.diagnose.made import MISMATCH, MISMATCH_OF_SIZES, UNCAUGHT, UNEVEN
from triage.diagnose.places import give_ranks, nodes_of_ranks
from triage.domain import JobLog, LogFile, LogLine
from triage.evidence.collectives import Collectives, analyse
from triage.evidence.fallen import Fallen, fallen
from triage.evidence.flight import Flight
from triage.evidence.flight import analyse as analyse_dumps
from triage.evidence.job import job_id
from triage.evidence.match import Best, Finding, Matcher
from triage.evidence.progress import Step, signs, steps
from triage.evidence.suites import suites_that_failed
from triage.evidence.tracebacks import Frame, Traceback, find_tracebacks

_NODE_KINDS = frozenset({"kernel", "fabric"})  # what a node says of itself, whatever job runs on it
_WEAK_END = 10  # trackers close after failures too, and after the program's own last words


@dataclass(frozen=True, slots=True)
class Facts:
    log: JobLog
    findings: tuple[Finding, ...]  # the most specific one of each line
    tracebacks: tuple[Traceback, ...]
    raised: Mapping[tuple[str, int], Traceback]  # tracebacks by the file and number of their last line
    steps: Mapping[str, tuple[Step, ...]]  # by file
    signs: Mapping[str, tuple[LogLine, ...]]  # by file: whatever shows that the program does its work
    ends: Mapping[str, Finding]  # the last normal-end marker of each file
    suites: Mapping[str, int]  # the line of each file in which a test suite says that all tests passed
    done: Mapping[str, int]  # the line of each file in which the program itself says that its work is complete
    collectives: Collectives  # what the watchdogs say together
    flight: Flight = field(default_factory=Flight)  # what flight-recorder dumps say together
    quoted: frozenset[tuple[str, int]] = frozenset()  # file and number of lines that a model wrote
    hang: hangs.Hang = field(default_factory=hangs.Hang)  # who holds the others up, by what was collected
    pods_on: Mapping[tuple[str, int], str] = field(default_factory=dict)  # nodes of lines that describe a pod
    pod_ranks: Mapping[tuple[str, int], int] = field(default_factory=dict)
    fallen: tuple[Fallen, ...] = ()  # the processes that launchers report as gone
    system_files: frozenset[str] = field(default_factory=frozenset)
    node_files: frozenset[str] = field(default_factory=frozenset)
    nodes_of_ranks: Mapping[int, str] = field(default_factory=dict)

    def handled(self, finding: Finding) -> bool:
        """Did work go on, or end well, after this line?"""
        return outlived.handled(self, finding)


def gather(log: JobLog, matcher: Matcher) -> Facts:
    tracebacks = [t for file in log.files for t in find_tracebacks(file.lines)]
    best: Best = {}
    ends: dict[str, Finding] = {}
    done: dict[str, int] = {}
    suites: dict[str, int] = {}
    for finding in matcher.find(log.files):
        key = (finding.line.file, finding.line.number)
        if finding.signature.outcome == "healthy" and finding.signature.role == "context":
            if finding.signature.weight >= _WEAK_END or key[0] not in ends:
                ends[finding.line.file] = finding
            if finding.signature.component == "pytest":
                suites[finding.line.file] = finding.line.number
            if finding.signature.component != "slurm" and finding.signature.weight >= 20:
                done.setdefault(finding.line.file, finding.line.number)
            continue
        if finding.signature.role == "cascade" and finding.signature.failure_type == "unknown":
            ends.pop(finding.line.file, None)  # the program's last words, but its launcher says that it failed
        best.setdefault(key, finding)
    for name in suites_that_failed(log, suites):
        if name in ends and ends[name].line.number == suites.pop(name):
            del ends[name]
    quoted = sieve.quoted(log)
    sieve.drop_other_times(best, log)
    _add_uncaught(best, tracebacks, matcher)
    of_data.weigh(best, tracebacks)
    sieve.drop_ignored(best, log, tracebacks)
    sieve.drop_other_jobs(best, log)
    sieve.drop_chain_links(best, tracebacks)
    sieve.drop_earlier_attempts(best, log)
    gpu_dump.drop_repaired(best, log)
    for key in quoted & best.keys():
        del best[key]
    sieve.drop_succeeded_pods(best, log)
    pods.weigh(best, log)
    outages.weigh(best, log)
    resets.weigh(best)
    links.weigh(best, log)
    accounted.name_nodes(best, log)
    worked = {file.name: tuple(steps(file)) for file in log.files}
    gone = tuple(report for f in log.files for report in fallen(f.lines))
    give_ranks(best, log)
    strangers.weigh(best, log, gone)
    standing.weigh(best, log, worked)
    for told in divergence.find(log, worked):
        best[(told.line.file, told.line.number)] = told
    together = analyse(
        line
        for f in log.files
        for line in f.lines
        if line.hot and ("work" in line.text.lower() or "FingerPrint" in line.text)
    )
    recorded = analyse_dumps(log.files)
    stuck = hangs.look(log, best, stepped=any(worked.values()))
    bystanders.set_aside(best, stuck, log)
    odd = (Finding(w.line, MISMATCH_OF_SIZES if w.resized else MISMATCH, {"rank": str(w.rank)}) for w in together.odd)
    uneven = (Finding(w.line, UNEVEN, {"rank": str(w.rank)}) for w in together.uneven if w.rank is not None)
    for made in (*odd, *uneven, *flight.findings(recorded), *full_disks.find(best, log)):
        best[(made.line.file, made.line.number)] = made
    for made in reversed(stuck.findings):  # of one line, what names a culprit stands
        best[(made.line.file, made.line.number)] = made
    order = {file.name: i for i, file in enumerate(log.files)}
    return Facts(
        log=log,
        findings=tuple(sorted(best.values(), key=lambda f: (order[f.line.file], f.line.number))),
        tracebacks=tuple(tracebacks),
        raised={(t.end.file, t.end.number): t for t in tracebacks},
        steps=worked,
        signs={file.name: signs(file, worked[file.name]) for file in log.files},
        ends=ends,
        suites=suites,
        done=done,
        collectives=together,
        flight=recorded,
        quoted=quoted,
        hang=stuck,
        pods_on=pods.nodes(log),
        pod_ranks=pods.ranks(log),
        fallen=gone,
        system_files=frozenset(f.name for f in log.files if f.kind in sieve.SYSTEM_KINDS),
        node_files=frozenset(f.name for f in log.files if f.kind in _NODE_KINDS),
        nodes_of_ranks=nodes_of_ranks(log, best.values(), gone),
    )


def _add_uncaught(best: Best, tracebacks: Sequence[Traceback], matcher: Matcher) -> None:
    """What a line raises that no signature tells as it stands: by the exception alone, as what is before it may hide it."""
    for t in tracebacks:
        key = (t.end.file, t.end.number)
        if key not in best:
            bare = replace(t.end, text=f"{t.exception}: {t.message}" if t.message else t.exception)
            told = next((f for f in matcher.match(bare) if f.signature.role in ("root", "cascade")), None)
            best[key] = replace(told or Finding(t.end, UNCAUGHT, {"exception": t.exception}), line=t.end)


def own_frame(facts: Facts, finding: Finding) -> Frame | None:
    """Where in the program's own code the exception of this line was raised or passed through."""
    t = facts.raised.get((finding.line.file, finding.line.number))
    return t.own_frame if t else None


def rank_of(finding: Finding, file: LogFile | None = None) -> int | None:
    """The rank a finding speaks of: named in the line's text, tagged before it, or the file's own."""
    named = finding.groups.get("rank", "")
    if named.isdigit():
        return int(named)
    if finding.line.rank is not None:
        return finding.line.rank
    return file.rank if file else None


def node_of(finding: Finding, file: LogFile | None = None) -> str | None:
    return finding.groups.get("node") or finding.line.node or (file.node if file else None)


def job_of(facts: Facts, told: Sequence[Finding]) -> str:
    """The id of the job: as it was asked for, as the lines of its failure say it, those of its cause (`told`) first, else as its files do."""
    if facts.log.job_ids:
        return facts.log.job_ids[0]
    rest = [f for f in facts.findings if f.signature.role in ("root", "cascade")]
    return job_id(facts.log.files, [f.line.text for f in (*told, *rest)])
