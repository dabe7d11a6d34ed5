"""The failure agent: a model reads the evidence that code found and says what it makes of it; code holds it to the log.

The rules' answer is there before a model is asked, and stands whatever the model does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from triage import prompts
from triage.agents import answer as answers
from triage.agents.asking import Asker
from triage.agents.grounding import Grounded, Lines, ground
from triage.agents.merging import merge
from triage.domain import Diagnosis, Folded, JobLog
from triage.errors import ModelError
from triage.evidence.known import known_nodes, known_ranks
from triage.llm.limits import Limited, Limits
from triage.llm.values import ChatModel
from triage.taxonomy import Taxonomy
from triage.text import rank_ranges

PROMPTS = ("diagnose", "diagnose-repair")
LIMITS = Limits(calls=4, tokens=120_000, seconds=180.0)
_MOST_LINE = 500


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of a job before the model is asked."""

    log: JobLog
    folded: Folded
    rules: Diagnosis


def explain(
    case: Case,
    model: ChatModel,
    labels: Taxonomy,
    limits: Limits = LIMITS,
    tell: Callable[[str], None] = lambda _text: None,
) -> Diagnosis:
    """The rules' diagnosis with what a model makes of the evidence. Never raises ModelError: it becomes a note."""
    limited = Limited(model, limits)
    asker = Asker(limited)
    tell(f"asking {model.name}")
    try:
        found, note = _grounded(case, asker, labels)
    except ModelError as error:
        found, note = None, f"{model.name} gave no answer: {error}; the rules' answer stands"
    result = case.rules
    if found is not None:
        result = merge(result, found.answer, citable(case), labels, model.name)
        note = _dropped(model.name, found)
    used = limited.used
    return replace(
        result,
        missing=(*result.missing, *([note] if note else [])),
        prompts=asker.used,
        usage={**result.usage, "llm_calls": used.calls, "tokens_in": used.tokens_in, "tokens_out": used.tokens_out},
    )


def _grounded(case: Case, asker: Asker, labels: Taxonomy) -> tuple[Grounded | None, str]:
    """An answer that holds, after one repair at most; else None and why."""
    asked = inputs(case, labels)
    said = asker.ask("diagnose", 0.0, **asked)
    found, problems = _checked(said, case, asked, labels)
    if problems:
        whole = prompts.load("diagnose").fill(**asked)
        listed = "\n".join(f"- {problem}" for problem in problems)
        said = asker.ask("diagnose-repair", asked=whole, answer=said[:4000], problems=listed)
        found, problems = _checked(said, case, asked, labels)
    if problems:
        return None, f"the answer of {asker.model} did not hold ({'; '.join(problems[:3])}); the rules' answer stands"
    return found, ""


def _checked(said: str, case: Case, asked: dict[str, str], labels: Taxonomy) -> tuple[Grounded | None, tuple[str, ...]]:
    answer, problems = answers.read(said, labels)
    if answer is None:
        return None, problems
    corpus = "\n".join(asked[name] for name in ("evidence", "hypotheses", "facts", "log"))
    nodes, ranks = frozenset(known_nodes(case.log)), frozenset(known_ranks(case.log))
    found = ground(answer, citable(case), corpus, nodes, ranks)
    return found, found.broken


def citable(case: Case) -> Lines:
    """The lines that the model was shown, whole."""
    shown = {(line.file, line.number) for line in case.folded.lines} | {(e.file, e.line) for e in case.rules.evidence}
    return {
        (line.file, line.number): line
        for file in case.log.files
        for line in (*file.earlier, *file.lines)
        if (line.file, line.number) in shown
    }


def inputs(case: Case, labels: Taxonomy) -> dict[str, str]:
    """The inputs of the prompt `diagnose`."""
    rules = case.rules
    return {
        "outcomes": ", ".join(sorted(labels.outcomes)),
        "types": "\n".join(f"{kind.id}: {kind.means}" for kind in labels.types.values()),
        "classes": ", ".join(sorted(labels.root_cause_classes)),
        "actions": ", ".join(labels.actions),
        "evidence": "\n".join(
            f"{e.id} {e.file}:{e.line} [{e.role}] {e.text}" + (f" = {e.title}" if e.title else "")
            for e in rules.evidence
        )
        or "none",
        "hypotheses": "\n".join(
            f"- {h.failure_type} ({h.status}), {h.root_cause_class}: {h.root_cause}" for h in rules.hypotheses
        )
        or f"- {rules.failure_type} ({rules.status}): {rules.root_cause}",
        "similar": "\n".join(
            f"- {s.incident}: {s.title}; what helped: {'; '.join(s.remediation[:2]) or 'not told'}"
            for s in rules.similar
        )
        or "none",
        "facts": _facts(case),
        "log": "\n".join(
            f"{x.file}:{x.number} {x.text[:_MOST_LINE]}"
            + (f"  (x{x.repeats} ranks {rank_ranges(x.ranks)})" if x.repeats > 1 else "")
            for x in case.folded.lines
        ),
    }


def _facts(case: Case) -> str:
    rules, found = case.rules, []
    found.append(f"outcome by the rules: {rules.outcome}")
    if rules.progress.last_step is not None:
        found.append(f"last step: {rules.progress.last_step}")
    found.append(f"stage: {rules.progress.stage}")
    if rules.job:
        found.append(f"job id: {rules.job}")
    found += [f"not seen: {note}" for note in rules.missing[:6]]
    return "\n".join(found)


def _dropped(model: str, found: Grounded) -> str:
    if not found.dropped:
        return ""
    return f"of what {model} said, {len(found.dropped)} did not hold and was dropped: {'; '.join(found.dropped[:3])}"
