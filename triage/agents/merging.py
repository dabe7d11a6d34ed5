"""Rules and model together: one answer, both as hypotheses where they disagree. Pure.

The rules' answer is never thrown away. The model leads where the rules name no cause or only a symptom; elsewhere its
word beside theirs makes the status fall, for two readings of the same log are no certainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triage.agents.answer import Answer
from triage.agents.grounding import Lines
from triage.domain import Diagnosis, Evidence, Hypothesis, Remedy, Status, Suspects
from triage.taxonomy import Taxonomy
from triage.text import excerpt

_FALLS: dict[Status, Status] = {"established": "supported", "supported": "hypothesis", "hypothesis": "hypothesis"}


def merge(rules: Diagnosis, answer: Answer, lines: Lines, labels: Taxonomy, model: str) -> Diagnosis:
    """answer: grounded, so each line that it cites is one of these."""
    evidence, cited = _with_cited(rules.evidence, answer, lines)
    theirs = Hypothesis(
        answer.failure_type,
        answer.root_cause_class,
        answer.root_cause,
        "unknown" if answer.failure_type == "unknown" else "hypothesis",
        supporting=tuple(cited),
        check=answer.against,
    )
    if answer.failure_type == rules.failure_type:
        return _agreed(replace(rules, evidence=evidence), answer, cited, model)
    if _may_lead(rules, answer, labels):
        return _led(replace(rules, evidence=evidence), answer, theirs, labels, model)
    status = _FALLS.get(rules.status, rules.status)
    note = f"{model} reads it as {answer.failure_type}: {answer.root_cause}"
    own = rules.hypotheses[:1] or (_of_rules(rules),)
    return replace(
        rules,
        evidence=evidence,
        status=status,
        hypotheses=(replace(own[0], status=status), theirs, *rules.hypotheses[1:]),
        missing=(*rules.missing, note),
    )


def _may_lead(rules: Diagnosis, answer: Answer, labels: Taxonomy) -> bool:
    """Where the rules know no cause; or only a symptom, and the model more than that."""
    if not answer.names_a_cause or rules.outcome == "healthy":
        return False
    if rules.failure_type == "unknown":
        return True
    symptom = labels.types[rules.failure_type].symptom and rules.status in ("hypothesis", "unknown")
    return symptom and not labels.types[answer.failure_type].symptom


def _agreed(rules: Diagnosis, answer: Answer, cited: Sequence[str], model: str) -> Diagnosis:
    """The model's words, the rules' status: that two say the same of one log is no new evidence."""
    if not answer.names_a_cause:
        return rules
    first = rules.hypotheses[0] if rules.hypotheses else _of_rules(rules)
    supporting = tuple(dict.fromkeys((*first.supporting, *cited)))
    mine = replace(first, root_cause=answer.root_cause, supporting=supporting)
    return replace(
        rules,
        root_cause=answer.root_cause,
        root_cause_class=answer.root_cause_class if rules.root_cause_class == "unknown" else rules.root_cause_class,
        suspects=rules.suspects if _any(rules.suspects) else Suspects(answer.nodes, answer.ranks),
        hypotheses=(mine, *rules.hypotheses[1:]),
        remediation=(*rules.remediation, *_steps(answer, cited)),
        produced_by=f"llm:{model}",
    )


def _led(rules: Diagnosis, answer: Answer, theirs: Hypothesis, labels: Taxonomy, model: str) -> Diagnosis:
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
        chain=tuple(dict.fromkeys((*theirs.supporting, *rules.chain))),
        hypotheses=(theirs, *(rules.hypotheses or (_of_rules(rules),))),
        remediation=(*_steps(answer, theirs.supporting), *rules.remediation),
        produced_by=f"llm:{model}",
    )


def _of_rules(rules: Diagnosis) -> Hypothesis:
    return Hypothesis(rules.failure_type, rules.root_cause_class, rules.root_cause, rules.status, rules.chain)


def _any(found: Suspects) -> bool:
    return bool(found.nodes or found.ranks or found.gpus)


def _steps(answer: Answer, cited: Sequence[str]) -> tuple[Remedy, ...]:
    """In words only: a command is printed when code or a runbook made it, not when a model did."""
    return tuple(
        Remedy(f"{step} (as the model advises)", why, "reversible", evidence=tuple(cited)) for step, why in answer.steps
    )


def _with_cited(
    evidence: tuple[Evidence, ...], answer: Answer, lines: Lines
) -> tuple[tuple[Evidence, ...], tuple[str, ...]]:
    """The evidence with what the model cites besides, and the ids of the lines it cites as root or cascade."""
    found = list(evidence)
    ids: list[str] = []
    for cited in answer.cited:
        there = next((e for e in found if (e.file, e.line) == (cited.file, cited.line)), None)
        if there is None:
            line = lines[(cited.file, cited.line)]
            at = line.text.casefold().find(cited.quote.casefold())
            span = (at, at + len(cited.quote)) if at >= 0 else None
            there = Evidence(
                f"E{len(found) + 1}", cited.file, cited.line, excerpt(line.text, span), cited.role, answer.failure_type,
                title="cited by the model", rank=line.rank, node=line.node, gpu=line.gpu, time=line.time, repeats=line.repeats,
            )  # fmt: skip
            found.append(there)
        if cited.role != "context":
            ids.append(there.id)
    return tuple(found), tuple(dict.fromkeys(ids))
