"""Tools and streams over the OpenAI protocol, against a real server that answers as told."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.openai_server import Answer, OpenAIServer, status
from triage.errors import ModelError
from triage.llm import errors
from triage.llm.limits import Limited, Limits, Prices
from triage.llm.trace import Recorder, Replayer
from triage.llm.values import Message, Request, ToolCall, ToolSpec, question

SEARCH = ToolSpec("search", "Looks for words.", {"type": "object", "properties": {"words": {"type": "string"}}})
HELLO = question("hello")


def with_tools(*more: Message, may_call: bool = True) -> Request:
    return Request((Message("user", "why?"), *more), tools=(SEARCH,), may_call=may_call)


CALLS = (ToolCall("call_1", "search", '{"words": "nccl"}'), ToolCall("call_2", "search", '{"words": "xid"}'))
TURN = (
    Message("assistant", "", CALLS),
    Message("tool", "2 lines", call_id="call_1"),
    Message("tool", "no line", call_id="call_2"),
)


# ------------------------------------------------------------------------------------------------ tools
@pytest.mark.parametrize("streamed", [False, True])
def test_tools_go_along_and_several_calls_come_back(streamed: bool) -> None:
    told: list[str] = []
    answer = Answer("I look.", "tool_calls", tool_calls=tuple((c.name, c.arguments) for c in CALLS))
    with OpenAIServer([answer]) as server:
        reply = server.model().ask(with_tools(), told.append if streamed else None)
    assert (reply.text, reply.finish, reply.tool_calls) == ("I look.", "tool_calls", CALLS)
    (asked,) = server.requests
    assert asked.tools == ["search"]
    assert asked.body["tools"][0]["function"]["parameters"]["properties"] == {"words": {"type": "string"}}
    assert "".join(told) == ("I look." if streamed else "")


def test_what_tools_said_goes_back_under_the_calls_ids() -> None:
    with OpenAIServer(["because"]) as server:
        assert server.model().ask(with_tools(*TURN)).text == "because"
    _, turn, first, second = server.requests[0].messages
    assert [(c["id"], c["function"]["arguments"]) for c in turn["tool_calls"]] == [
        ("call_1", '{"words": "nccl"}'),
        ("call_2", '{"words": "xid"}'),
    ]
    assert (first["role"], first["tool_call_id"], first["content"]) == ("tool", "call_1", "2 lines")
    assert second["tool_call_id"] == "call_2"


def test_arguments_that_are_no_json_come_back_and_go_back_as_they_were() -> None:
    bad = Answer("", "tool_calls", tool_calls=(("search", '{"words": nccl'),))
    with OpenAIServer([bad, "well"]) as server:
        model = server.model()
        (call,) = model.ask(with_tools()).tool_calls
        model.ask(with_tools(Message("assistant", "", (call,)), Message("tool", "no JSON", call_id=call.id)))
    assert call.arguments == '{"words": nccl'
    assert server.requests[1].messages[1]["tool_calls"][0]["function"]["arguments"] == '{"words": nccl'


def test_the_last_question_names_the_tools_but_lets_none_be_called() -> None:
    with OpenAIServer(["so it is"]) as server:
        server.model().ask(with_tools(*TURN, may_call=False))
    assert server.requests[0].tools == []
    assert server.requests[0].body["tools"]


@pytest.mark.parametrize(
    "answer",
    [
        status(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        status(400, "registry.ollama.ai/library/small does not support tools"),
        status(500, "tools param requires --jinja flag"),
        status(404, "No endpoints found that support tool use"),
        status(422, "Unrecognized request argument supplied: tools"),
    ],
)
def test_a_server_that_takes_no_tools_is_told_apart(answer: Answer) -> None:
    with OpenAIServer([answer, answer]) as server, pytest.raises(errors.ModelToolsError, match="takes no tools"):
        server.model().ask(with_tools())
    assert len(server.requests) == 1


def test_secrets_in_what_tools_are_asked_and_say_stay_here() -> None:
    secret = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz"
    call = ToolCall("call_1", "search", json.dumps({"words": secret}))
    with OpenAIServer([Answer("", "tool_calls", tool_calls=(("search", call.arguments),))]) as server:
        reply = server.model().ask(
            with_tools(Message("assistant", "", (call,)), Message("tool", secret, call_id="call_1"))
        )
    assert secret not in json.dumps(server.requests[0].body)
    assert secret not in reply.tool_calls[0].arguments


# ------------------------------------------------------------------------------------------------ streams
def test_a_stream_is_told_piece_by_piece_and_counted() -> None:
    told: list[tuple[str, float]] = []
    began = time.monotonic()
    with OpenAIServer([Answer(pieces=("the ", "disk ", "is full"), drip=0.1, usage=(700, 5))]) as server:
        reply = server.model().ask(HELLO, lambda text: told.append((text, time.monotonic() - began)))
    assert [text for text, _ in told] == ["the ", "disk ", "is full"]
    assert told[-1][1] - told[0][1] > 0.15  # as they came, not at the end
    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.finish) == ("the disk is full", 700, 5, "stop")
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def test_a_server_that_counts_no_tokens_of_a_stream_is_asked_without() -> None:
    told: list[str] = []
    with OpenAIServer([status(400, "Unknown parameter: 'stream_options'"), "x" * 40]) as server:
        reply = server.model().ask(question("y" * 400), told.append)
    assert (reply.tokens_in, reply.tokens_out) == (100, 10)
    assert "stream_options" not in server.requests[1].body


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer("one two three", cut=3), errors.ModelDownError, "broke off in the middle"),
        (Answer("one two three", garbage="{no json"), errors.ModelNonsenseError, "no answer of the OpenAI protocol"),
        (
            Answer("one two three", garbage='{"error": {"message": "the GPU is gone", "code": 500}}'),
            errors.ModelDownError,
            "failed in the middle of its answer: the GPU is gone",
        ),
        (Answer(refusal="I cannot help"), errors.ModelDeclinedError, "declined to answer: I cannot help"),
        (Answer("one two", "length", usage=(9, 2)), errors.ModelCutError, "cut after 2 tokens"),
        (Answer(raw="<html>hello</html>"), errors.ModelNonsenseError, "no answer of the OpenAI protocol"),
        (status(401, "no"), errors.ModelRefusedError, "TRIAGE_LLM_API_KEY"),
    ],
)
def test_a_stream_that_goes_wrong_has_its_kind(answer: Answer, kind: type[ModelError], says: str) -> None:
    with OpenAIServer([answer] * 3) as server, pytest.raises(ModelError) as caught:
        server.model().ask(HELLO, lambda _text: None)
    assert type(caught.value) is kind
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stream_that_broke_is_not_begun_again_under_who_reads_it() -> None:
    told: list[str] = []
    with OpenAIServer([Answer("one two three", cut=3), "never"]) as server, pytest.raises(errors.ModelDownError):
        server.model().ask(HELLO, told.append)
    assert (told, len(server.requests)) == (["one ", "two "], 1)
    with OpenAIServer([Answer("one", cut=1), "again"]) as server:
        assert server.model().ask(HELLO, told.append).text == "again"


def test_a_stream_that_stalls_ends_at_the_deadline_and_the_model_can_be_asked_again() -> None:
    with OpenAIServer(["warm", Answer("word " * 100, drip=0.2), "quick"]) as server:
        model = server.model()
        model.ask(HELLO)
        began = time.monotonic()
        told: list[str] = []
        with pytest.raises(errors.ModelSlowError):
            model.ask(question("x", deadline=1), told.append)
        assert time.monotonic() - began < 3
        assert told  # it was seen to be at work
        assert model.ask(HELLO).text == "quick"


def test_what_the_reader_of_a_stream_raises_is_its_own() -> None:
    def gone(_text: str) -> None:
        raise BrokenPipeError

    with OpenAIServer(["one two", "three"]) as server, pytest.raises(BrokenPipeError):
        server.model().ask(HELLO, gone)


# ------------------------------------------------------------------------------------------------ trace, limits
def test_a_trace_with_tools_and_streams_answers_in_place_of_the_model(tmp_path: Path) -> None:
    script = [
        Answer("", "tool_calls", tool_calls=(("search", "{}"),)),
        "by a stream",
        status(500, "tools need --jinja"),
    ]
    with OpenAIServer(script) as server:
        model = Recorder(server.model(), tmp_path / "t")
        first = [model.ask(with_tools()), model.ask(with_tools(*TURN), lambda _text: None)]
        with pytest.raises(errors.ModelToolsError):
            model.ask(with_tools(may_call=False))
    again, told = Replayer(tmp_path / "t"), list[str]()
    assert [again.ask(with_tools()), again.ask(with_tools(*TURN), told.append)] == first
    assert told == ["by a stream"]
    with pytest.raises(errors.ModelToolsError):
        again.ask(with_tools(may_call=False))
    with pytest.raises(errors.ReplayError):
        again.ask(Request((Message("user", "why?"),)))


def test_the_room_that_a_server_tells_is_kept(tmp_path: Path) -> None:
    told = [
        status(400, "This model's maximum context length is 8192 tokens. However, you requested 9000", kind="context_length_exceeded"),
        Answer(status=400, raw='{"error": {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 4096}}'),
        status(400, "prompt is too long"),
    ]  # fmt: skip
    rooms = []
    with OpenAIServer(told) as server:
        model = Recorder(server.model(), tmp_path / "t")
        for n in range(3):
            with pytest.raises(errors.ModelTooLongError) as caught:
                model.ask(question(str(n)))
            rooms.append(caught.value.room)
    with pytest.raises(errors.ModelTooLongError) as caught:
        Replayer(tmp_path / "t").ask(question("1"))
    assert (rooms, caught.value.room) == ([8192, 4096, None], 4096)


def test_cost_is_a_limit_where_prices_are_known() -> None:
    with OpenAIServer([Answer("a", usage=(1_000_000, 0))] * 3) as server:
        model = Limited(server.model(), Limits(cost=3.0), Prices(2.0, 8.0))
        model.ask(HELLO)
        assert (model.cost, model.nearly(0.5), model.nearly(0.9)) == (2.0, "cost", "")
        model.ask(HELLO)
        with pytest.raises(errors.ModelBudgetError, match="a cost of 3"):
            model.ask(HELLO)
    assert Limits(calls=4, tokens=10).times(3) == Limits(calls=12, tokens=30)
