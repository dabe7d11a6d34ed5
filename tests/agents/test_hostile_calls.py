"""What a hostile or broken model sends, on a real HTTP server: it is told so in words, and the diagnosis goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agents.jobs import asked, calls, job, said
from triage.agents.case import Case
from triage.agents.tools.kit import Found, Toolbox, tool
from triage.llm.values import ToolCall


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.chdir(tmp_path)
    return job(tmp_path)


HOSTILE_CALLS = [
    (("read_lines", '{"file": "job.log", "line": -1000}'), "line must be from 0 to"),
    (("read_lines", '{"file": "job.log", "line": 1, "around": -1000000000000000000000}'), "around must be from 0 to"),
    (("read_lines", '{"file": "job.log", "line": 1e30}'), "line must be from 0 to"),
    (("search_log", "[" * 15_000), "the arguments are no JSON object"),
    (("search_log", '{"pattern": ' * 1500), "the arguments are no JSON object"),
    (("search_log", f'{{"pattern": {"9" * 6000}}}'), "the arguments are no JSON object"),
    (("search_log", f'{{"pattern": "{"x" * 200_000}"}}'), "the arguments are longer than"),
    (("search_log", r'{"pattern": "\ud800"}'), "no line matches"),
    (("search_incidents", r'{"words": "\udfff lost"}'), "none"),
    (("search_runbooks", r'{"words": "\ud800"}'), "no runbook has such words"),
    (("read_lines", r'{"file": "\ud800", "line": 1}'), "no file is called"),
    (("look_up", r'{"kind": "line", "what": "\ud800"}'), "no signature knows such a line"),
]


@pytest.mark.parametrize(("call", "says"), HOSTILE_CALLS)
def test_a_hostile_call_is_answered_in_words(ring: Case, call: tuple[str, str], says: str) -> None:
    result, server = asked(ring, [calls(call, call), said()])
    assert says in server.requests[1].messages[-2]["content"]
    assert "you made this very call before" in server.requests[1].messages[-1]["content"]
    assert result.failure_type == "runtime-error"


def test_a_tool_that_breaks_is_said_to_the_model(ring: Case) -> None:
    def broken(_asked: object) -> Found:
        raise ZeroDivisionError

    box = Toolbox([tool("odd", "breaks", broken)], lambda _lines, _names: None)
    assert "not done: the tool failed (ZeroDivisionError)" in box.use(ToolCall("c", "odd", "{}"))
    assert box.uses[0].problem == "the tool failed (ZeroDivisionError)"


@pytest.mark.parametrize("number", ["9" * 6000, "-" + "9" * 6000, "1e9999", "0." + "1" * 6000])
def test_a_number_of_thousands_of_digits_ends_nothing(ring: Case, number: str) -> None:
    text = json.dumps(said(ranks=["HERE"])).replace('"HERE"', number)
    result, _ = asked(ring, [text, text])
    assert result.root_cause
    assert result.outcome == ring.rules.outcome
