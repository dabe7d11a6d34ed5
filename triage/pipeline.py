"""The stages in order. Effects come in as functions from the composition root (triage/cli/wiring.py)."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triage import report
from triage.compress import dropped, engine, view
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, FilterRule, Folded, JobLog, LogFile, Similar
from triage.errors import InputError, TriageError
from triage.evidence.match import Matcher
from triage.ingest import assemble, boundaries, kinds, sources, streams

KEPT_BYTES = 48 << 20  # of all files together
MIN_BUDGET = 256 << 10
MANY_FILES = 64

Tell = Callable[[str], None]
Recall = Callable[[Diagnosis], tuple[tuple[Similar, ...], tuple[str, ...]]]  # similar incidents, what was not asked
Record = Callable[[Diagnosis, dict[str, Any]], int]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pipeline is made of. recall and record may fail: a diagnosis is published all the same.

    folded: is given the compressed log, by which an evaluation measures what compression keeps.
    """

    knowledge: Knowledge
    filters: tuple[FilterRule, ...]
    recall: Recall | None = None
    record: Record | None = None
    tell: Tell = field(default=lambda _text: None)
    token_budget: int = 12000
    notes: tuple[str, ...] = ()  # what was not asked, for `missing`
    folded: Callable[[Folded], None] = field(default=lambda _folded: None)


def read(paths: Sequence[str], parts: Parts) -> JobLog:
    """One job's files, scanned and assembled; the last run of each. Errors: InputError if nothing is readable."""
    inputs, missing = _inputs(paths)
    scanner = _scanner(parts, len(inputs))
    files: list[LogFile] = []
    for i, item in enumerate(inputs, 1):
        parts.tell(f"reading {item.name} ({i}/{len(inputs)})")
        problems: list[str] = []
        kind, chunks = kinds.detect(item, streams.chunks(item, problems))
        scanned = scanner.scan(item.name, chunks)
        files.append(assemble.assemble(scanned, kind, problems, item.modified))
    return JobLog(tuple(files), missing)


def _inputs(paths: Sequence[str]) -> tuple[tuple[streams.Input, ...], tuple[str, ...]]:
    inputs, missing = sources.discover(paths)
    if not inputs:
        raise InputError("; ".join(missing) or "nothing to read", "give log files, folders, or - for stdin")
    return inputs, missing


def _scanner(parts: Parts, files: int) -> engine.Scanner:
    return _compiled(parts.filters, parts.knowledge.matcher).another(_limits(files))


@functools.lru_cache(1)
def _compiled(filters: tuple[FilterRule, ...], matcher: Matcher) -> engine.Scanner:
    """Half a second of work: a process that diagnoses many jobs does it once."""
    return engine.Scanner(filters, matcher.hot_patterns(), boundaries.Boundaries, signatures=matcher.patterns)


def taken_by(rule: str, paths: Sequence[str], parts: Parts, context: int = 0) -> Iterator[tuple[str, dropped.Shown]]:
    """The lines that a filter rule takes, with their file, as they are read. Errors: NotFoundError, InputError."""
    inputs, _ = _inputs(paths)
    scanner = _scanner(parts, len(inputs))
    for item in inputs:
        for shown in dropped.dropped(scanner, rule, streams.chunks(item, []), context):
            yield item.name, shown


def _limits(files: int) -> engine.ScanLimits:
    """What is kept of each file: of many files each gives less, so that all together stay within bounds."""
    budget = max(MIN_BUDGET, KEPT_BYTES // files)
    if files <= MANY_FILES:
        return engine.ScanLimits(budget=budget)
    return engine.ScanLimits(budget=budget, head_lines=20, tail_lines=80, plain=(4, 4))


def diagnose(paths: Sequence[str], parts: Parts) -> tuple[Diagnosis, dict[str, Any]]:
    """The whole way from files to a recorded diagnosis and its JSON object."""
    clock = _Clock()
    log = read(paths, parts)
    clock.lap("read")
    parts.tell("looking for the cause")
    result = judge(log, parts.knowledge)
    result = replace(result, missing=(*result.missing, *parts.notes))
    clock.lap("judge")
    folded = fold(log, result, parts.token_budget)
    parts.folded(folded)
    result = replace(result, compression=folded.account)
    clock.lap("compress")
    result = _recall(result, parts)
    clock.lap("recall")
    result = replace(result, timing=clock.laps)
    return _record(result, parts)


def compress(paths: Sequence[str], parts: Parts) -> Folded:
    """The compressed log alone; the lines that a diagnosis would cite are always in it."""
    log = read(paths, parts)
    return fold(log, judge(log, parts.knowledge), parts.token_budget)


def fold(log: JobLog, result: Diagnosis, budget: int) -> Folded:
    """The compressed log; cited lines are always in it."""
    return view.fold(log, budget, {(e.file, e.line) for e in result.evidence})


def _recall(result: Diagnosis, parts: Parts) -> Diagnosis:
    if parts.recall is None or result.outcome == "healthy":
        return result
    parts.tell("looking for similar incidents")
    try:
        similar, notes = parts.recall(result)
        return replace(result, similar=similar, missing=(*result.missing, *notes))
    except (TriageError, OSError) as error:
        return replace(result, missing=(*result.missing, f"similar incidents were not searched: {error}"))


def _record(result: Diagnosis, parts: Parts) -> tuple[Diagnosis, dict[str, Any]]:
    if parts.record is not None:
        try:
            number = parts.record(result, report.to_json(result))
            result = replace(result, incident=number)
        except (TriageError, OSError) as error:
            result = replace(result, missing=(*result.missing, f"the incident was not recorded: {error}"))
    return result, report.to_json(result)


class _Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.laps[stage] = now - self._last
        self._last = now
