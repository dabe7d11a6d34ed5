"""The log agent: learns filter rules from what the rules in force leave over. A model proposes, code verifies.

Ways: *write*, a strong model writes rules and a second look votes; *judge*, code writes the regular expression of a
template and the model says routine or not, one template a call; *mine*, no model: templates that are frequent all through
the run. *auto* lets the model write for a few kinds of line and goes on by the way in which it proves able.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from triage import heads
from triage.agents import judging, sample, writing
from triage.agents.asking import Asker
from triage.agents.findings import Findings
from triage.compress.mining import Mined, is_steady, mine
from triage.compress.verify import Verifier
from triage.domain import FilterRule, LearnedRule, LogLine, RuleOrigin
from triage.errors import ModelError
from triage.llm.limits import Limited, Limits, Usage
from triage.llm.values import ChatModel

Way = Literal["auto", "write", "judge", "mine"]
WAYS: tuple[str, ...] = get_args(Way)
TRIAL_KINDS = 6
TEMPLATES_EACH = 5  # of one wording


@dataclass(frozen=True, slots=True)
class Options:
    """How much is asked. answers: independent ones to one sample; kinds: the costliest kinds of line that are looked at."""

    way: Way = "auto"
    answers: int = 3
    kinds: int = 120
    batch_kinds: int = 20
    batch_chars: int = 6000
    limits: Limits = field(default_factory=lambda: Limits(calls=60, tokens=400_000, seconds=900.0))


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was learned. rules: adopted, and refused ones with their reason.

    unsteady: mined templates that nobody has called routine, too rare or in one part of the run only; failed: the model
    gave no answer that could be read.
    """

    rules: tuple[LearnedRule, ...] = ()
    way: str = "mine"
    kinds: int = 0
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    unsteady: int = 0
    failed: bool = False


def learn(
    lines: Sequence[LogLine],
    verifier: Verifier,
    in_force: Sequence[FilterRule],
    known: Sequence[LearnedRule] = (),
    model: ChatModel | None = None,
    options: Options = Options(),
    tell: Callable[[str], None] = lambda _text: None,
) -> Lesson:
    """Rules for these lines, which no rule in force takes.

    known: rules that this kind of job has in any state: their kinds of line are not asked about again.
    A model that fails ends the asking with a note; what it said before counts. Never raises ModelError.
    """
    asked = [line for learned in known for line in learned.origin.lines]
    kinds = sample.kinds(lines, asked)[: options.kinds]
    if not kinds:
        return Lesson(way=options.way)
    counted = {kind.wording for kind in kinds}
    mined = _a_few_each(mine(line for line in lines if sample.kind_of(line.text) in counted))
    findings = Findings(verifier, list(in_force), [(line.text, line.repeats) for line in lines])
    if model is None or options.way == "mine":
        steady = list(filter(is_steady, mined))
        _mine(steady, findings)
        return Lesson(tuple(findings.rules), "mine", len(kinds), unsteady=len(mined) - len(steady))
    limited = Limited(model, options.limits)
    asker = Asker(limited)
    notes: list[str] = []
    answered: set[str] = set()  # kinds of line that the model was shown and gave an answer about
    way: Way = options.way
    try:
        way = _ask(kinds, mined, findings, asker, options, answered, tell)
    except ModelError as error:
        notes.append(f"{asker.model} was not asked to the end: {error}")
    if not answered and not notes:
        notes.append(f"{asker.model} gave no answer that can be read")
    _rest([kind for kind in kinds if kind.wording in answered], mined, findings, asker)
    return Lesson(tuple(findings.rules), way, len(kinds), tuple(notes), limited.used, failed=not answered)


def _ask(
    kinds: Sequence[sample.Kind],
    mined: Sequence[Mined],
    findings: Findings,
    asker: Asker,
    options: Options,
    answered: set[str],
    tell: Callable[[str], None],
) -> Way:
    """Asks until all kinds were shown. Errors: ModelError; what was found before it stays."""
    if options.way == "judge":
        judging.judge(mined, findings, asker, answered, tell)
        return "judge"
    batches = list(_batches(kinds, options))
    for at, batch in enumerate(batches, 1):
        tell(f"asking {asker.model} for rules ({at}/{len(batches)})")
        if writing.write(batch, findings, asker, options.answers):
            answered.update(kind.wording for kind in batch)
        if options.way == "auto" and at == 1 and not findings.adopted:
            judging.judge(mined, findings, asker, answered, tell)
            return "judge"
    return "write"


def _batches(kinds: Sequence[sample.Kind], options: Options) -> Sequence[tuple[sample.Kind, ...]]:
    """In a trial the first question is a small one."""
    trial = kinds[:TRIAL_KINDS] if options.way == "auto" else ()
    rest = kinds[len(trial) :]
    return [
        *sample.batches(trial, TRIAL_KINDS, options.batch_chars),
        *sample.batches(rest, options.batch_kinds, options.batch_chars),
    ]


def _a_few_each(mined: Sequence[Mined]) -> list[Mined]:
    """Of templates that one wording covers, the costliest few: names of all sorts make many of one kind."""
    seen: Counter[str] = Counter()
    kept = []
    for template in mined:
        kind = sample.kind_of(template.lines[0])
        seen[kind] += 1
        if seen[kind] <= TEMPLATES_EACH:
            kept.append(template)
    return kept


def _mine(mined: Sequence[Mined], findings: Findings) -> None:
    for template in mined:
        rule = findings.rule("frequent all through the run", template.pattern, template.lines)
        origin = RuleOrigin("mined", lines=template.lines[: sample.EXAMPLES])
        findings.take(rule, origin, "shadow", "frequent all through the run, but nobody has called it routine yet")


def _rest(kinds: Sequence[sample.Kind], mined: Sequence[Mined], findings: Findings, asker: Asker) -> None:
    """Kinds that the model was asked about without a rule coming of it are remembered, and not asked about again."""
    done = {sample.kind_of(line) for learned in findings.rules for line in learned.origin.lines}
    patterns = {sample.kind_of(line): template.pattern for template in mined for line in template.lines}
    for kind in kinds:
        if kind.wording in done or findings.is_taken(kind.lines[0]):
            continue
        pattern = patterns.get(kind.wording) or f"^{re.escape(heads.split(kind.lines[0])[1].strip())}$"
        rule = findings.rule("not called routine", pattern, kind.lines)
        origin = RuleOrigin("mined", asker.model, asker.used, sample.digest("\n".join(kind.lines)), kind.lines)
        findings.keep(rule, origin, "the model was shown these lines and no rule for them was adopted")


def states(rules: Sequence[LearnedRule]) -> Counter[str]:
    """How many rules are in each state."""
    return Counter(learned.state for learned in rules)
