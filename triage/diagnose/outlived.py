"""Was what a line reports outlived: did work go on after it, or did the run end well? Then it is no failure. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from triage.diagnose.divergence import LASTING
from triage.domain import LogLine
from triage.evidence.match import Finding
from triage.evidence.progress import Step
from triage.evidence.tracebacks import Traceback

if TYPE_CHECKING:
    from triage.diagnose.candidates import Candidate, Explained
    from triage.diagnose.facts import Facts

# A finding that work went on after is handled, not fatal: this far on, by the clock or by lines.
HANDLED_AFTER = timedelta(minutes=3)
HANDLED_LINES = 150
STEPS_ON = 30  # steps made after it
FATAL_WEIGHT = 60
FAR_LINES = 400  # a program that crashed does not print so much more before it says that it is done

# What processes print when they are torn down; after the program's own last words it says nothing.
_TEARDOWN = frozenset({"dataloader-killed", "connection-error", "nccl-timeout", "nccl-remote-error"})
# How a program says that it caught an error and what it does instead.
_GOES_ON = re.compile(
    r"\b(?:re-?try(?:ing)?|try(?:ing)? (?:it )?again|\w{4,12}ing (?:it |them |this )?again|skipping|tak(?:ing|es) the next|"
    r"fall(?:ing|s)? back|will be retried|continu(?:ing|es) (?:with|without|anyway|training)|kept locally|attempt \d+ ?(?:/|of) ?\d+)\b",
    re.IGNORECASE,
)
# How a platform or a program says that it runs again after it was ended from outside.
_RUNS_AGAIN = re.compile(
    r"\b(?:recovered|resum(?:ed|ing) (?:from|training|at)|restored from|restart(?:ed|ing) from)\b", re.IGNORECASE
)
_NO_NUMBER = re.compile(r"(?<![\w-])(?:nan|inf)\b(?! iter)", re.IGNORECASE)  # but for Megatron's count of them
_SAID_AHEAD = frozenset({"cloud.session-ends"})
_SPOILS = frozenset({"loss-spike", "storage-error", "network-error"})  # slow to end a job
_MAY_PASS = frozenset({"num.cfl-exceeded"})  # the figures are numbers still
_STEPS_SINCE = 5
_AT_START = frozenset({"import-error", "version-mismatch", "syntax-error", "argument-error"})
_SHUTS_DOWN = re.compile(r"meta_path is None|shutting down")
_UNLABELLED = 3  # signs of work that do not say whose they are
_BESIDE = 3  # lines around a logged traceback in which the program says what it does instead


def handled(facts: Facts, finding: Finding) -> bool:
    """Did work go on, or end well, after this line?"""
    line = finding.line
    if finding.signature.id in LASTING or finding.signature.id in _SAID_AHEAD:
        return False  # work went on, on what was lost, or until what was said came true
    if line.file in facts.system_files:
        return _job_outlived(facts, finding)
    if facts.suites.get(line.file, 0) > line.number:
        return True  # a test suite prints the failures that it expects
    if finding.signature.failure_type == "loss-spike" and finding.signature.id not in _MAY_PASS:
        return _finite_again(facts, line)
    end = facts.ends.get(line.file)
    if (
        end is not None
        and end.line.number > line.number
        and finding.signature.outcome
        != "interrupted"  # an interrupt is one even if the program then ends in good order
        and end.signature.component != "slurm"
        and _clears(facts, end, finding)
    ):
        return True
    if finding.signature.failure_type in _TEARDOWN and _after_clean_end(facts, line):
        return True
    if finding.signature.failure_type == "preempted" and _ran_again(facts, line):
        return True
    if _spoke_again(facts, line) and _said_to_go_on(facts, finding):
        return True
    later = [s for s in facts.steps.get(line.file, ()) if s.line.number > line.number]
    return bool(later) and _well_after(line, later)


def _ran_again(facts: Facts, line: LogLine) -> bool:
    """Was the job begun again after this line, in the same file, and did several steps follow?"""
    kept = next(f.lines for f in facts.log.files if f.name == line.file)
    again = next((x for x in kept[_at(kept, line.number + 1) :] if _RUNS_AGAIN.search(x.text)), None)
    return again is not None and sum(1 for _ in _signs_after(facts, again)) >= _STEPS_SINCE


def _finite_again(facts: Facts, line: LogLine) -> bool:
    """A run that ends in good order on a loss that is no number has failed all the same."""
    later = [s for s in facts.steps.get(line.file, ()) if s.line.number > line.number]
    finite = [s for s in later if not _NO_NUMBER.search(s.line.text)]
    return bool(finite) and (finite[-1] is later[-1] or _well_after(line, finite)) and _well_after(line, later)


def job_ended_well(facts: Facts) -> bool:
    """Every file of the job itself closes with a marker of a good end."""
    mine = [f.name for f in facts.log.files if f.name not in facts.system_files and f.kind == "job" and f.lines]
    return bool(mine) and all(name in facts.ends for name in mine)


def _clears(facts: Facts, end: Finding, finding: Finding) -> bool:
    """Does a marker of a good end speak for what this finding says? An echo does not undo a crash."""
    if end.signature.weight < 10 or not _same_speaker(end.line, finding.line):
        return False  # the accounting and trackers close after failures too
    far = end.line.number - finding.line.number > FAR_LINES
    if far or (finding.signature.weight < FATAL_WEIGHT and _traceback_of(facts, finding.line) is None):
        return True
    return any(s.number < end.line.number for s in _signs_after(facts, finding.line))


def _said_to_go_on(facts: Facts, finding: Finding) -> bool:
    """Does the program say on this line, or beside the traceback that it ends, that it tries again or goes on without?"""
    if finding.signature.outcome == "interrupted":
        return False
    if _GOES_ON.search(finding.line.text):
        return True
    logged = _traceback_of(facts, finding.line)
    if logged is None:
        return False
    first, last = logged.first.start.number, logged.end.number
    kept = next(f.lines for f in facts.log.files if f.name == finding.line.file)
    beside = (
        *kept[_at(kept, first - _BESIDE) : _at(kept, first)],
        *kept[_at(kept, last + 1) : _at(kept, last + 1 + _BESIDE)],
    )
    return any(_GOES_ON.search(line.text) and _same_speaker(line, finding.line) for line in beside)


def survived_last(facts: Facts, ranked: Sequence[Candidate], pairs: Sequence[Explained]) -> list[Candidate]:
    """Causes from the likeliest down, those that the job worked on after behind the ones that it did not, where they
    brought none of these about."""
    fatal = [c for c in ranked if not _survived(facts, c) and not _began_again(c, ranked)]
    later = [
        c
        for c in ranked
        if c not in fatal and fatal and not any(e.by is c and any(e.effect is f for f in fatal) for e in pairs)
    ]
    return [*(c for c in ranked if c not in later), *later]


def _began_again(ended: Candidate, ranked: Sequence[Candidate]) -> bool:
    """Was the job ended from outside, started again in the same file, and failed in starting?"""
    if ended.signature.outcome != "interrupted":
        return False
    lines = [f.line for f in ended.findings]
    return any(
        c.failure_type in _AT_START
        and not _SHUTS_DOWN.search(c.first.line.text)
        and all(c.first.line.file == line.file and c.first.line.number > line.number for line in lines)
        for c in ranked
    )


def _survived(facts: Facts, candidate: Candidate) -> bool:
    """Did several more steps follow every one of its lines? Of what makes results wrong, steps say nothing."""
    if candidate.failure_type in _SPOILS or candidate.signature.outcome == "interrupted":
        return False
    return all(
        len({s.number for s in facts.steps.get(f.line.file, ()) if s.line.number > f.line.number}) >= _STEPS_SINCE
        for f in candidate.findings
    )


def _at(lines: Sequence[LogLine], number: int) -> int:
    return bisect_left(lines, number, key=lambda line: line.number)


def _signs_after(facts: Facts, line: LogLine) -> Iterator[LogLine]:
    signs = facts.signs.get(line.file, ())
    return iter(signs[_at(signs, line.number + 1) :])


def _spoke_again(facts: Facts, line: LogLine) -> bool:
    """Did this rank work on? Of signs that may be another rank's one is too few: it may have come before, or in its last step."""
    after = [s for s in _signs_after(facts, line) if _same_speaker(s, line)]
    return len(after) >= _UNLABELLED or any(s.rank == line.rank for s in after)


def _traceback_of(facts: Facts, line: LogLine) -> Traceback | None:
    return facts.raised.get((line.file, line.number))


def _after_clean_end(facts: Facts, line: LogLine) -> bool:
    """The program had said that it was done, and no work came after that."""
    done = facts.done.get(line.file)
    return (
        done is not None
        and done < line.number
        and not any(s.line.number > done for s in facts.steps.get(line.file, ()))
    )


def _job_outlived(facts: Facts, finding: Finding) -> bool:
    """Did the job work on, by the clock, well after what a node's log says happened?"""
    if finding.line.file in facts.node_files and job_ended_well(facts):
        return True
    at = finding.line.time
    last = [s.line.time for name, found in facts.steps.items() if name not in facts.system_files for s in found[-1:]]
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
