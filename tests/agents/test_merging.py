"""Whatever a model says, the rules' cause and evidence get no worse: over shipped cases, with answers at random."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.agents.jobs import KNOWLEDGE, case, knows
from tests.conftest import REPO
from triage.agents.agreement import vote
from triage.agents.answer import Answer, Cited
from triage.agents.case import Case, Ground
from triage.agents.critic import Criticism, Objection
from triage.agents.merging import Measure, merge
from triage.domain import Diagnosis

CASES = sorted(p.parent for p in REPO.glob("eval/cases/*/case.yaml"))[::9]
LABELS = KNOWLEDGE.taxonomy
RISE = {"unknown": 0, "hypothesis": 1, "supported": 2, "established": 3}


def answer(draw: random.Random, ground: Ground) -> Answer:
    """Grounded: of lines that were shown, with their own words. As wrong as may be."""
    lines = draw.sample(sorted(ground.lines), k=min(3, len(ground.lines)))
    roles = ("root", draw.choice(("root", "cascade")), "context")
    cited = tuple(Cited(*place, ground.lines[place].text[:20], role) for place, role in zip(lines, roles, strict=False))  # type: ignore[arg-type]
    return Answer(
        outcome=draw.choice(("failed", "hung", "healthy", "interrupted")),
        failure_type=draw.choice(sorted(LABELS.types)),
        root_cause_class=draw.choice(sorted(LABELS.root_cause_classes)),
        root_cause="It went wrong.",
        cited=cited,
        action=draw.choice(sorted(LABELS.actions)),
        steps=(("look", "so"),),
    )


def roots(result: Diagnosis) -> set[tuple[str, int]]:
    return {(e.file, e.line) for e in result.evidence if e.role == "root"}


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_a_model_makes_nothing_worse_that_the_rules_know(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found: Case = case(yaml.safe_load((folder / "case.yaml").read_text("utf-8"))["inputs"])
    rules, ground, draw = found.rules, Ground(found, ""), random.Random(folder.name)
    for n in range(150):
        answers = [answer(draw, ground) for _ in range(1 + n % 3)]
        objection = answer(draw, ground).cited[:1]
        against = Criticism(tuple(Objection(c, "it says so") for c in objection), refuted=draw.random() < 0.5)
        result = merge(
            rules, vote(answers, len(answers), rules.failure_type), Measure(ground.lines, LABELS, knows), "m", against
        )
        for mine, theirs in zip(rules.evidence, result.evidence, strict=False):
            named = mine.signature == "end.unnamed-error" and result.produced_by != "rules"
            assert theirs == (replace(mine, role=theirs.role, failure_type=theirs.failure_type) if named else mine)
        assert [e.id for e in result.evidence] == [f"E{at}" for at in range(1, len(result.evidence) + 1)]
        assert (result.outcome == "healthy") == (rules.outcome == "healthy")
        if rules.failure_type != "unknown":
            assert (result.failure_type, result.outcome, result.action) == (
                rules.failure_type,
                rules.outcome,
                rules.action,
            )
            assert rules.root_cause_class in ("unknown", result.root_cause_class)
            assert roots(result) == roots(rules)
            assert RISE[result.status] <= RISE[rules.status]
            assert result.root_cause.startswith(rules.root_cause)
        elif result.failure_type != "unknown":
            assert result.status == "hypothesis"
            assert roots(rules) <= roots(result)
