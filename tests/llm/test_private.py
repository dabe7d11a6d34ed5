"""What a server of the OpenAI protocol gets to see of people, and what comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.openai_server import Answer, Asked, OpenAIServer
from triage.llm.errors import ModelCutError
from triage.llm.private import Private
from triage.llm.trace import Recorder, Replayer
from triage.llm.values import Message, OnText, Reply, Request, ToolCall, question

LOG = "File /home/alice/run/train.py on gpu-17 (10.0.0.7): mail bob@corp.example"


def echo(asked: Asked) -> str:
    return json.dumps({"quote": asked.text})


def test_people_are_not_sent_and_come_back_in_the_answer() -> None:
    with OpenAIServer(echo) as server:
        reply = Private(server.model(), ["gpu-17"]).ask(question(LOG))
        (asked,) = server.requests
    assert asked.text == "File /home/<user-1>/run/train.py on gpu-17 (<ip-1>): mail <email-1>"
    assert json.loads(reply.text) == {"quote": LOG}


def test_tools_are_asked_with_the_real_things() -> None:
    said = ToolCall("call_1", "search", '{"words": "alice"}')
    result = Message("tool", "12 /home/alice/x", call_id="call_1")
    with OpenAIServer(lambda asked: Answer("", tool_calls=(("search", '{"words": "/home/<user-1>"}'),))) as server:
        private = Private(server.model())
        reply = private.ask(question(LOG))
        private.ask(Request((Message("user", LOG), Message("assistant", "", (said,)), result)))
        sent = json.dumps(server.requests[-1].body)
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"words": "/home/alice"}]
    assert "/home/alice" not in sent
    assert "12 /home/<user-1>/x" in sent


def test_a_cut_answer_comes_back_too() -> None:
    answer = Answer("it was <user-1> and <us", finish="length")
    with OpenAIServer([answer]) as server, pytest.raises(ModelCutError) as cut:
        Private(server.model()).ask(question(LOG))
    assert cut.value.reply.text == "it was alice and <us"


class Dripping:
    """Tells its answer a character at a time."""

    name = "dripping"

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        said = "by <user-1> < 3 <us"
        for char in said if on_text else "":
            on_text(char)
        return Reply(said)


def test_text_that_is_told_as_it_comes_is_whole() -> None:
    told: list[str] = []
    reply = Private(Dripping()).ask(question(LOG), told.append)
    assert "".join(told) == reply.text == "by alice < 3 <us"


def test_a_trace_holds_what_was_sent_and_a_replay_answers_alike(tmp_path: Path) -> None:
    trace = tmp_path / "t"
    with OpenAIServer(echo) as server:
        first = Private(Recorder(server.model(), trace)).ask(question(LOG))
    assert "alice" not in trace.read_text()
    assert trace.stat().st_mode & 0o777 == 0o600
    assert Private(Replayer(trace)).ask(question(LOG)).text == first.text


def test_a_secret_does_not_come_back_with_an_address() -> None:
    with OpenAIServer(echo) as server:
        reply = Private(server.model()).ask(question("psql postgresql://bob:hunter22@db.corp.example/x"))
    assert "hunter22" not in reply.text


def test_another_job_begins_anew() -> None:
    with OpenAIServer(echo) as server:
        private = Private(server.model())
        private.ask(question("/home/alice"))
        private.for_job(()).ask(question("/home/bob"))
        assert server.requests[-1].text == "/home/<user-1>"
