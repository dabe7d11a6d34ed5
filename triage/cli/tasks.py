"""Several diagnoses of one command, as of the failed tasks of an array: the most common failure in full, the others beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triage import pipeline, report
from triage.cli import slurm_job, wiring
from triage.cli.case import Case
from triage.config import Settings
from triage.domain import Diagnosis, Folded, JobLog
from triage.parts import Explain, Parts, Tell

if TYPE_CHECKING:
    from triage.evidence.profile import GoodRun

_SHOWN = 20  # tasks of one failure
_LINES = 3  # of its cause


@dataclass(frozen=True, slots=True)
class Task:
    """One diagnosis and its JSON object."""

    job: str
    state: str
    result: Diagnosis
    document: dict[str, Any]


def cases(
    job: str | None, paths: Sequence[str], home: Path | None, tell: Tell = lambda _text: None
) -> AbstractContextManager[list[Case]]:
    """What is to be diagnosed: the files, or what the job's id names. Errors: as those of slurm_job.cases."""
    return nullcontext([Case(None, tuple(paths))]) if job is None else slurm_job.cases(job, paths, home, tell=tell)


def diagnose(
    found: Sequence[Case], parts: Parts, chosen: Settings, good: GoodRun | None, *, new: bool, live: bool
) -> list[list[Task]]:
    """Those that failed alike together, the most common failure first. live: a job that still runs is recorded too."""
    parts = replace(parts, explain=_once_a_failure(parts.explain)) if len(found) > 1 else parts
    done = []
    for at, case in enumerate(found, 1):
        own = wiring.for_job(parts, chosen, case, new)
        own = replace(own, tell=_of_many(parts.tell, at, len(found))) if len(found) > 1 else own
        own = own if live or not case.live else replace(own, record=None, keep=None)
        result, made = pipeline.diagnose(case.paths, own, good)
        done.append(Task(result.job, case.state, result, made))
    return _in_order(done)


def _of_many(tell: Tell, at: int, count: int) -> Tell:
    return lambda text: tell(f"task {at} of {count}: {text}")


def _in_order(tasks: Sequence[Task]) -> list[list[Task]]:
    """Those that failed alike together, the most common failure first."""
    alike: dict[str, list[Task]] = {}
    for task in tasks:
        alike.setdefault(task.result.fingerprint or task.result.failure_type, []).append(task)
    return sorted(alike.values(), key=lambda group: -len(group))


def _once_a_failure(explain: Explain | None) -> Explain | None:
    """A model is asked for the first task of each failure alone."""
    if explain is None:
        return None
    seen: set[str] = set()

    def explained(log: JobLog, folded: Folded, rules: Diagnosis) -> Diagnosis:
        if rules.fingerprint and rules.fingerprint in seen:
            return rules
        seen.add(rules.fingerprint)
        return explain(log, folded, rules)

    return explained


def document(groups: Sequence[Sequence[Task]]) -> dict[str, Any]:
    """The object of the first task of the most common failure; with `tasks[]`, where there are others."""
    first = groups[0][0].document
    if sum(map(len, groups)) == 1:
        return first
    return first | {"tasks": [_of_task(task) for group in groups for task in group]}


def _of_task(task: Task) -> dict[str, Any]:
    names = ("outcome", "failure_type", "root_cause_class", "status", "root_cause", "action", "incident")
    return {"job": task.job, "state": task.state, **{name: task.document[name] for name in names}}


def as_text(groups: Sequence[Sequence[Task]], width: int, markdown: bool = False) -> str:
    """The tasks that failed like the first one, and the other failures; "" for one task."""
    if sum(map(len, groups)) == 1:
        return ""
    lines = ["", "## Tasks" if markdown else "Tasks"]
    for group in groups:
        r = group[0].document
        named = ", ".join(task.job for task in group[:_SHOWN])
        more = f" and {len(group) - _SHOWN} more" if len(group) > _SHOWN else ""
        incident = f", incident {r['incident']}" if r["incident"] is not None else ""
        lines.append(
            f"{'- ' if markdown else '  '}{r['outcome']} {r['failure_type']} ({r['status']}{incident}): {named}{more}"
        )
        if group is not groups[0]:
            words = report.visible(r["root_cause"])
            lines += textwrap.wrap(words, width, initial_indent=" " * 4, subsequent_indent=" " * 4)[:_LINES]
    return "\n".join(lines) + "\n"
