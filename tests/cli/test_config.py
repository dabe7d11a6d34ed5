"""`triage config`: the settings of the model, and whether it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.openai_server import Answer, OpenAIServer, status


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("filled")


@pytest.fixture(autouse=True)
def _one_home(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all tests here: filling its index takes seconds."""
    monkeypatch.setenv("TRIAGE_HOME", str(filled))


def test_check_asks_the_model(triage: Run) -> None:
    with OpenAIServer(["ok"]) as server:
        done = triage("config", "check", **server.env())
    assert done.returncode == 0, done.stderr
    assert "\nmodel      ok (openai:scripted, " in done.stdout
    assert server.requests[0].body["max_tokens"] == 16


def test_a_model_that_talks_too_much_is_there_all_the_same(triage: Run) -> None:
    with OpenAIServer([Answer("I would be glad to", "length")]) as server:
        assert triage("config", "check", **server.env()).returncode == 0


def test_a_model_that_does_not_answer_is_said_with_what_to_do(triage: Run) -> None:
    with OpenAIServer([status(401, "wrong key")]) as server:
        env = server.env()
        done = triage("config", "check", **env)
    assert done.returncode == 2
    assert "refused the key (HTTP 401): wrong key; look at TRIAGE_LLM_API_KEY" in done.stdout
    assert env["TRIAGE_LLM_API_KEY"] not in done.stdout + done.stderr


def test_offline_and_off_ask_nothing(triage: Run) -> None:
    with OpenAIServer(["never"]) as server:
        off = triage("config", "check", **{**server.env(), "TRIAGE_LLM": "off"})
        offline = triage("config", "check", **server.env(), TRIAGE_OFFLINE="1")
    assert "model      off" in off.stdout
    assert (off.returncode, offline.returncode) == (0, 2)
    assert "TRIAGE_OFFLINE=1 bars every connection" in offline.stdout
    assert server.requests == []


def test_show_tells_the_settings_but_not_the_key(triage: Run) -> None:
    done = triage("config", "show", TRIAGE_LLM_API_KEY="test-key-0123456789", TRIAGE_LLM_PRICE_IN="2.5")
    assert "test-key" not in done.stdout
    assert "llm_price_in  2.5\n" in done.stdout
    assert "llm_price_out \n" in done.stdout


def test_a_price_that_is_no_number_is_refused(triage: Run) -> None:
    done = triage("config", "show", TRIAGE_LLM_PRICE_IN="cheap")
    assert (done.returncode, done.stderr) == (
        2,
        "triage: environment: llm_price_in is 'cheap'; use a number that is not negative, such as 2.5\n",
    )
