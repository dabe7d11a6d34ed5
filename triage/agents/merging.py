"""Rules and model together: one answer, both as hypotheses where they disagree. Pure.

What the rules name is never replaced by what one answer of a model says, and lines that it cites beside theirs are
context: where the rules know a cause, a model cannot make the failure type or the evidence worse. It leads only by a
line that tells of trouble and that no rule knows, where the rules name no cause, were it the one on which they say that
the log ends; over a mere symptom of low status only when several answers agree on one place. What the rules know and leave open, such as a kill by nobody knows whom, stays
open. Elsewhere its word beside theirs makes the status fall, for two readings of the same log are no certainty; by one
step, whatever a second pass says besides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from triage import heads
from triage.agents.agreement import Vote, roots
from triage.agents.answer import NO_CAUSE, Answer, Cited
from triage.agents.critic import NONE, Criticism
from triage.agents.grounding import Lines
from triage.compress import guard, telling
from triage.compress.tracebacks import HEADER
from triage.domain import Diagnosis, Evidence, Hypothesis, LogLine, Remedy, Role, Status, Suspects
from triage.taxonomy import Taxonomy
from triage.text import excerpt

_FALLS: dict[Status, Status] = {"established": "supported", "supported": "hypothesis", "hypothesis": "hypothesis"}
_ORDER: tuple[Status, ...] = ("unknown", "hypothesis", "supported", "established")
_UNNAMED = "end.unnamed-error"  # the signature by which the rules cite an error just because none of theirs knows it


@dataclass(frozen=True, slots=True)
class Measure:
    """What an answer is measured by. lines: those that may be cited; knows: whether a rule knows a line."""

    lines: Lines
    labels: Taxonomy
    knows: Callable[[LogLine], bool]


def may_lead(rules: Diagnosis, vote: Vote, by: Measure) -> bool:
    """Whether the model's answer may stand before the rules'."""
    answer = vote.leader
    if not answer.names_a_cause or answer.outcome == "healthy" or rules.outcome == "healthy" or not vote.majority:
        return False
    if not any(_is_news(by.lines[place], rules, by.knows) for place in roots(answer)):
        return False
    if rules.failure_type == "unknown":
        return True
    symptom = by.labels.types[rules.failure_type].symptom and rules.status in ("hypothesis", "unknown")
    return symptom and not by.labels.types[answer.failure_type].symptom and vote.unanimous


def _is_news(line: LogLine, rules: Diagnosis, knows: Callable[[LogLine], bool]) -> bool:
    """Does it tell of trouble that no rule knows, before all in its file that the rules cite? What follows is no cause.

    A line that they cite only because they do not know it is news too.
    """
    cited = [e.line for e in rules.evidence if e.file == line.file]
    early = line.number < min(cited, default=line.number + 1)
    unnamed = any(e.signature == _UNNAMED and (e.file, e.line) == (line.file, line.number) for e in rules.evidence)
    return _tells(line) and (early or unnamed) and not knows(line)


def _tells(line: LogLine) -> bool:
    """Does it tell of trouble itself, by its level or else its words? Routine, frames and mere warnings do not."""
    if line.rule is not None or line.level in ("debug", "info", "warning") or _of_stack(line.text):
        return False
    return line.level in ("error", "fatal") or guard.alarm(line.text) == "error" or telling.telling(line.text)


def _of_stack(text: str) -> bool:
    return telling.is_frame(text) or telling.is_source(heads.split(text)[1]) or HEADER in text


def merge(rules: Diagnosis, vote: Vote, by: Measure, model: str, criticism: Criticism = NONE) -> Diagnosis:
    """vote: of grounded answers, so each line that they cite may be cited; so may each of the criticism."""
    answer = vote.leader
    could_lead = answer.failure_type != rules.failure_type and may_lead(rules, vote, by)
    leads = could_lead and not criticism.refuted
    book = _Book(by.lines, list(rules.evidence))
    cited = book.cite(answer, leads=leads)
    theirs = [_hypothesis(answer, cited), *(_hypothesis(a, book.cite(a)) for a in vote.others)]
    against = book.cite_against(criticism, answer.failure_type)
    if leads:
        found = _led(rules, answer, cited, theirs, by.labels, model)
    elif answer.failure_type == rules.failure_type:
        found = _agreed(rules, vote, cited, theirs[1:], model)
    else:
        found = _beside(rules, theirs, model)
    place = 0 if leads or answer.failure_type == rules.failure_type else 1  # of the model's answer: it was criticised
    found = replace(found, evidence=tuple(book.evidence))
    return _criticised(found, against, place, criticism.check, _FALLS.get(rules.status, rules.status))


def _beside(rules: Diagnosis, theirs: Sequence[Hypothesis], model: str) -> Diagnosis:
    """The rules' answer first, what else was read behind it, and a lower status if that names another cause."""
    other = any(h.failure_type not in NO_CAUSE for h in theirs)  # no cause at all is no evidence against one
    status = _FALLS.get(rules.status, rules.status) if other else rules.status
    first, *others = rules.hypotheses or (_of_rules(rules),)
    notes = tuple(f"{model} reads it as {h.failure_type}: {h.root_cause}" for h in theirs)
    return replace(
        rules,
        status=status,
        hypotheses=(replace(first, status=status), *theirs, *others),
        missing=(*rules.missing, *notes),
    )


def _agreed(rules: Diagnosis, vote: Vote, cited: Sequence[str], others: Sequence[Hypothesis], model: str) -> Diagnosis:
    """The model's words behind the rules' own; one answer more on one log is no new evidence, several that agree are a little."""
    answer = vote.leader
    result = _beside(rules, others, model) if others else rules
    if not answer.names_a_cause:
        return result
    theirs = {(e.file, e.line) for e in rules.evidence if e.role == "root"}
    if vote.unanimous and rules.status == "hypothesis" and theirs & roots(answer):
        result = replace(result, status="supported")
    first, *rest = result.hypotheses or (_of_rules(result),)
    words = f"{rules.root_cause} {model} reads it so: {answer.root_cause}"
    blamed = () if _any(rules.suspects) else answer.nodes
    told = f"{model} suspects {', '.join(blamed)}; the rules blame no node"
    supporting = tuple(dict.fromkeys((*first.supporting, *cited)))
    return replace(
        result,
        root_cause=words,
        root_cause_class=answer.root_cause_class if rules.root_cause_class == "unknown" else rules.root_cause_class,
        suspects=rules.suspects if _any(rules.suspects) else Suspects(answer.nodes, answer.ranks),
        missing=(*result.missing, *((told,) if blamed else ())),
        hypotheses=(replace(first, status=result.status, root_cause=words, supporting=supporting), *rest),
        remediation=(*rules.remediation, *_steps(answer, cited)),
        produced_by=f"llm:{model}",
    )


def _led(
    rules: Diagnosis,
    answer: Answer,
    cited: Sequence[str],
    theirs: Sequence[Hypothesis],
    labels: Taxonomy,
    model: str,
) -> Diagnosis:
    return replace(
        rules,
        outcome=answer.outcome if rules.outcome == "unknown" else rules.outcome,
        failure_type=answer.failure_type,
        category=labels.category(answer.failure_type),
        root_cause_class=answer.root_cause_class,
        status="hypothesis",
        root_cause=answer.root_cause,
        action=answer.action,
        suspects=Suspects(answer.nodes, answer.ranks) if answer.nodes or answer.ranks else rules.suspects,
        chain=tuple(dict.fromkeys((*cited, *rules.chain))),
        hypotheses=(theirs[0], *(rules.hypotheses or (_of_rules(rules),)), *theirs[1:]),
        remediation=(*_steps(answer, cited), *rules.remediation),
        produced_by=f"llm:{model}",
    )


def _criticised(found: Diagnosis, against: Sequence[str], at: int, check: str, least: Status) -> Diagnosis:
    """The hypothesis at this place with what speaks against it; the status falls where it is the first, not below `least`."""
    if not against or len(found.hypotheses) <= at:
        return found
    fallen = max(_FALLS.get(found.status, found.status), least, key=_ORDER.index)
    status = fallen if at == 0 else found.status
    ranked = list(found.hypotheses)
    mine = ranked[at]
    ranked[at] = replace(
        mine,
        status=status if at == 0 else mine.status,
        against=tuple(dict.fromkeys((*mine.against, *against))),
        check=mine.check or check,
    )
    return replace(found, status=status, hypotheses=tuple(ranked))


def _hypothesis(answer: Answer, cited: Sequence[str]) -> Hypothesis:
    status: Status = "hypothesis" if answer.failure_type != "unknown" else "unknown"
    return Hypothesis(
        answer.failure_type, answer.root_cause_class, answer.root_cause, status, tuple(cited), check=answer.against
    )


def _of_rules(rules: Diagnosis) -> Hypothesis:
    return Hypothesis(rules.failure_type, rules.root_cause_class, rules.root_cause, rules.status, rules.chain)


def _any(found: Suspects) -> bool:
    return bool(found.nodes or found.ranks or found.gpus)


def _steps(answer: Answer, cited: Sequence[str]) -> tuple[Remedy, ...]:
    """In words only, and none that destroys (grounding): a command is printed when code or a runbook made it."""
    return tuple(
        Remedy(f"{step} (as the model advises)", why, "reversible", evidence=tuple(cited)) for step, why in answer.steps
    )


@dataclass(slots=True)
class _Book:
    """The evidence, to which what a model cites is added: as context, unless it leads."""

    lines: Lines
    evidence: list[Evidence]

    def cite(self, answer: Answer, leads: bool = False) -> tuple[str, ...]:
        """The ids of what it cites as root or cascade."""
        ids = []
        for cited in answer.cited:
            role = cited.role if leads else "context"
            there = self._there(cited, role, answer.failure_type, "cited by the model")
            if role == "root" and there.signature == _UNNAMED:
                there = self._now(replace(there, role=role, failure_type=answer.failure_type))
            if cited.role != "context":
                ids.append(there.id)
        return tuple(dict.fromkeys(ids))

    def cite_against(self, criticism: Criticism, kind: str) -> tuple[str, ...]:
        """kind: the failure type that the model answered."""
        title = f"speaks against {kind}, as the model says"
        found = (self._there(o.cited, "context", kind, f"{title}: {o.why}") for o in criticism.objections)
        return tuple(dict.fromkeys(e.id for e in found))

    def _now(self, changed: Evidence) -> Evidence:
        self.evidence = [changed if e.id == changed.id else e for e in self.evidence]
        return changed

    def _there(self, cited: Cited, role: Role, kind: str, title: str) -> Evidence:
        there = next((e for e in self.evidence if (e.file, e.line) == (cited.file, cited.line)), None)
        if there is None:
            line = self.lines[(cited.file, cited.line)]
            at = line.text.casefold().find(cited.quote.casefold())
            span = (at, at + len(cited.quote)) if at >= 0 else None
            there = Evidence(
                f"E{len(self.evidence) + 1}", cited.file, cited.line, excerpt(line.text, span), role, kind,
                title=title, rank=line.rank, node=line.node, gpu=line.gpu, time=line.time, repeats=line.repeats,
            )  # fmt: skip
            self.evidence.append(there)
        return there
