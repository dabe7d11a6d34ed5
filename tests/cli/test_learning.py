"""`triage rules learn` and `triage compress --learn` with a model on a real HTTP server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.openai_server import Answer, Asked, OpenAIServer, as_json, status
from triage.cli import compress, rules
from triage.errors import UsageError
from triage.store.rules import RuleStore

STEP = r"^ring exchange \d+ of \d+ took \d+\.\d+ ms$"


def log(path: Path, host: str = "gpu-17", day: int = 3, start: int = 0) -> Path:
    """A job's log as a resubmission writes it: other nodes, another day, other numbers."""
    lines = [f"+ srun python -u /home/ada/fuse.py --config a.yaml --node {host}"]
    lines += [
        f"2026-03-{day:02d} 02:{n // 60:02d}:{n % 60:02d} [INFO] ring exchange {n + start} of 900 took {n % 7}.{n:03d} ms"
        for n in range(300)
    ]
    lines += ["2026-03-03 02:09:00 [ERROR] ring exchange stalled on gpu-18", "RuntimeError: peer 3 is gone"]
    path.write_text("\n".join(lines) + "\n")
    return path


def writer(asked: Asked) -> str:
    if "<rules>" in asked.text:
        return json.dumps({"routine": [1]})
    number = next(
        n for n in range(1, 99) if f"\n{n}: " in asked.text and "ring exchange" in asked.text.split(f"\n{n}: ")[1]
    )
    return json.dumps({"rules": [{"pattern": STEP, "lines": [number], "kind": "timing"}]})


def run(app, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, words, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert (result.return_value or result.exit_code) == code, result.output
    return result


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    with OpenAIServer(writer) as running:
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        yield running


def taken(result: Result) -> dict[str, int]:
    return {entry["rule"]: entry["lines"] for entry in json.loads(result.stdout)["compression"]["dropped"]}


def stored() -> list[tuple[str, str, str]]:
    with RuleStore.open(f"sqlite:///{os.environ['TRIAGE_HOME']}/triage.db") as store:
        return [(r.rule.pattern, r.state, r.origin.by) for r in store.list()]


def test_a_rule_is_learned_once_and_serves_the_resubmission_with_no_call(tmp_path: Path, server: OpenAIServer) -> None:
    first = run(compress.app, str(log(tmp_path / "a.out")), "--format", "json")
    calls = len(server.requests)
    assert calls >= 4  # three answers and a second look
    assert (STEP, "active", "model") in stored()
    assert taken(first)["learned.1"] == 299  # the last one stays in sight
    assert any("stalled on gpu-18" in line["text"] for line in json.loads(first.stdout)["lines"])

    again = run(compress.app, str(log(tmp_path / "b.out", host="gpu-99", day=9, start=500)), "--format", "json")
    assert len(server.requests) == calls
    assert taken(again)["learned.1"] == 299  # the last one stays in sight


def test_no_learn_asks_nothing(tmp_path: Path, server: OpenAIServer) -> None:
    run(compress.app, str(log(tmp_path / "a.out")), "--no-learn")
    run(compress.app, str(log(tmp_path / "a.out")), "--llm", "off")
    assert server.requests == []


def test_rules_learn_prints_what_it_adopted_and_a_dry_run_keeps_nothing(tmp_path: Path, server: OpenAIServer) -> None:
    path = str(log(tmp_path / "a.out"))
    dry = run(rules.app, "learn", path, "--way", "write", "--answers", "1", "--dry-run")
    assert STEP[:20] in dry.stdout
    assert "2 calls (way: write)" in dry.stderr
    assert "1 would be in force" in dry.stderr
    assert stored() == []
    real = json.loads(run(rules.app, "learn", path, "--way", "write", "--answers", "1", "--format", "json").stdout)
    assert (real["way"], real["usage"]["calls"]) == ("write", 2)
    assert (real["rules"][0]["pattern"], real["rules"][0]["state"]) == (STEP, "active")


def test_without_a_model_templates_are_mined(tmp_path: Path) -> None:
    result = run(rules.app, "learn", str(log(tmp_path / "a.out")))
    assert "templates mined, no model asked" in result.stderr
    assert [state for _, state, by in stored() if by == "mined"] == ["shadow"]  # nobody has called it routine
    with pytest.raises(UsageError, match="needs a model"):
        run(rules.app, "learn", "x", "--way", "write")


def test_a_model_that_is_down_costs_a_note_and_not_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer([as_json({})]) as gone:
        address = gone.env()
    for name, value in address.items():
        monkeypatch.setenv(name, value)
    result = run(compress.app, str(log(tmp_path / "a.out")))
    assert "was not asked to the end" in result.stderr
    assert "RuntimeError: peer 3 is gone" in result.stdout


@pytest.mark.parametrize("bad", [status(401), status(500), "Sure! I will do that.", "[]"])
def test_an_outage_is_not_taken_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: Answer | str
) -> None:
    """Nothing is remembered, and the next time the model is asked as if for the first."""
    path = str(log(tmp_path / "a.out"))
    with OpenAIServer(lambda _asked: bad) as server:
        for name, value in server.env().items():
            monkeypatch.setenv(name, value)
        result = run(rules.app, "learn", path, code=1)
    assert stored() == []
    assert "nothing was learned" in result.stderr
    with OpenAIServer(writer) as server:
        for name, value in server.env().items():
            monkeypatch.setenv(name, value)
        run(rules.app, "learn", path)
    assert (STEP, "active", "model") in stored()


def test_a_database_that_is_broken_does_not_hide_the_log(tmp_path: Path, server: OpenAIServer) -> None:
    (Path(os.environ["TRIAGE_HOME"]) / "triage.db").write_bytes(b"no database at all, but text" * 400)
    result = run(compress.app, str(log(tmp_path / "a.out")))
    assert "nothing was learned" in result.stderr
    assert "RuntimeError: peer 3 is gone" in result.stdout


def test_stdin_cannot_be_learned_from(server: OpenAIServer) -> None:
    with pytest.raises(UsageError, match="stdin"):
        run(rules.app, "learn", "-")
    with pytest.raises(UsageError, match="way"):
        run(rules.app, "learn", "x", "--way", "guess")


def test_a_shadow_rule_is_put_in_force_by_three_runs_in_which_it_hid_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsure(asked: Asked) -> str:
        return "{}" if "<rules>" in asked.text else writer(asked)

    with OpenAIServer(unsure) as server:
        for name, value in server.env().items():
            monkeypatch.setenv(name, value)
        run(compress.app, str(log(tmp_path / "0.out")))
    monkeypatch.setenv("TRIAGE_LLM", "off")
    assert (STEP, "shadow", "model") in stored()
    for at in (1, 2):
        result = run(compress.app, str(log(tmp_path / f"{at}.out", day=at, start=at)), "--format", "json")
        assert "learned.1" not in taken(result)
    assert (STEP, "active", "model") in stored()
    assert (
        taken(run(compress.app, str(log(tmp_path / "3.out")), "--format", "json"))["learned.1"] == 299
    )  # the last one stays in sight
