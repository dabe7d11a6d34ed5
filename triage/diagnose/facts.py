"""What the judge reasons over: findings with their place in the run, tracebacks, where work last went on, how the run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from triage.diagnose import sieve
from triage.diagnose.places import nodes_of_ranks
from triage.domain import JobLog, LogFile, LogLine, Signature
from triage.evidence.collectives import Collectives, analyse
from triage.evidence.fallen import Fallen, fallen
from triage.evidence.match import Finding, Matcher
from triage.evidence.progress import Step, steps
from triage.evidence.tracebacks import Frame, Traceback, find_tracebacks

# A finding that work went on after is handled, not fatal: this far on, by the clock or by lines.
HANDLED_AFTER = timedelta(minutes=3)
HANDLED_LINES = 150
STEPS_ON = 30  # steps made after it
FATAL_WEIGHT = 60
FAR_LINES = 400  # a program that crashed does not print so much more before it says that it is done
_NODE_KINDS = frozenset({"kernel", "fabric"})  # what a node says of itself, whatever job runs on it

UNCAUGHT = Signature(
    id="python.uncaught",
    title="an exception that no signature knows ended a traceback",
    patterns=(),
    failure_type="runtime-error",
    root_cause_class="software-bug",
    role="root",
    remedy="Read the traceback: the deepest frame of your own code is where to look.",
    component="python",
    weight=35,
)


MISMATCH = Signature(
    id="collective.mismatch",
    title="ranks waited in different collectives at the same place: another operation or size",
    patterns=(),
    failure_type="collective-mismatch",
    root_cause_class="software-bug",
    role="root",
    remedy="Look for code that only some ranks run, or for uneven data: rerun with TORCH_DISTRIBUTED_DEBUG=DETAIL.",
    component="pytorch",
    weight=75,
    check="TORCH_DISTRIBUTED_DEBUG=DETAIL names the ranks and collectives that differ",
)


OWN_CODE = Signature(
    id="python.own-frame",
    title="the deepest frame of the program's own code",
    patterns=(),
    failure_type="unknown",
    root_cause_class="unknown",
    role="context",
    remedy="",
    weight=50,
)


# What processes print when they are torn down; after the program's own last words it says nothing.
_TEARDOWN = frozenset({"dataloader-killed", "connection-error", "nccl-timeout", "nccl-remote-error"})


@dataclass(frozen=True, slots=True)
class Facts:
    log: JobLog
    findings: tuple[Finding, ...]  # the most specific one of each line
    tracebacks: tuple[Traceback, ...]
    steps: Mapping[str, tuple[Step, ...]]  # by file
    ends: Mapping[str, Finding]  # the last normal-end marker of each file
    suites: Mapping[str, int]  # the line of each file in which a test suite says that all tests passed
    done: Mapping[str, int]  # the line of each file in which the program itself says that its work is complete
    collectives: Collectives  # what the watchdogs say together
    fallen: tuple[Fallen, ...] = ()  # the processes that launchers report as gone
    system_files: frozenset[str] = field(default_factory=frozenset)
    node_files: frozenset[str] = field(default_factory=frozenset)
    nodes_of_ranks: Mapping[int, str] = field(default_factory=dict)

    def handled(self, finding: Finding) -> bool:
        """Did work go on, or end well, after this line?"""
        if finding.line.file in self.system_files:
            return self._outlived(finding)
        if self.suites.get(finding.line.file, 0) > finding.line.number:
            return True  # a test suite prints the failures that it expects
        end = self.ends.get(finding.line.file)
        if end is not None and (end.signature.component == "slurm" or not self._clears(end, finding)):
            end = None
        if end is not None and end.line.number > finding.line.number and finding.signature.outcome != "interrupted":
            return True  # an interrupt is one even if the program then ends in good order
        if finding.signature.failure_type in _TEARDOWN and self._after_clean_end(finding.line):
            return True
        later = [s for s in self.steps.get(finding.line.file, ()) if s.line.number > finding.line.number]
        return bool(later) and _well_after(finding.line, later)

    def _clears(self, end: Finding, finding: Finding) -> bool:
        """Does a marker of a good end speak for what this finding says? An echo does not undo a crash."""
        if end.signature.weight < 10 or not _same_speaker(end.line, finding.line):
            return False  # the accounting and trackers close after failures too
        far = end.line.number - finding.line.number > FAR_LINES
        if far or (finding.signature.weight < FATAL_WEIGHT and not self._ends_traceback(finding.line)):
            return True
        return any(finding.line.number < s.line.number < end.line.number for s in self.steps.get(end.line.file, ()))

    def _ends_traceback(self, line: LogLine) -> bool:
        return any((t.end.file, t.end.number) == (line.file, line.number) for t in self.tracebacks)

    def _after_clean_end(self, line: LogLine) -> bool:
        """The program had said that it was done, and no work came after that."""
        done = self.done.get(line.file)
        return (
            done is not None
            and done < line.number
            and not any(s.line.number > done for s in self.steps.get(line.file, ()))
        )

    def job_ended_well(self) -> bool:
        """Every file of the job itself closes with a marker of a good end."""
        mine = [f.name for f in self.log.files if f.name not in self.system_files and f.kind == "job" and f.lines]
        return bool(mine) and all(name in self.ends for name in mine)

    def _outlived(self, finding: Finding) -> bool:
        """Did the job work on, by the clock, well after what a node's log says happened?"""
        if finding.line.file in self.node_files and self.job_ended_well():
            return True
        at = finding.line.time
        last = [s.line.time for name, found in self.steps.items() if name not in self.system_files for s in found[-1:]]
        return at is not None and any(t is not None and t - at > HANDLED_AFTER for t in last)


def _same_speaker(a: LogLine, b: LogLine) -> bool:
    return a.rank is None or b.rank is None or a.rank == b.rank


def _well_after(line: LogLine, later: Sequence[Step]) -> bool:
    last = later[-1].line
    numbers = {s.number for s in later if s.number is not None}
    if len(numbers) >= 3 and max(numbers) - min(numbers) >= STEPS_ON:
        return True
    since = line.time or later[0].line.time  # a line without a stamp is no later than the next step
    if since and last.time and (line.time or len(later) >= 3):
        return last.time - since > HANDLED_AFTER
    return last.number - line.number > HANDLED_LINES and len(later) >= 3


def gather(log: JobLog, matcher: Matcher) -> Facts:
    tracebacks = [t for file in log.files for t in find_tracebacks(file.lines)]
    best: dict[tuple[str, int], Finding] = {}
    ends: dict[str, Finding] = {}
    done: dict[str, int] = {}
    suites: dict[str, int] = {}
    for finding in matcher.find(log.files):
        key = (finding.line.file, finding.line.number)
        if finding.signature.outcome == "healthy" and finding.signature.role == "context":
            ends[finding.line.file] = finding
            if finding.signature.component == "pytest":
                suites[finding.line.file] = finding.line.number
            if finding.signature.component != "slurm" and finding.signature.weight >= 20:
                done.setdefault(finding.line.file, finding.line.number)
            continue
        if finding.signature.role == "cascade" and finding.signature.failure_type == "unknown":
            ends.pop(finding.line.file, None)  # the program's last words, but its launcher says that it failed
        best.setdefault(key, finding)
    sieve.drop_other_times(best, log)
    _add_uncaught(best, tracebacks)
    sieve.drop_ignored(best, log, tracebacks)
    sieve.drop_other_jobs(best, log)
    sieve.drop_chain_links(best, tracebacks)
    together = analyse(line for f in log.files for line in f.lines if line.hot and "work" in line.text.lower())
    for wait in together.odd:
        best[(wait.line.file, wait.line.number)] = Finding(wait.line, MISMATCH, {"rank": str(wait.rank)})
    order = {file.name: i for i, file in enumerate(log.files)}
    gone = tuple(report for f in log.files for report in fallen(f.lines))
    return Facts(
        log=log,
        findings=tuple(sorted(best.values(), key=lambda f: (order[f.line.file], f.line.number))),
        tracebacks=tuple(tracebacks),
        steps={file.name: tuple(steps(file)) for file in log.files},
        ends=ends,
        suites=suites,
        done=done,
        collectives=together,
        fallen=gone,
        system_files=frozenset(f.name for f in log.files if f.kind in sieve.SYSTEM_KINDS),
        node_files=frozenset(f.name for f in log.files if f.kind in _NODE_KINDS),
        nodes_of_ranks=nodes_of_ranks(log, best.values(), gone),
    )


def _add_uncaught(best: dict[tuple[str, int], Finding], tracebacks: Sequence[Traceback]) -> None:
    for t in tracebacks:
        key = (t.end.file, t.end.number)
        if key not in best:
            best[key] = Finding(t.end, UNCAUGHT, {"exception": t.exception})


def own_frame(facts: Facts, finding: Finding) -> Frame | None:
    """Where in the program's own code the exception of this line was raised or passed through."""
    for t in facts.tracebacks:
        if (t.end.file, t.end.number) == (finding.line.file, finding.line.number):
            return t.own_frame
    return None


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
