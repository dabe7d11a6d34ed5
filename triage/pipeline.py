"""The stages in order. Effects come in as functions from the composition root (triage/cli/wiring.py)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triage import learned, report, scanning
from triage.clock import Clock
from triage.compress import dropped, engine, view
from triage.diagnose import recurrence
from triage.diagnose.against_good import against
from triage.diagnose.judge import judge
from triage.diagnose.precedent import with_precedent
from triage.domain import Diagnosis, FilterRule, Folded, JobLog, JobPrint
from triage.errors import InputError, TriageError
from triage.evidence import jobprint
from triage.evidence.match import Matcher
from triage.evidence.profile import GoodRun, nodes_of
from triage.ingest import attempts, boundaries, identity, sources, streams, together
from triage.parts import AskedJob, Explain, Parts
from triage.text import host_list, together_told

KEPT_BYTES = 48 << 20  # of all files together
MIN_BUDGET = 256 << 10
MANY_FILES = 64
MOST_NODES = 4096  # that the record keeps of a job


def read(paths: Sequence[str], parts: Parts) -> JobLog:
    """One job's files, scanned and assembled; the last run of each. Errors: InputError if nothing is readable."""
    inputs, missing = _inputs(paths, parts.job)
    contents, kind = _contents(inputs, parts)
    rules, notes = learned.in_force(parts.rules, kind)
    scanner = _scanner(parts, learned.applied(rules), len(inputs))
    files = scanning.read(scanner, contents, parts.jobs, parts.tell)
    lasting = [item for item in inputs if parts.job is None or item not in parts.job.now]
    read_from = identity.identify(lasting) if parts.record is not None or parts.identify else ()
    last, earlier = attempts.last_job(together.together(files))
    job = parts.job or AskedJob(())
    return JobLog(last, (*missing, *earlier), kind, rules, notes, read_from, job.ids, job.nodes)


@dataclass(slots=True)
class _Content:
    """An input and its bytes, to be read once. problems: filled in reading."""

    item: streams.Input
    problems: list[str]
    pieces: Iterator[bytes]

    @classmethod
    def of(cls, item: streams.Input) -> _Content:
        problems: list[str] = []
        return cls(item, problems, streams.chunks(item, problems))

    def head(self) -> bytes:
        """Its first bytes, which `pieces` still give."""
        taken: list[bytes] = []
        size = 0
        for piece in self.pieces:
            taken.append(piece)
            size += len(piece)
            if size >= jobprint.HEAD_BYTES:
                break
        self.pieces = itertools.chain(taken, self.pieces)
        return b"".join(taken)[: jobprint.HEAD_BYTES]


def _contents(inputs: Sequence[streams.Input], parts: Parts) -> tuple[list[_Content], JobPrint | None]:
    """The inputs to be read, and what kind of job they are of; None when nothing of it is to be asked."""
    contents = list(map(_Content.of, inputs))
    if parts.rules is None and parts.good is None and parts.keep is None:
        return contents, None
    output = [content for content in contents if content.item.kind == "job"] or contents
    return contents, jobprint.job_print(content.head() for content in output[: jobprint.MAX_HEADS])


def _inputs(paths: Sequence[str], job: AskedJob | None = None) -> tuple[tuple[streams.Input, ...], tuple[str, ...]]:
    """What the scheduler says of the job is an input as its files are, and stands without them."""
    beside = (*job.inputs, *job.now) if job else ()
    try:
        inputs, missing = sources.discover(paths) if paths or not beside else ((), ())
    except InputError as error:
        if not beside:
            raise
        inputs, missing = (), (error.message,)
    inputs = (*inputs, *beside)
    if not inputs:
        raise InputError("; ".join(missing) or "nothing to read", "give log files, folders, or - for stdin")
    return inputs, missing


def _scanner(parts: Parts, more: tuple[FilterRule, ...], files: int) -> engine.Scanner:
    """more: rules besides those that triage ships, tried after them."""
    return compiled((*parts.filters, *more), parts.knowledge.matcher).another(_limits(files))


@functools.lru_cache(1)
def compiled(filters: tuple[FilterRule, ...], matcher: Matcher) -> engine.Scanner:
    """Half a second of work: a process that diagnoses many jobs does it once."""
    return engine.Scanner(filters, matcher.hot_patterns(), boundaries.Boundaries, signatures=matcher.patterns)


def taken_by(
    rule: str | FilterRule, paths: Sequence[str], parts: Parts, context: int = 0
) -> Iterator[tuple[str, dropped.Shown]]:
    """The lines that a filter rule takes, with their file, as they are read. Errors: NotFoundError, InputError.

    A learned rule that is not in force for this job, and one given as such, is tried after all others.
    """
    inputs, _ = _inputs(paths)
    contents, kind = _contents(inputs, parts)
    known = learned.applied(learned.in_force(parts.rules, kind)[0])
    if isinstance(rule, FilterRule):
        more: tuple[FilterRule, ...] = () if rule in known else (rule,)
    else:
        more = learned.rule_to_show(parts.rules, rule, (*parts.filters, *known))
    scanner = _scanner(parts, (*known, *more), len(inputs))
    rule_id = rule if isinstance(rule, str) else rule.id
    for content in contents:
        for shown in dropped.dropped(scanner, rule_id, content.pieces, context):
            yield content.item.name, shown


def _limits(files: int) -> engine.ScanLimits:
    """What is kept of each file: of many files each gives less, so that all together stay within bounds."""
    budget = max(MIN_BUDGET, KEPT_BYTES // files)
    if files <= MANY_FILES:
        return engine.ScanLimits(budget=budget)
    return engine.ScanLimits(budget=budget, head_lines=20, tail_lines=80, plain=(4, 4))


def diagnose(paths: Sequence[str], parts: Parts, good: GoodRun | None = None) -> tuple[Diagnosis, dict[str, Any]]:
    """The whole way from files to a recorded diagnosis and its JSON object. good: a run to compare with."""
    clock = Clock()
    log = read(paths, parts)
    clock.lap("read")
    parts.tell("looking for the cause")
    result = judge(learned.unmarked(log), parts.knowledge)
    hiders = learned.hiders(log, result)
    said = [hider.note(retired=_writes(parts)) for hider in hiders]
    result = replace(result, missing=(*result.missing, *parts.notes, *log.notes, *said))
    result = _about(log, result, parts)
    clock.lap("judge")
    result = _against_good(log, result, good, parts)
    clock.lap("compare")
    folded = fold(log, result, parts.token_budget)
    parts.folded(folded)
    result = replace(result, compression=folded.account)
    clock.lap("compress")
    result = _remember(result, parts)
    result = _recall(result, parts)
    clock.lap("recall")
    if parts.explain is not None:
        result = _explained(parts.explain, log, folded, result, parts.failed)
        clock.lap("model")
    result = replace(result, timing=clock.laps)
    result, document = _record(result, parts)
    problems = [
        _settle(log, {h.rule: h.reason(result.incident) for h in hiders}, parts),
        _keep_good(log, result, parts),
    ]
    missing = together_told((*result.missing, *filter(None, problems)))
    if missing != result.missing:
        result = replace(result, missing=missing)
        document = report.to_json(result)
    return result, document


def _about(log: JobLog, result: Diagnosis, parts: Parts) -> Diagnosis:
    """With what the record keeps of the log besides."""
    job = parts.job or AskedJob(())
    nodes = itertools.islice(dict.fromkeys(nodes_of(log)), MOST_NODES)
    rules = tuple(rule.rule.id for rule in log.learned if rule.state == "active")
    return replace(
        result,
        nodes=job.nodes[:MOST_NODES] or tuple(nodes),
        job_nodes=host_list(job.nodes),
        job_name=job.name or result.job_name,
        job_user=job.user or result.job_user,
        account=job.said,
        inputs=log.inputs,
        learned=rules,
    )


def compress(paths: Sequence[str], parts: Parts) -> Folded:
    """The compressed log alone; the lines that a diagnosis would cite are always in it."""
    log = read(paths, parts)
    folded = fold(log, judge(learned.unmarked(log), parts.knowledge), parts.token_budget)
    problem = _settle(log, {}, parts)
    return replace(folded, cut=(*folded.cut, *log.notes, *filter(None, [problem])))


def fold(log: JobLog, result: Diagnosis, budget: int) -> Folded:
    """The compressed log; cited lines are always in it, and of a job that did not end well the last step it made."""
    shown = {(e.file, e.line) for e in result.evidence}
    if result.progress.last_step_line and result.outcome != "healthy":
        shown.add(result.progress.last_step_line)
    return view.fold(log, budget, shown)


def _against_good(log: JobLog, result: Diagnosis, good: GoodRun | None, parts: Parts) -> Diagnosis:
    """Compared with the run given, else with the last one of this kind of job that went well."""
    if good is None and parts.good is not None and log.kind and log.kind.features and result.outcome != "healthy":
        try:
            good = parts.good(log.kind)
        except (TriageError, OSError) as error:
            note = f"no good run was looked for: {error}"
            return replace(result, missing=(*result.missing, note))
    return against(result, log, good) if good else result


def _keep_good(log: JobLog, result: Diagnosis, parts: Parts) -> str:
    """A recorded run that went well is kept to compare later ones with; what went wrong, in words."""
    sure = result.outcome == "healthy" and result.status in ("established", "supported")
    if parts.keep is None or result.incident is None or not sure or not (log.kind and log.kind.features):
        return ""
    try:
        parts.keep(result.incident, log.kind, log)
    except (TriageError, OSError) as error:
        return f"this run was not kept to compare later ones with: {error}"
    return ""


def _explained(
    explain: Explain, log: JobLog, folded: Folded, result: Diagnosis, failed: Callable[[Exception], None]
) -> Diagnosis:
    """The last net under the model: what the rules found is published, whatever becomes of it."""
    try:
        return explain(log, folded, result)
    except Exception as error:  # noqa: BLE001 - a server or a model chose what came
        failed(error)
        why = str(error) if isinstance(error, TriageError) else type(error).__name__
        return replace(result, missing=(*result.missing, f"asking the model failed ({why}); the rules' answer stands"))


def _recall(result: Diagnosis, parts: Parts) -> Diagnosis:
    if parts.recall is None or result.outcome == "healthy":
        return result
    parts.tell("looking for similar incidents")
    try:
        similar, notes = parts.recall(result)
        return with_precedent(replace(result, similar=similar, missing=(*result.missing, *notes)))
    except (TriageError, OSError) as error:
        return replace(result, missing=(*result.missing, f"similar incidents were not searched: {error}"))


def _remember(result: Diagnosis, parts: Parts) -> Diagnosis:
    if parts.remember is None or result.outcome == "healthy":
        return result
    try:
        return recurrence.weigh(result, parts.remember(result))
    except (TriageError, OSError) as error:
        return replace(result, missing=(*result.missing, f"earlier incidents were not compared: {error}"))


def _record(result: Diagnosis, parts: Parts) -> tuple[Diagnosis, dict[str, Any]]:
    if parts.record is not None:
        try:
            filed = parts.record(result, report.to_json(result))
            result = replace(result, incident=filed.incident, attempt=filed.attempt)
        except (TriageError, OSError) as error:
            result = replace(result, missing=(*result.missing, f"the incident was not recorded: {error}"))
    return result, report.to_json(result)


def _writes(parts: Parts) -> bool:
    return parts.rules is not None and parts.rules.writes


def _settle(log: JobLog, retired: Mapping[str, str], parts: Parts) -> str:
    """Writes down what the learned rules did in this run; what went wrong, in words."""
    if parts.rules is None or not parts.rules.writes or not log.learned:
        return ""
    try:
        parts.rules.settle(learned.hits(log), retired)
    except (TriageError, OSError) as error:
        still = f", and {', '.join(retired)} not retired" if retired else ""
        return f"what learned filter rules took was not counted{still}: {error}"
    return ""
