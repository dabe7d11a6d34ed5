"""For models too weak to write rules: code writes the regular expression of a template, the model judges its lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triage.agents import proposals, sample
from triage.agents.asking import Asker
from triage.agents.findings import NOT_KEPT, Findings
from triage.compress.mining import Mined
from triage.domain import RuleOrigin


def judge(
    mined: Sequence[Mined], findings: Findings, asker: Asker, answered: set[str], tell: Callable[[str], None]
) -> None:
    """One call a template, the costliest first; what verification refuses is not asked about. Errors: ModelError.

    answered: gets the kinds of line of which the model said whether they are routine.
    """
    for at, template in enumerate(mined, 1):
        rule = findings.rule("called routine by a model", template.pattern, template.lines)
        shown = template.lines[: sample.EXAMPLES]
        text = "\n".join(line[: sample.MOST_CHARS] for line in shown)
        origin = RuleOrigin("judge", asker.model, lines=shown, sample=sample.digest(text), asked=1)
        found = findings.check(rule)
        if found.check in NOT_KEPT:
            continue
        if not found.accepted:
            findings.keep(rule, origin, found.reason)
            continue
        tell(f"asking {asker.model} about a kind of line ({at}/{len(mined)})")
        said = proposals.judged(asker.ask("log-judge", lines=text))
        origin = RuleOrigin(
            "judge", asker.model, asker.used, origin.sample, origin.lines, votes=1 if said else 0, asked=1
        )
        if said is None:
            continue  # no answer that can be read: it may be asked again
        answered.update(map(sample.kind_of, shown))
        if said:
            findings.adopt(rule, origin, "active", "the model calls these lines routine")
        else:
            findings.keep(rule, origin, "the model does not call these lines routine")
