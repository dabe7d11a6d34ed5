"""`triage diagnose` with a model: on a real HTTP server, from a trace, offline, by hand."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.openai_server import Answer, OpenAIServer, as_json, status
from triage import config, pipeline
from triage.cli import asking, wiring
from triage.llm.private import Private

LOG = "\n".join(
    [
        "starting on gpu-17",
        *[f"step {n} loss 2.{n}" for n in range(1, 40)],
        "ring 7 lost its token, peer 3 did not hand it on",
        "srun: error: gpu-17: task 3: Exited with exit code 1",
        "",
    ]
)
SAID = {
    "outcome": "failed", "failure_type": "collective-mismatch", "root_cause_class": "software-bug",
    "root_cause": "Peer 3 of ring 7 did not hand on its token.",
    "cited": [{"file": "job.out", "line": 41, "quote": "ring 7 lost its token", "role": "root"}],
    "nodes": [], "ranks": [3], "action": "fix-and-resubmit", "steps": [],
}  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.out"
    path.write_text(LOG)
    return path


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_model_explains_what_the_rules_do_not_know_and_a_replay_says_the_same(
    triage: Run, job: Path, tmp_path: Path
) -> None:
    words = ("diagnose", "job.out", "--format", "json", "--no-record")
    look = Answer("", "tool_calls", tool_calls=(("search_log", '{"pattern": "token|bob@"}'), ("job_facts", "{}")))
    with OpenAIServer([look, as_json(SAID), as_json({"refuted": False, "objections": []})]) as server:
        first = answer(triage(*words, "--trace", "t.jsonl", **server.env()))
    assert (first["failure_type"], first["produced_by"]) == ("collective-mismatch", "llm:openai:scripted")
    assert [prompt["name"] for prompt in first["prompts"]] == ["diagnose-tools", "diagnose", "diagnose-critic"]
    assert first["usage"]["llm_calls"] == 3
    assert [use["name"] for use in first["agent"]["tools"]] == ["search_log", "job_facts"]
    assert "job.out:41 ring 7" in server.requests[1].messages[-2]["content"]
    assert "test-key-0123456789" not in (tmp_path / "t.jsonl").read_text()
    again = answer(triage(*words, "--replay", "t.jsonl"))
    assert again["produced_by"] == "llm:openai:scripted (replayed from t.jsonl)"
    assert again["missing"][-1] == "the answers of the model were replayed from t.jsonl; no model was asked"
    changes = {"timing": 0, "usage": 0, "produced_by": "", "missing": again["missing"][:-1]}
    assert without_replay({**again, **changes}) == {**first, **changes, "missing": first["missing"]}


def without_replay(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document).replace(" (replayed from t.jsonl)", ""))
    return found


def test_a_replay_is_recorded_only_if_that_is_asked_for(triage: Run, job: Path) -> None:
    words = ("diagnose", "job.out", "--format", "json", "--no-critic")
    with OpenAIServer([as_json(SAID)]) as server:
        first = answer(triage(*words, "--trace", "t.jsonl", **server.env()))
    assert first["incident"] == 1
    again = answer(triage(*words, "--replay", "t.jsonl"))
    assert again["incident"] is None
    assert again["failure_type"] == first["failure_type"]
    assert answer(triage(*words, "--replay", "t.jsonl", "--record"))["incident"] == 1


def test_a_trace_that_was_edited_is_one_line(triage: Run, job: Path, tmp_path: Path) -> None:
    words = ("diagnose", "job.out", "--no-record", "--no-critic")
    with OpenAIServer([as_json(SAID)]) as server:
        triage(*words, "--trace", "t.jsonl", **server.env())
    trace = tmp_path / "t.jsonl"
    trace.write_text(trace.read_text().replace("did not hand on its token.", "ate its token."))
    done = triage(*words, "--replay", "t.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "t.jsonl:1: the answer is not the one that was recorded" in done.stderr
    assert done.stderr.count("\n") == 1


def test_answers_vote_and_are_attacked_as_the_options_say(triage: Run, job: Path) -> None:
    words = ("diagnose", "job.out", "--format", "json", "--no-record")
    with OpenAIServer([as_json(SAID)] * 2) as server:
        found = answer(triage(*words, "--samples", "2", "--no-critic", **server.env(), TRIAGE_LLM_STEPS="0"))
    assert found["agent"]["samples"] == ["collective-mismatch"] * 2
    assert "objections" not in found["agent"]
    assert not any(r.tools for r in server.requests)
    done = triage(*words, "--samples", "0")
    assert (done.returncode, "llm_samples is '0'" in done.stderr) == (2, True)
    done = triage(*words, "--samples", "11")
    assert (done.returncode, "llm_samples is '11'" in done.stderr, "up to 10" in done.stderr) == (2, True, True)
    assert answer(triage(*words))["agent"] is None


def test_a_limit_of_cost_without_prices_is_said_to_bound_nothing(triage: Run, job: Path) -> None:
    words = ("diagnose", "job.out", "--format", "json", "--no-record", "--no-critic")
    limit = {"TRIAGE_LLM_MOST_COST": "1", "TRIAGE_LLM_PRICE_IN": "2"}
    with OpenAIServer([as_json(SAID)] * 2) as server:
        found = answer(triage(*words, **server.env(), **limit))
        priced = answer(triage(*words, **server.env(), **limit, TRIAGE_LLM_PRICE_OUT="8"))
    said = "TRIAGE_LLM_MOST_COST bounds nothing without TRIAGE_LLM_PRICE_IN and TRIAGE_LLM_PRICE_OUT"
    assert said in found["missing"]
    assert said not in priced["missing"]
    assert priced["usage"]["cost"] > 0


def test_a_model_that_is_down_is_a_line_in_missing(triage: Run, job: Path) -> None:
    with OpenAIServer([status(401)]) as server:
        done = triage("diagnose", "job.out", "--format", "json", "--no-record", **server.env())
    assert answer(done)["produced_by"] == "rules"
    assert "gave no answer" in answer(done)["missing"][-1]
    offline = triage("diagnose", "job.out", "--format", "json", "--no-record", **server.env(), TRIAGE_OFFLINE="1")
    assert "TRIAGE_OFFLINE=1 bars every connection" in answer(offline)["missing"][-1]


def test_the_prompt_can_be_printed_for_a_model_of_ones_own(triage: Run, job: Path) -> None:
    done = triage("diagnose", "job.out", "--print-prompt")
    assert done.returncode == 0
    assert "job.out:41 ring 7 lost its token" in done.stdout
    assert "collective-mismatch:" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--trace", "t"), "--trace needs a model"),
        (("--trace", "t", "--replay", "t"), "exclude each other"),
        (("--replay", "nothing.jsonl"), "nothing.jsonl"),
        (("--llm", "gpt-x"), "the model 'gpt-x' is not known"),
    ],
)
def test_what_cannot_be_is_one_line(triage: Run, job: Path, words: tuple[str, ...], says: str) -> None:
    done = triage("diagnose", "job.out", "--no-record", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_where_the_log_goes_is_said_before_it_goes_when_no_setting_names_the_server(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*without: str, **more: str) -> str:
        with OpenAIServer([as_json(SAID)]) as server:
            env = {name.removeprefix("TRIAGE_").lower(): value for name, value in server.env().items()}
            env = {name: value for name, value in env.items() if name not in without} | more
            settings = config.load(env)
            opened = wiring.model(settings)
            assert opened is not None
            asked = Private(server.model(), unsaid=opened.unsaid)  # the same, but no line leaves this machine
            parts = wiring.parts(settings, lambda _text: None, record=False, similar=False)
            explain = asking.explain(asked, settings, parts.knowledge.matcher, parts.tell)
            pipeline.diagnose([str(job)], replace(parts, explain=explain))
        return capsys.readouterr().err

    assert told("llm_base_url").startswith("triage: the log goes to https://api.openai.com/v1, as TRIAGE_LLM_BASE_URL ")
    assert told() == ""
    assert told("llm_base_url", "llm_api_key") == ""
