"""The pipeline as a process uses it that diagnoses one job after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage import kb, pipeline
from triage.diagnose.judge import Knowledge
from triage.domain import Diagnosis, Folded
from triage.evidence.match import Matcher
from triage.parts import Parts
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def log_of(step: str, lines: int) -> str:
    return "".join(f"[{at:04}] {step} {at} of the shard map\n" for at in range(lines)) + "KeyError: 'tokens'\n"


def test_what_one_job_taught_does_not_reach_the_next(tmp_path: Path, knowledge: Knowledge) -> None:
    (tmp_path / "first.log").write_text(
        "iteration 7/ 9 | lm loss: 2.1E+00 | grad norm: 1.2\n" * 40 + log_of("reading", 60)
    )
    (tmp_path / "second.log").write_text(
        log_of("reading", 300) + "iteration 8/ 9 | lm loss: 2.1E+00 | grad norm: 1.2\n"
    )
    parts = Parts(knowledge, kb.filter_rules())
    pipeline.diagnose([str(tmp_path / "first.log")], parts)
    _, after = pipeline.diagnose([str(tmp_path / "second.log")], parts)
    pipeline.compiled.cache_clear()
    _, alone = pipeline.diagnose([str(tmp_path / "second.log")], parts)
    assert {**after, "timing": {}} == {**alone, "timing": {}}
    scanner = pipeline._scanner(parts, (), 1)
    assert scanner._sorter._shapes == scanner._sorter._forms == {}
    assert scanner._sorter._classifier is pipeline._scanner(parts, (), 1)._sorter._classifier


def test_the_compressed_log_is_handed_out_with_the_cited_line_in_it(tmp_path: Path, knowledge: Knowledge) -> None:
    (tmp_path / "job.log").write_text(log_of("reading", 30))
    seen: list[Folded] = []
    pipeline.diagnose([str(tmp_path / "job.log")], Parts(knowledge, kb.filter_rules(), folded=seen.append))
    (folded,) = seen
    assert 31 in [line.number for line in folded.lines]


def test_what_breaks_the_stage_of_the_model_leaves_the_answer_of_the_rules(
    tmp_path: Path, knowledge: Knowledge
) -> None:
    def breaks(*_: object) -> Diagnosis:
        raise RecursionError("too deep")

    (tmp_path / "job.log").write_text(log_of("reading", 30))
    seen: list[Exception] = []
    parts = Parts(knowledge, kb.filter_rules(), explain=breaks, failed=seen.append)
    result, document = pipeline.diagnose([str(tmp_path / "job.log")], parts)
    assert result.failure_type == "key-error"
    assert document["missing"][-1] == "asking the model failed (RecursionError); the rules' answer stands"
    assert [str(error) for error in seen] == ["too deep"]
