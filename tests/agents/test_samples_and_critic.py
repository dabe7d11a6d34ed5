"""Answers that vote, and a second pass that attacks the one that leads, on a real HTTP server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agents.jobs import HIDDEN, LOST, TOKEN, ask, asked, calls, job, said
from tests.openai_server import Answer, OpenAIServer, as_json, status
from triage.agents.case import Case
from triage.llm.trace import Recorder, Replayer

OOM = [
    *[f"step {n} loss 2.{n}" for n in range(1, 20)],
    "worker 3 asked for more room than there is, giving up",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB",
]
FULL = {"file": "job.log", "line": 21, "quote": "Tried to allocate 2.50 GiB", "role": "root"}
GAVE_UP = {"file": "job.log", "line": 20, "quote": "asked for more room", "role": "root"}


def same(**fields: Any) -> dict[str, Any]:
    """What the rules say of OOM."""
    words = "GPU 3 had no room for 2.50 GiB."
    return said(**{"failure_type": "out-of-memory", "root_cause": words, "cited": [FULL], "ranks": [], **fields})


def other(**fields: Any) -> dict[str, Any]:
    words = "The network failed before worker 3 gave up."
    return same(**{"failure_type": "network-error", "root_cause": words, "cited": [GAVE_UP], **fields})


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.chdir(tmp_path)
    return job(tmp_path)


@pytest.fixture
def oom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.chdir(tmp_path)
    return job(tmp_path, OOM)


def at(found: Case, status: str) -> Case:
    """The same with another status of the rules."""
    return replace(found, rules=replace(found.rules, status=status))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ samples
def test_each_answer_is_asked_for_anew(ring: Case) -> None:
    result, server = asked(ring, [said()] * 3, samples=3)
    assert [r.body["temperature"] for r in server.requests] == [0.0, 0.7, 0.7]
    assert {r.text for r in server.requests} == {server.requests[0].text}
    assert (result.failure_type, result.status) == ("runtime-error", "hypothesis")
    assert result.agent is not None
    assert (result.agent.asked, result.agent.samples) == (3, ("runtime-error",) * 3)


@pytest.mark.parametrize("before", ["hypothesis", "supported", "established"])
def test_answers_that_agree_with_the_rules_raise_a_hypothesis_and_nothing_else(oom: Case, before: str) -> None:
    result, _ = asked(at(oom, before), [same()] * 3, samples=3)
    assert result.status == ("supported" if before == "hypothesis" else before)
    assert result.hypotheses[0].status == result.status
    result, _ = asked(at(oom, "hypothesis"), [same()])
    assert result.status == "hypothesis"  # one answer is no agreement


def test_answers_that_agree_but_on_another_line_raise_nothing(oom: Case) -> None:
    elsewhere = same(cited=[GAVE_UP])
    result, _ = asked(at(oom, "hypothesis"), [elsewhere] * 2, samples=2)
    assert result.status == "hypothesis"
    result, _ = asked(at(oom, "hypothesis"), [same(), elsewhere], samples=2)
    assert result.status == "hypothesis"


def test_answers_that_differ_make_the_status_fall_and_stand_beside_each_other(oom: Case) -> None:
    assert oom.rules.status == "established"
    result, _ = asked(oom, [other(), same(), same()], samples=3)
    assert (result.failure_type, result.status) == ("out-of-memory", "supported")
    assert [h.failure_type for h in result.hypotheses[:2]] == ["out-of-memory", "network-error"]
    assert any("reads it as network-error" in note for note in result.missing)
    assert [(e.line, e.role) for e in result.evidence if e.role == "root"] == [(21, "root")]


def test_however_many_say_so_the_rules_cause_stays(oom: Case) -> None:
    result, _ = asked(oom, [other()] * 3, samples=3)
    assert (result.failure_type, result.status, result.produced_by) == ("out-of-memory", "supported", "rules")
    assert {(e.line, e.role) for e in result.evidence} == {(21, "root"), (20, "context")}


def test_without_a_majority_nothing_leads(ring: Case) -> None:
    split = [said(), said(failure_type="network-error"), said(failure_type="unknown", cited=[])]
    result, _ = asked(ring, split, samples=3)
    assert (result.failure_type, result.produced_by) == ("unknown", "rules")
    assert {"runtime-error", "network-error"} <= {h.failure_type for h in result.hypotheses}
    result, _ = asked(ring, [said(failure_type="network-error"), said(), said()], samples=3)
    assert result.failure_type == "runtime-error"


def test_over_a_symptom_only_answers_that_agree_lead(ring: Case) -> None:
    symptom = replace(ring, rules=replace(ring.rules, failure_type="nccl-timeout", status="hypothesis"))
    deeper = said(failure_type="collective-mismatch")
    result, _ = asked(symptom, [deeper])
    assert result.failure_type == "nccl-timeout"
    result, _ = asked(symptom, [deeper, deeper], samples=2)
    assert (result.failure_type, result.status) == ("collective-mismatch", "hypothesis")
    result, _ = asked(symptom, [deeper, said(failure_type="network-error")], samples=2)
    assert result.failure_type == "nccl-timeout"


def test_a_model_that_fails_midway_leaves_the_answers_before(ring: Case) -> None:
    result, server = asked(ring, [said(), status(401), said()], samples=3)
    assert len(server.requests) == 2
    assert "the answers before it stand" in result.missing[-1]
    assert (result.failure_type, result.produced_by) == ("unknown", "rules")  # one of three is no majority


def test_an_answer_that_does_not_hold_has_no_vote(ring: Case) -> None:
    bad = said(root_cause="gpu-99 died.")
    result, _ = asked(ring, [bad, bad, said(), said()], samples=3)
    assert result.failure_type == "runtime-error"
    assert result.agent is not None
    assert result.agent.samples == ("runtime-error", "runtime-error")


# ------------------------------------------------------------------------------------------------ what may lead
def test_a_line_that_tells_of_no_trouble_leads_to_nothing(ring: Case) -> None:
    calm = [{"file": "job.log", "line": LOST - 1, "quote": "step 5999 loss", "role": "root"}]
    result, _ = asked(ring, [said(cited=calm)])
    assert (result.failure_type, result.hypotheses[1].failure_type) == ("unknown", "runtime-error")


def test_what_the_rules_know_and_leave_open_stays_open(ring: Case) -> None:
    """That a task exited with an error is known; it says nothing of the cause, whatever a model reads into it."""
    known = [{"file": "job.log", "line": LOST + 2, "quote": "Exited with exit code 1", "role": "root"}]
    result, _ = asked(ring, [said(cited=known, root_cause="Task 3 ended with an error.")])
    assert (result.failure_type, result.produced_by) == ("unknown", "rules")


# ------------------------------------------------------------------------------------------------ the second pass
STARTED = {
    "file": "job.log",
    "line": 1,
    "quote": "starting on gpu-17 with 8 ranks",
    "why": "peer 3 is none of the 8 ranks of gpu-17",
}


def objects(*objections: dict[str, Any], refuted: bool = True, **fields: Any) -> dict[str, Any]:
    return {"refuted": refuted, "objections": list(objections), "check": "", **fields}


def test_a_refuted_answer_does_not_lead_and_says_what_speaks_against_it(ring: Case) -> None:
    result, server = asked(ring, [said(), objects(STARTED)], critic=True)
    assert "runtime-error (software-bug): Peer 3 of ring 7" in server.requests[1].text
    assert (result.failure_type, result.produced_by) == ("unknown", "rules")
    theirs = result.hypotheses[1]
    assert theirs.failure_type == "runtime-error"
    (against,) = (e for e in result.evidence if e.id in theirs.against)
    assert (against.line, against.role) == (1, "context")
    assert "peer 3 is none of the 8 ranks" in against.title
    assert result.agent is not None
    assert (result.agent.objections, result.agent.dropped) == (1, 0)


UNGROUNDED = [
    {**STARTED, "line": 999_999},
    {**STARTED, "file": "other.log"},
    {**STARTED, "quote": "with 9 ranks"},
    {**STARTED, "why": "the switch sw-12 was down"},
    {**STARTED, "why": ""},
]


@pytest.mark.parametrize("objection", UNGROUNDED)
def test_an_objection_that_does_not_hold_is_dropped_and_counted(ring: Case, objection: dict[str, Any]) -> None:
    result, _ = asked(ring, [said(), objects(objection)], critic=True)
    assert (result.failure_type, result.hypotheses[0].against) == ("runtime-error", ())
    assert result.agent is not None
    assert (result.agent.objections, result.agent.dropped) == (0, 1)
    assert "1 did not hold and was dropped" in result.missing[-1]


def test_the_answers_own_line_does_not_refute_it(ring: Case) -> None:
    own = {"file": "job.log", "line": LOST, "quote": "lost its token", "why": "it does not say why"}
    result, _ = asked(ring, [said(), objects(own)], critic=True)
    assert result.failure_type == "runtime-error"
    assert result.hypotheses[0].against


def test_what_holds_against_the_rules_own_answer_makes_its_status_fall(oom: Case) -> None:
    doubt = {"file": "job.log", "line": 20, "quote": "asked for more room", "why": "worker 3 gave up before"}
    result, _ = asked(oom, [same(), objects(doubt)], critic=True)
    assert (result.failure_type, result.status) == ("out-of-memory", "supported")
    assert [e.line for e in result.evidence if e.id in result.hypotheses[0].against] == [20]
    assert [(e.line, e.role) for e in result.evidence if e.role == "root"] == [(21, "root")]
    result, _ = asked(oom, [same(), objects(refuted=False)], critic=True)
    assert result.status == "established"


def test_the_second_pass_may_use_tools(ring: Case) -> None:
    look = calls(("read_lines", f'{{"file": "job.log", "line": {HIDDEN}, "around": 0}}'))
    found = {"file": "job.log", "line": HIDDEN, "quote": "loss 517.25", "why": "the loss was 517.25 before"}
    result, server = asked(ring, [said(), look, objects(found)], critic=True)
    assert server.requests[1].tools
    assert (result.failure_type, [e.line for e in result.evidence if e.id in result.hypotheses[1].against]) == ("unknown", [HIDDEN])  # fmt: skip


def test_unless_told_it_is_asked_only_where_the_model_would_lead(ring: Case, tmp_path: Path) -> None:
    _, server = asked(ring, [said(), objects(refuted=False)], critic=None)
    assert len(server.requests) == 2
    oom = job(tmp_path, OOM)
    for answer in (same(), other()):
        _, server = asked(oom, [answer], critic=None)
        assert len(server.requests) == 1


@pytest.mark.parametrize("second", [status(401), "I have doubts.", Answer("{", finish="length")])
def test_a_second_pass_that_comes_to_nothing_changes_nothing_and_is_said(ring: Case, second: Any) -> None:
    result, _ = asked(ring, [said(), second], critic=True)
    assert (result.failure_type, result.hypotheses[0].against) == ("runtime-error", ())
    assert "against its answer" in result.missing[-1]
    assert result.agent is not None
    assert result.agent.objections is None


def test_samples_tools_and_the_second_pass_are_replayed(ring: Case, tmp_path: Path) -> None:
    look = calls(("search_log", '{"pattern": "517"}'))
    script = [look, as_json(said()), as_json(said()), look, as_json(objects(STARTED, refuted=False))]
    options: dict[str, Any] = {"samples": 2, "critic": True}
    with OpenAIServer(script) as server:
        first = ask(ring, Recorder(server.model(), tmp_path / "trace"), **options)
    assert (len(server.requests), first.failure_type) == (5, "runtime-error")
    again = ask(ring, Replayer(tmp_path / "trace"), **options)
    assert again.produced_by == f"{first.produced_by} (replayed from trace)"
    assert replace(again, produced_by=first.produced_by) == first


def test_what_is_told_on_the_way(ring: Case) -> None:
    told: list[str] = []
    slow = as_json(said(), drip=0.02)
    with OpenAIServer([slow, as_json(objects(TOKEN | {"why": "x"}))]) as server:
        ask(ring, server.model(), critic=True, tell=told.append)
    assert told[0] == "asking openai:scripted"
    counts = [int(t.split()[2]) for t in told if "characters so far" in t]
    assert len(counts) > 2
    assert counts[:3] == sorted(counts[:3])
    assert "asking openai:scripted what speaks against it" in told


def test_what_is_said_against_the_models_answer_stands_there_and_the_status_falls_by_one(oom: Case) -> None:
    """An objection to what the model says is none to what the rules say."""
    doubt = {"file": "job.log", "line": 21, "quote": "CUDA out of memory", "why": "GPU 3 was full, which is no network"}
    result, _ = asked(oom, [other(), objects(doubt)], critic=True)
    assert (oom.rules.status, result.status, result.failure_type) == ("established", "supported", "out-of-memory")
    rules, theirs = result.hypotheses[:2]
    assert (rules.failure_type, rules.against, theirs.failure_type) == ("out-of-memory", (), "network-error")
    assert [e.line for e in result.evidence if e.id in theirs.against] == [21]


def test_two_doubts_make_the_status_fall_once(oom: Case) -> None:
    doubt = {"file": "job.log", "line": 20, "quote": "asked for more room", "why": "worker 3 gave up before"}
    result, _ = asked(oom, [same(), same(), other(), objects(doubt)], samples=3, critic=True)
    assert (oom.rules.status, result.status) == ("established", "supported")
    assert result.hypotheses[0].against


@pytest.mark.parametrize(
    "why", ["run sudo rm -rf --no-preserve-root to see it", "kubectl delete namespace prod shows it", "rank 9 is gone"]
)
def test_no_text_of_the_second_pass_gives_a_command_or_an_invented_rank(oom: Case, why: str) -> None:
    doubt = {"file": "job.log", "line": 20, "quote": "asked for more room", "why": why}
    result, _ = asked(oom, [same(), objects(doubt, refuted=False, check=why)], critic=True)
    assert (result.status, result.hypotheses[0].against, result.hypotheses[0].check) == (
        "established",
        (),
        oom.rules.hypotheses[0].check,
    )
    assert result.agent is not None
    assert (result.agent.objections, result.agent.dropped) == (0, 2)
