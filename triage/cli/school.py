"""Learning for the command line: what the database knows of the kind of job, and the model of the settings."""

from __future__ import annotations

from collections.abc import Sequence

from triage import learning
from triage.agents.log_agent import Lesson, Options, states
from triage.cli import wiring
from triage.compress.verify import Verifier
from triage.config import Settings
from triage.domain import JobPrint, LearnedRule
from triage.errors import UsageError
from triage.learning import Learnt, School
from triage.parts import Parts, Tell


def learn(paths: Sequence[str], settings: Settings, tell: Tell, options: Options, by: str, keep: bool = True) -> Learnt:
    """Errors: UsageError for what cannot be read twice; InputError, StoreError."""
    if "-" in paths:
        raise UsageError("what comes on stdin cannot be learned from: it is read more than once", "give a file")
    with wiring.rule_store(settings) as store:

        def verifier(cited: Sequence[str]) -> Verifier:
            return wiring.verifier(store, cited)

        def known(job: JobPrint) -> Sequence[LearnedRule]:
            return store.list(job=job.key)

        def stored(job: JobPrint, rules: Sequence[LearnedRule]) -> Sequence[LearnedRule]:
            return store.add(job, rules, by)

        model = wiring.model(settings) if options.way != "mine" else None
        return learning.learn(
            paths, _parts(settings, tell), School(verifier, known, stored if keep else None, model, options)
        )


def _parts(settings: Settings, tell: Tell) -> Parts:
    rules = wiring.learned_rules(settings, writes=False)
    return wiring.parts(settings, tell, record=False, similar=False, rules=rules)


def told(learnt: Learnt, kept: bool = True) -> str:
    """What came of it, in one line. kept: False for a trial that stores nothing."""
    lesson, found = learnt.lesson, states(learnt.rules)
    if not lesson.kinds:
        return "nothing to learn: no kind of routine line is left over that was not asked about before"
    if lesson.failed:
        return f"nothing was learned of {lesson.kinds} kinds of line"
    would = "" if kept else "would be "
    parts = [f"{found[state]} {would}{word}" for state, word in _WORDS.items() if found[state]]
    if lesson.unsteady:
        parts.append(
            f"{lesson.unsteady} too rare, or in one part of the run only, to be routine for sure: a model may tell"
        )
    return f"{_by(lesson)}; of {lesson.kinds} kinds of line: " + (", ".join(parts) or "no rule came of it")


_WORDS = {
    "active": "in force",
    "shadow": "on trial (counted, not applied; in force after three runs, or by triage rules approve)",
    "candidate": "refused or not called routine (triage rules list --state candidate)",
    "retired": "refused, as what looks like a secret stands in them",
}


def _by(lesson: Lesson) -> str:
    if lesson.way == "mine":
        return "templates mined, no model asked"
    used = lesson.usage
    return f"{used.calls} calls (way: {lesson.way}), {used.tokens_in + used.tokens_out} tokens, {used.seconds:.0f} s"
