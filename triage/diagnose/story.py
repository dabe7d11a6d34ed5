"""What a diagnosis tells beyond its cause: the timeline, what was lost, who fell and who waited. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from triage.diagnose import joining, lastwords
from triage.diagnose.candidates import SKEW
from triage.diagnose.facts import Facts
from triage.domain import Diagnosis, Evidence, LogLine, Timeline
from triage.evidence.clocks import Aligned
from triage.evidence.cost import cost, span
from triage.evidence.fallen import first_fallen
from triage.evidence.hang import dumps
from triage.evidence.timeline import BEFORE_HANG, moments
from triage.text import excerpt, rank_ranges

_WAITED = frozenset({"nccl-timeout", "nccl-remote-error", "connection-error", "hang"})
_COLLECTIVES = (
    "NCCL",
    "c10d",
    "ProcessGroup",
    "atchdog",
    "collective",
    "TCPStore",
    "gloo",
    "torch.distributed",
    "heartbeat",
)
_KILLED = frozenset({"te.child-killed", "ec.shell-killed", "ec.deepspeed-killed", "mpi.rank-killed"})
_BACK = 2000  # lines before the first report of a wait in which an error of another kind may stand
_MINUTES = timedelta(minutes=30)


def complete(result: Diagnosis, facts: Facts, aligned: Aligned) -> Diagnosis:
    """The diagnosis with its timeline, figures of cost, and sentences on the hang and the kill."""
    if result.outcome == "healthy":
        return replace(result, timeline=Timeline((), aligned.notes))
    result = _first_other_error(result, facts)
    result, joins = joining.apply(lastwords.with_last_words(result, facts), facts, aligned.guessed)
    failed = _line(facts, result.evidence[0]) if result.evidence and result.outcome != "hung" else None
    waited = max((timedelta(milliseconds=w.ran) for w in facts.collectives.waits if w.ran), default=None)
    done = result.outcome == "interrupted" and result.action == "none"
    reached = replace(result.progress, lost_time=None)
    if not done:
        reached = cost(facts.log.files, facts.steps, result.progress, failed, result.outcome == "hung", waited)
    told = " ".join([result.root_cause, *_waits(facts), *_kills(result, facts)])
    result = replace(result, progress=reached, root_cause=told, chain=_chain(result))
    if result.hypotheses:
        first = replace(result.hypotheses[0], root_cause=told)
        result = replace(result, hypotheses=(first, *result.hypotheses[1:]))
    seen = moments(
        facts.log.files, result.evidence, _marked(result, facts), facts.collectives.began, dict(aligned.offsets or {})
    )
    result = replace(result, timeline=Timeline(seen, aligned.notes, joins))
    return replace(result, missing=(*result.missing, *lastwords.told_nothing(result, facts)))


def _chain(result: Diagnosis) -> tuple[str, ...]:
    """Cause first, then its consequences: in order of time where every one has a time. What was long before is none."""
    roots = [e for e in result.evidence if e.role == "root"]
    began = min((e.time for e in roots if e.time), default=None)
    rest = [e for e in result.evidence if e.role == "cascade" and not (began and e.time and e.time < began - SKEW)]
    times = {e.id: e.time for e in rest if e.time}
    if len(times) == len(rest):
        rest = sorted(rest, key=lambda e: times[e.id])
    return tuple(e.id for e in (*roots, *rest))


def _marked(result: Diagnosis, facts: Facts) -> Iterator[tuple[LogLine, str]]:
    """The last step and the last checkpoint."""
    places = {
        result.progress.last_step_line: "the last step",
        result.progress.last_checkpoint_line: "the last checkpoint",
    }
    for file in facts.log.files:
        for line in file.lines:
            if what := places.get((line.file, line.number)):
                yield line, what


def _line(facts: Facts, cited: Evidence) -> LogLine | None:
    return next((x for f in facts.log.files if f.name == cited.file for x in f.lines if x.number == cited.line), None)


def _waits(facts: Facts) -> Iterator[str]:
    """Who asked for dumps and who only followed; who had nothing to wait for."""
    if not facts.collectives.waits:
        return
    yield from _first_group(facts)
    found = dumps(x for f in facts.log.files for x in f.lines if "dump" in x.text or "enqueued" in x.text)
    if found.initiators and found.followers:
        yield (
            f"The watchdog of rank {rank_ranges(found.initiators)} fired and asked for dumps; "
            f"rank {rank_ranges(found.followers)} only followed."
        )
    if found.idle:
        yield (
            f"Rank {rank_ranges(found.idle)} had completed all that it enqueued while others waited: it never joined the "
            "collective."
        )


def _first_group(facts: Facts) -> Iterator[str]:
    """Of several process groups the one that waited first: a stall of tensor or pipeline groups comes out in the others later."""
    began: dict[str, datetime] = {}
    for wait in facts.collectives.waits:
        if wait.group and wait.began:
            began[wait.group] = min(wait.began, began.get(wait.group, wait.began))
    order = sorted(began, key=lambda group: began[group])
    if len(order) > 1 and began[order[1]] - began[order[0]] > SKEW:
        ahead = span(began[order[1]] - began[order[0]])
        yield f"Process group {order[0]} waited first, {ahead} before the next one: look at its ranks."


def _kills(result: Diagnosis, facts: Facts) -> Iterator[str]:
    """Which process fell first by the launcher's account; a SIGKILL that nothing explains."""
    first = first_fallen(facts.fallen)
    after = sorted({r for f in facts.fallen if f.ended and f is not first for r in f.ranks})
    name = "task" if first and first.tasks else "rank"
    certain = result.status == "established" or (result.outcome == "hung" and result.suspects.pids)
    if first and after and not set(after) & set(first.ranks) and not certain:
        yield (
            f"By the launcher's account {name} {rank_ranges(first.ranks)} fell first ({_ended_with(first.status)}, "
            f"{first.line.file}:{first.line.number}); {rank_ranges(after)} {'was' if len(after) == 1 else 'were'} ended after it."
        )
    if result.evidence and result.evidence[0].signature in _KILLED and result.failure_type == "unknown":
        kernel = any(f.kind == "kernel" for f in facts.log.files)
        account = any(f.kind in ("sacct", "slurm") for f in facts.log.files)
        unseen = [
            what for there, what in ((kernel, "the kernel log"), (account, "the scheduler's account")) if not there
        ]
        also = (
            f"; {' and '.join(unseen)} of that time {'is' if len(unseen) == 1 else 'are'} not among the files"
            if unseen
            else ""
        )
        yield f"Nothing here says who sent SIGKILL: no out-of-memory line, no cancellation, no lost node{also}."


def _ended_with(status: str) -> str:
    return f"exit code {status}" if status.lstrip("-").isdigit() else status


def _first_other_error(result: Diagnosis, facts: Facts) -> Diagnosis:
    """Where ranks only waited: the first error before that which is not of the collectives themselves, as context."""
    waits = [w.line for w in facts.collectives.waits]
    if result.failure_type not in _WAITED or result.status == "established" or not waits:
        return result
    cited = {(e.file, e.line) for e in result.evidence}
    found = [
        x for f in facts.log.files if f.kind == "job" for x in f.lines if _is_other(x) and _in_window(x, waits, facts)
    ]
    dated = [x for x in found if x.time]
    first = min(dated, key=lambda x: x.time or 0, default=None) if dated else next(iter(found), None)
    if first is None or (first.file, first.number) in cited:
        return result
    more = Evidence(
        id=f"E{len(result.evidence) + 1}", file=first.file, line=first.number, text=excerpt(first.text), role="context",
        failure_type="unknown", title="the first error before the wait ended that is not of the collectives", rank=first.rank,
        node=first.node, time=first.time,
    )  # fmt: skip
    return replace(result, evidence=(*result.evidence, more))


def _is_other(line: LogLine) -> bool:
    return (
        line.level in ("error", "fatal")
        and line.rule is None
        and line.program not in ("nccl", "torch", "slurm")
        and not any(word in line.text for word in _COLLECTIVES)
    )


def _in_window(line: LogLine, waits: Sequence[LogLine], facts: Facts) -> bool:
    """From a minute before the wait began to its first report."""
    began, reports = facts.collectives.began, [w.time for w in waits if w.time]
    if line.time and reports:
        return (began or min(reports) - _MINUTES) - BEFORE_HANG <= line.time <= min(reports)
    same = [w.number for w in waits if w.file == line.file]
    return bool(same) and min(same) - _BACK <= line.number < min(same)
