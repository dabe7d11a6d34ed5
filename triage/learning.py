"""Learning filter rules from a job's logs: read them, let the log agent propose, keep what it found.

The lines that this very log's diagnosis cites are protected besides those of the banks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from triage import learned, pipeline
from triage.agents import log_agent
from triage.agents.log_agent import Lesson, Options
from triage.compress.verify import Verifier
from triage.diagnose.judge import judge
from triage.domain import JobPrint, LearnedRule
from triage.llm.values import ChatModel
from triage.parts import Parts


@dataclass(frozen=True, slots=True)
class School:
    """What learning needs besides the pipeline. Effects come in as functions.

    verifier: makes one that protects these lines too; known: the rules of this kind of job, in any state; keep: stores
    rules of it and gives them as stored, None to keep nothing.
    """

    verifier: Callable[[Sequence[str]], Verifier]
    known: Callable[[JobPrint], Sequence[LearnedRule]]
    keep: Callable[[JobPrint, Sequence[LearnedRule]], Sequence[LearnedRule]] | None = None
    model: ChatModel | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Learnt:
    """job: the kind that the rules belong to; None when the log does not say what it is, and nothing can be kept."""

    lesson: Lesson
    job: JobPrint | None
    rules: tuple[LearnedRule, ...]  # as stored, or as found when nothing is kept
    notes: tuple[str, ...] = ()


def learn(paths: Sequence[str], parts: Parts, school: School) -> Learnt:
    """Errors: InputError if nothing is readable; those of `known` and `keep`. A model that fails is a note."""
    log = pipeline.read(paths, parts)
    job = log.kind if log.kind is not None and log.kind.features else None
    if job is None:
        return Learnt(
            Lesson(), None, (), (*log.notes, "the log does not tell what kind of job it is: nothing was learned")
        )
    parts.tell("looking at what the rules in force leave over")
    result = judge(learned.unmarked(log), parts.knowledge)
    cited = [e.text for e in result.evidence] if result.outcome != "healthy" else []
    lesson = log_agent.learn(
        tuple(learned.left_over(log.files)),
        school.verifier(cited),
        (*parts.filters, *learned.applied(log.learned)),
        school.known(job),
        school.model,
        school.options,
        parts.tell,
    )
    rules = tuple(replace(rule, job=job.key) for rule in lesson.rules)
    if school.keep is not None and rules:
        rules = tuple(school.keep(job, rules))
    return Learnt(lesson, job, rules, (*log.notes, *lesson.notes))
