"""The same failure again: at the same step it is no accident, elsewhere it may be one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from triage.diagnose.suspects import NODE_TYPES
from triage.domain import Diagnosis, History, PastFailure, Recurrence, Remedy
from triage.jobids import base_and_task
from triage.text import how_many

TWICE = 2  # failures before the first step after which the next one is expected as well
RETRIES = 3  # restarts in a row after which a passing fault is none
_RESTARTS = frozenset({"restart", "restart-excluding", "kill-and-restart", "wait"})
_OF_DATA = frozenset({"loss-spike", "dataset-loading-error"})
_IS_RESTART = re.compile(
    r"(?:Restart|Resubmit|Drain|Cordon|Close)\b|Take .{1,200} out of (?:the host list|service in the job's own)"
)
_DATED = re.compile(r"\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d\d|\b[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:")
# What is to be changed by a person before the job runs again, however the step moves.
_STAYS = frozenset({"config-error", "software-bug", "data-error", "operator-action", "resource-exhaustion"})


def weigh(result: Diagnosis, history: History) -> Diagnosis:
    """The diagnosis in the light of earlier incidents. The same log read again is no recurrence."""
    found = _weigh(result, history)
    return replace(found, recurrence=replace(found.recurrence, seen=history.seen)) if found.recurrence.kind else found


def _weigh(result: Diagnosis, history: History) -> Diagnosis:
    others = [p for p in history.same if not same_event(p, result)]
    again = {p.incident for p in history.same} - {p.incident for p in others}
    result = _with_nodes(result, history, again)
    earlier = _before(others, result, [p.at for p in history.same if p not in others])
    if not earlier or result.category == "scheduler" or result.outcome == "healthy":
        return result
    known = {p: same_job(p, result) for p in earlier}
    mine = [p for p in earlier if known[p]]
    return _in_this_job(result, mine) if mine else _elsewhere(result, earlier, None not in known.values())


def _before(others: Sequence[PastFailure], result: Diagnosis, readings: Sequence[datetime]) -> list[PastFailure]:
    """Those that failed before this one: by the times that both logs tell, else by when this log was read first."""
    now = next((e.time for e in result.evidence[:1] if _DATED.search(e.text)), None)

    def earlier(past: PastFailure) -> bool:
        then = past.failed_at if _DATED.search(past.first_line) else None
        if now and then and (now.tzinfo is None) == (then.tzinfo is None):
            return then <= now
        return not readings or past.at < min(readings)

    return [p for p in others if earlier(p)]


def same_job(past: PastFailure, result: Diagnosis) -> bool | None:
    """By the scheduler's number, or submitted anew under its name by its user; where nothing tells, by where its log
    lies. None: not known.

    Tasks of an array are apart: they may well run something else each.
    """
    if past.job and past.job == result.job:
        return True
    (_, then), (_, now) = base_and_task(past.job), base_and_task(result.job)
    named = past.job_name and past.job_user and then == now
    if named and (past.job_name, past.job_user) == (result.job_name, result.job_user):
        return True
    if past.job and result.job:
        return False
    places = {file.path for file in result.inputs if file.path}
    return True if places and past.places == places else None


def _in_this_job(result: Diagnosis, earlier: Sequence[PastFailure]) -> Diagnosis:
    same = [p for p in earlier if _same_step(p, result)]
    if (
        same
        and result.failure_type not in NODE_TYPES
        and not any(set(p.nodes) & set(result.suspects.nodes) for p in same)
    ):
        return _deterministic(result, same)
    if _never_began([*earlier, result]) and len(earlier) >= TWICE and result.failure_type not in NODE_TYPES:
        return _deterministic(result, earlier)
    return _passing(result, earlier)


def _elsewhere(result: Diagnosis, earlier: Sequence[PastFailure], others: bool) -> Diagnosis:
    """Steps and nodes of other jobs are no measure of this one. others: it is known that they are others."""
    of = "in other jobs " if others else ""
    said = f"The same failure was seen {how_many(len(earlier), 'time')} before {of}({_named(earlier)})."
    return _told(result, Recurrence("again", said, _numbers(earlier)))


def _never_began(runs: Sequence[PastFailure | Diagnosis]) -> bool:
    """Did none of them reach a step?"""
    steps = [run.progress.last_step if isinstance(run, Diagnosis) else run.last_step for run in runs]
    return not any(steps)


def same_event(past: PastFailure, result: Diagnosis) -> bool:
    """Is it the log of that incident, read once more? Another job, or a line with another time, is another run.

    A failure of code or data comes at equal lines of equally long logs each time: size and place say nothing.
    """
    if past.same_log or (past.job and result.job and past.job != result.job):
        return bool(past.same_log)
    first = result.evidence[0] if result.evidence else None
    if first is None or first.text.split() != past.first_line.split():
        return False
    if first.time is not None and _tells_time(first.text):
        return True
    alike = not past.cited or past.cited == tuple(e.text for e in result.evidence)
    return past.same_log is None and alike and past.bytes_in == result.compression.bytes_in


def _tells_time(text: str) -> bool:
    return re.search(r"\d\d:\d\d:\d\d", text) is not None


def _same_step(past: PastFailure, result: Diagnosis) -> bool:
    step, worlds = result.progress.last_step, {past.world_size, result.progress.world_size} - {None}
    return bool(step) and past.last_step == step and len(worlds) < 2


def _deterministic(result: Diagnosis, same: Sequence[PastFailure]) -> Diagnosis:
    step, named = result.progress.last_step, _named(same)
    if step:
        at, then = (
            f"at the same step before ({named}; last step {step} each time)",
            f", or skip the data that follow step {step}",
        )
    else:
        at, then = f"before the first step {how_many(len(same), 'time')} already ({named})", ""
    said = f"The same failure came {at}: a restart as it is will meet it again."
    action = result.action
    if action in _RESTARTS:
        action = "rollback-and-skip" if result.failure_type in _OF_DATA else "fix-and-resubmit"
    steps = [r for r in result.remediation if action == result.action or not _IS_RESTART.match(r.step)]
    stop = Remedy(
        f"Do not restart as it is: fix the cause{then}",
        f"it failed there before, in {named}",
        "read-only",
        evidence=result.chain[:1],
        incidents=_ids(same),
    )
    result = replace(result, action=action, remediation=(stop, *steps))
    return _told(result, Recurrence("same-step", said, _numbers(same)))


def _passing(result: Diagnosis, earlier: Sequence[PastFailure]) -> Diagnosis:
    times = how_many(len(earlier), "time")
    named = _named(earlier)
    steps = {p.last_step for p in earlier} | {result.progress.last_step}
    places = {p.nodes for p in earlier if p.nodes} | ({result.suspects.nodes} if result.suspects.nodes else set())
    moves = len(steps - {None}) > 1 or len(places) > 1
    if not moves:
        return _told(
            result, Recurrence("again", f"The same failure was seen {times} before ({named}).", _numbers(earlier))
        )
    at = "another step" if len(steps - {None}) > 1 else "another node"
    said = f"The same failure was seen {times} before at {at} ({named})"
    if result.root_cause_class in _STAYS:
        return _told(result, Recurrence("moving", f"{said}.", _numbers(earlier)))
    said += ": it moves, so it is rather a passing fault than the code's or the data's."
    if result.action in _RESTARTS:
        bound = Remedy(
            f"Restart at most {RETRIES} times in a row; after that treat it as a fault that has to be found",
            f"it came {times} before, at {at} each time",
            "reversible",
            evidence=result.chain[:1],
            incidents=_ids(earlier),
        )
        result = replace(result, remediation=(*result.remediation, bound))
    return _told(result, Recurrence("moving", said, _numbers(earlier)))


def _with_nodes(result: Diagnosis, history: History, again: set[int]) -> Diagnosis:
    """Suspect nodes that were suspected before are named."""
    known = {node: left for node, ids in history.of_nodes.items() if (left := [i for i in ids if i not in again])}
    if not known:
        return result
    said = " ".join(f"{node} was a suspect before, in {_incidents(ids)}." for node, ids in known.items())
    often = {node: ids for node, ids in known.items() if len(ids) > 1}
    tests = tuple(
        Remedy(
            f"Take {node} out of service and test it in full before it serves a job again",
            f"it was a suspect in {_incidents(ids)} too",
            "reversible",
            incidents=tuple(map(str, dict.fromkeys(ids))),
        )
        for node, ids in often.items()
    )
    result = replace(result, remediation=(*result.remediation, *tests))
    ids = tuple(sorted({i for found in known.values() for i in found}))
    return _told(result, Recurrence("again", said, ids))


def _told(result: Diagnosis, found: Recurrence) -> Diagnosis:
    """Joins what is said to what was said of nodes; the first hypothesis tells it as well."""
    before = result.recurrence
    said = " ".join(filter(None, (before.said, found.said)))
    ids = tuple(sorted({*before.incidents, *found.incidents}))
    first = tuple(replace(h, root_cause=f"{h.root_cause} {found.said}") for h in result.hypotheses[:1])
    return replace(
        result,
        root_cause=f"{result.root_cause} {found.said}",
        hypotheses=(*first, *result.hypotheses[1:]),
        recurrence=Recurrence(found.kind, said, ids),
    )


def _named(found: Sequence[PastFailure]) -> str:
    return _incidents([p.incident for p in found])


def _incidents(ids: Sequence[int]) -> str:
    ordered = sorted(set(ids))
    names = ", ".join(map(str, ordered[:-1])) + (" and " if len(ordered) > 1 else "") + str(ordered[-1])
    return f"incident{'s' if len(ordered) > 1 else ''} {names}"


def _ids(found: Sequence[PastFailure]) -> tuple[str, ...]:
    return tuple(map(str, _numbers(found)))


def _numbers(found: Sequence[PastFailure]) -> tuple[int, ...]:
    """Several attempts may be of one incident."""
    return tuple(sorted({p.incident for p in found}))
