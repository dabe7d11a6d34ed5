"""`triage compress --follow`."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer

from triage import learned
from triage.cli import output
from triage.cli.follow_learning import job_of, teacher
from triage.cli.stopping import Stop
from triage.compress.classify import Classifier
from triage.compress.linekinds import LineKinds
from triage.config import Settings
from triage.domain import FilterRule
from triage.errors import InputError, TriageError, UsageError
from triage.following.follow import Follower
from triage.following.learner import BackgroundLearner
from triage.following.out import Printed, Written
from triage.ingest import compressed, streams
from triage.parts import Parts
from triage.report.stream import StreamText

_Counts = Mapping[str, int]
_SPARE = 64  # open files besides those that are followed
_SAMPLE = 8  # bytes


def follow(
    paths: Sequence[str],
    parts: Parts,
    chosen: str,
    out: Path | None,
    until_idle: float | None,
    quiet: bool,
    learning: Settings | None = None,
) -> None:
    """Prints or writes what the files become while they grow. learning: the settings to learn rules with, None not to.

    Errors: TriageError; typer.Exit after a signal.
    """
    _check(paths, out)
    _raise_file_limit(len(paths))

    def tell(text: str) -> None:
        output.note(text, quiet)

    def classify(rules: Sequence[FilterRule]) -> Classifier:
        return Classifier(rules, matcher.hot_patterns(), matcher.patterns)

    matcher = parts.knowledge.matcher
    more = _learned(paths, parts, tell)
    rules = (*parts.filters, *more)
    learner = None
    if learning is not None:
        learner = BackgroundLearner(teacher(paths, learning, parts.filters, tell), classify, rules, tell)
    several = len(set(paths)) > 1
    kinds = LineKinds(classify(rules))
    stop = Stop()
    if out is None:
        follower = Follower(kinds, Printed(StreamText(chosen, several), output.write), tell, stop, learner)
        follower.open(paths)
    else:
        written = Written(out, chosen, paths, output.write)
        follower = Follower(kinds, written, tell, stop, learner)
        try:
            follower.open(paths, written.state)
        except (KeyError, TypeError, ValueError) as error:
            raise written.damaged(error) from None
    before = follower.stream.account().dropped
    follower.run(until_idle)
    _settle(parts, (*more, *follower.learned), before, follower.stream.account().dropped, tell)
    if stop.signal:
        raise typer.Exit(128 + stop.signal)


def _check(paths: Sequence[str], out: Path | None) -> None:
    for given in paths:
        if out is not None and _is_written(Path(given), out):
            raise UsageError(f"{given} is to be followed and to be written", "give another --out, or leave it out")
        if given in ("-", "/dev/stdin"):
            raise UsageError(
                "--follow reads files, not stdin", "for a pipe: job 2>&1 | tee job.log, and follow job.log"
            )
        path = Path(given)
        if path.exists() and not path.is_file() and not path.is_dir():
            raise UsageError(f"{given} is a pipe or a device", "for a pipe: job 2>&1 | tee job.log, and follow job.log")
        if path.is_dir():
            raise UsageError(f"{given} is a folder", f"name the files to follow: {given.rstrip('/')}/*.out")
        try:
            with path.open("rb") as stream:
                head = stream.read(_SAMPLE) if path.is_file() else b""
        except OSError:
            continue  # it may come to be readable
        if kind := compressed.codec(head):
            raise InputError(f"{given}: compressed with {kind}, so it does not grow", "read it without --follow")
        if streams.is_utf16(head):
            raise InputError(f"{given}: UTF-16 is not followed", "read it without --follow")


def _is_written(path: Path, out: Path) -> bool:
    """Is it the file that is written, by whatever name, or the state beside it?"""
    ours = [out.with_name(out.name + end) for end in ("", ".state", ".state.new")]
    if path.resolve() in [other.resolve() for other in ours]:
        return True
    return path.exists() and any(other.exists() and path.samefile(other) for other in ours)


def _raise_file_limit(files: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files + _SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise UsageError(f"{files} files, and at most {hard} may be open", "follow fewer, or raise ulimit -n")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _learned(paths: Sequence[str], parts: Parts, tell: Callable[[str], None]) -> tuple[FilterRule, ...]:
    """The learned rules for the kind of job."""
    if parts.rules is None:
        return ()
    rules, notes = learned.in_force(parts.rules, job_of(paths))
    for note in notes:
        tell(note)
    return learned.applied(rules)


def _settle(
    parts: Parts,
    more: Sequence[FilterRule],
    before: _Counts,
    after: _Counts,
    tell: Callable[[str], None],
) -> None:
    """Counts what the learned rules took."""
    hits = {rule.id: n for rule in more if (n := after.get(rule.id, 0) - before.get(rule.id, 0))}
    if parts.rules is not None and parts.rules.writes and hits:
        try:
            parts.rules.settle(hits, {})
        except (TriageError, OSError) as error:
            tell(f"what learned filter rules took was not counted: {error}")
