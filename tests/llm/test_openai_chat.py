"""The model behind the OpenAI protocol, against a real server that answers as told."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tests.conftest import REPO
from tests.openai_server import Answer, OpenAIServer, as_json, status
from triage.errors import ModelError, UsageError
from triage.llm import errors
from triage.llm.open import open_model
from triage.llm.values import Message, Request, ToolCall, question

KEY = "test-key-0123456789"
HELLO = question("hello")


def test_a_question_reaches_the_server_and_its_answer_comes_back() -> None:
    with OpenAIServer([Answer("the cause is a full disk", usage=(812, 9))]) as server:
        reply = server.model("openai:org/small:7b").ask(
            Request((Message("system", "be brief"), Message("user", "why?"), Message("assistant", "hm")), max_tokens=50)
        )
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out) == ("the cause is a full disk", "stop", 812, 9)
    assert reply.model == "org/small:7b"
    assert 0 < reply.seconds < 5
    (asked,) = server.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert [(m["role"], m["content"]) for m in asked.messages] == [
        ("system", "be brief"),
        ("user", "why?"),
        ("assistant", "hm"),
    ]
    assert {k: v for k, v in asked.body.items() if k != "messages"} == {
        "model": "org/small:7b",
        "max_tokens": 50,
        "temperature": 0.0,
        "stream": False,
    }


def test_a_schema_goes_along() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    with OpenAIServer([as_json({"a": 1})]) as server:
        assert server.model().ask(question("x", schema=schema)).text == '{"a": 1}'
    told = server.requests[0].body["response_format"]
    assert (told["type"], told["json_schema"]["schema"]) == ("json_schema", schema)


def test_without_a_count_tokens_are_estimated_from_below() -> None:
    with OpenAIServer([Answer("x" * 40, usage=None)]) as server:
        reply = server.model().ask(question("y" * 400))
    assert (reply.tokens_in, reply.tokens_out) == (100, 10)


def test_tool_calls_come_back_as_the_model_wrote_them() -> None:
    with OpenAIServer(
        [Answer("", "tool_calls", tool_calls=(("search", '{"words": "nccl"}'), ("bad", '{"a"')))]
    ) as server:
        reply = server.model().ask(HELLO)
    assert reply.tool_calls == (ToolCall("call_1", "search", '{"words": "nccl"}'), ToolCall("call_2", "bad", '{"a"'))


# ------------------------------------------------------------------------------------------------ what goes wrong
@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (status(401, "Incorrect API key provided"), errors.ModelRefusedError, "TRIAGE_LLM_API_KEY"),
        (status(403, "no access"), errors.ModelRefusedError, "no access"),
        (status(429, "You exceeded your current quota", kind="insufficient_quota"), errors.ModelRefusedError, "quota"),
        (
            status(400, "This model's maximum context length is 8192 tokens", kind="context_length_exceeded"),
            errors.ModelTooLongError,
            "8192",
        ),
        (status(400, "the request exceeds the available context size"), errors.ModelTooLongError, "longer context"),
        (status(413, "too large"), errors.ModelTooLongError, "too large"),
        (status(404, "The model `x` does not exist"), errors.ModelRequestError, "does not exist"),
        (status(422, "bad messages"), errors.ModelRequestError, "bad messages"),
        (Answer(status=404, raw="<html>no such page</html>"), errors.ModelRequestError, "no such page"),
        (Answer(raw="<html>welcome</html>"), errors.ModelNonsenseError, "/v1"),
        (Answer(raw=""), errors.ModelNonsenseError, "no answer of the OpenAI protocol"),
        (Answer(raw='{"choices": null}'), errors.ModelNonsenseError, "no answer of the OpenAI protocol"),
        (Answer(raw='{"choices": []}'), errors.ModelNonsenseError, "no answer of the OpenAI protocol"),
        (Answer(raw='{"choices": [{"message": null}]}'), errors.ModelNonsenseError, "no answer of the OpenAI protocol"),
        (Answer(refusal="I cannot help with that"), errors.ModelDeclinedError, "I cannot help with that"),
        (Answer("", "content_filter"), errors.ModelDeclinedError, "content filter"),
    ],
)
def test_each_failure_has_its_kind_and_is_not_repeated(answer: Answer, kind: type[ModelError], says: str) -> None:
    with OpenAIServer([answer, "not asked for"]) as server, pytest.raises(ModelError) as caught:
        server.model().ask(HELLO)
    assert type(caught.value) is kind
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1


def test_an_answer_that_was_cut_comes_with_the_error() -> None:
    with (
        OpenAIServer([Answer('[{"a": 1}, {"a"', "length", usage=(70, 16))]) as server,
        pytest.raises(errors.ModelCutError, match="cut after 16 tokens") as caught,
    ):
        server.model().ask(HELLO)
    assert (caught.value.reply.text, caught.value.reply.tokens_in) == ('[{"a": 1}, {"a"', 70)


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    with OpenAIServer([status(429, "busy", retry_after=0.4), "now"]) as server:
        assert server.model().ask(HELLO).text == "now"
    first, second = server.requests
    assert 0.4 <= second.at - first.at < 2
    assert first.body == second.body


def test_a_date_to_come_back_at_is_understood_and_not_waited_for_beyond_the_deadline() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    with OpenAIServer([status(429, "busy", retry_after=later), "too late"]) as server:
        started = time.monotonic()
        with pytest.raises(errors.ModelBusyError) as caught:
            server.model().ask(question("x", deadline=20))
    assert time.monotonic() - started < 15
    assert caught.value.retry_after is not None
    assert 80 < caught.value.retry_after <= 90
    assert len(server.requests) == 1


def test_a_failing_server_is_asked_three_times() -> None:
    with (
        OpenAIServer([status(503, "loading", retry_after=0)] * 3 + ["never"]) as server,
        pytest.raises(errors.ModelDownError, match=r"HTTP 503.*loading"),
    ):
        server.model().ask(HELLO)
    assert len(server.requests) == 3


def test_a_connection_that_breaks_is_tried_again() -> None:
    with OpenAIServer([Answer(hang_up=True), "back"]) as server:
        assert server.model().ask(HELLO).text == "back"


def test_a_server_that_is_not_there_is_said_so() -> None:
    with OpenAIServer() as server:
        pass
    with pytest.raises(errors.ModelDownError, match=r"cannot be reached.*refused.*TRIAGE_LLM_BASE_URL"):
        server.model().ask(question("x", deadline=1))


@pytest.mark.parametrize("answer", [Answer("x", wait=30), Answer("x" * 1000, drip=0.05)], ids=["silent", "dripping"])
def test_the_deadline_holds_and_the_model_can_be_asked_again(answer: Answer) -> None:
    with OpenAIServer([answer, "quick"]) as server:
        model = server.model()
        started = time.monotonic()
        with pytest.raises(errors.ModelSlowError, match="TRIAGE_LLM_TIMEOUT"):
            model.ask(question("x", deadline=0.5))
        assert time.monotonic() - started < 10  # the first call imports the client as well
        assert model.ask(HELLO).text == "quick"


def test_the_settings_cap_each_call() -> None:
    with OpenAIServer(["ok", Answer("x", wait=30)]) as server:
        model = server.model(most_tokens=100, most_seconds=0.5)
        model.ask(question("x", max_tokens=5000))
        assert server.requests[0].body["max_tokens"] == 100
        with pytest.raises(errors.ModelSlowError):
            model.ask(question("x", deadline=60))


def test_what_a_server_does_not_take_is_left_out_from_then_on() -> None:
    no_limit = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    no_heat = "Unsupported value: 'temperature' does not support 0 with this model."
    with OpenAIServer([status(400, no_limit), status(400, no_heat), "one", "two"]) as server:
        model = server.model()
        assert [model.ask(HELLO).text, model.ask(HELLO).text] == ["one", "two"]
    assert [sorted(set(r.body) - {"model", "messages", "stream"}) for r in server.requests] == [
        ["max_tokens", "temperature"],
        ["max_completion_tokens", "temperature"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]


def test_a_server_without_schemas_is_asked_without() -> None:
    unknown = status(400, "response_format of type json_schema is not supported")
    with OpenAIServer([unknown, "{}"]) as server:
        assert server.model().ask(question("x", schema={"type": "object"})).text == "{}"
    assert "response_format" not in server.requests[1].body


def test_a_limit_that_is_too_high_is_no_unknown_limit() -> None:
    with (
        OpenAIServer([status(400, "max_tokens is too large: 9000")] * 4) as server,
        pytest.raises(errors.ModelRequestError, match="too large"),
    ):
        server.model().ask(HELLO)
    assert len(server.requests) == 1


# ------------------------------------------------------------------------------------------------ what must not get out
def test_secrets_stay_here(caplog: pytest.LogCaptureFixture) -> None:
    secret = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz"
    block = "-----BEGIN RSA PRIVATE KEY-----\nshort+line/1\n-----END RSA PRIVATE KEY-----"
    with caplog.at_level("DEBUG"), OpenAIServer([f"you said {secret}", status(401, f"bad key {KEY}")]) as server:
        model = server.model()
        reply = model.ask(Request((Message("system", f"token {secret}"), Message("user", f"{KEY}\n{block}\nstep 1"))))
        with pytest.raises(errors.ModelRefusedError) as caught:
            model.ask(HELLO)
    wire = str([r.body for r in server.requests])
    assert "step 1" in wire
    for hidden in (secret, KEY, "short+line"):
        assert hidden not in wire
    assert reply.text == "you said [redacted:hf-token]"
    assert KEY not in str(caught.value)
    assert KEY not in caplog.text
    assert KEY not in repr(model)


def test_a_password_in_the_address_is_not_told() -> None:
    with pytest.raises(errors.ModelDownError) as caught:
        open_model("openai:x", "http://user:hunter22@127.0.0.1:9/v1").ask(question("x", deadline=0.4))
    assert "hunter22" not in str(caught.value)


def test_offline_nothing_is_asked() -> None:
    with (
        OpenAIServer(["never"]) as server,
        pytest.raises(errors.OfflineError, match="TRIAGE_OFFLINE=1 bars every connection, to this machine too"),
    ):
        server.model(offline=True).ask(HELLO)
    assert server.requests == []


def test_without_a_key_openai_is_not_asked() -> None:
    with pytest.raises(errors.ModelRefusedError, match="TRIAGE_LLM_API_KEY"):
        open_model("openai:gpt").ask(HELLO)


def test_nothing_goes_to_langsmith(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process whose environment asks for tracing, to a server that would notice."""
    work = (
        "import sys, time\n"
        "from triage.llm.open import open_model\n"
        "from triage.llm.values import question\n"
        "print(open_model('openai:x', sys.argv[1], 'k' * 20).ask(question('hello')).text)\n"
        "time.sleep(1)\n"
    )
    with OpenAIServer(lambda _asked: "answered") as server, OpenAIServer(lambda _asked: "traced") as spy:
        for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
            monkeypatch.setenv(name, "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", spy.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2-something")
        done = subprocess.run(
            [sys.executable, "-c", work, server.url], capture_output=True, text=True, cwd=REPO, timeout=120, check=False
        )
    assert done.stdout == "answered\n", done.stderr
    assert spy.requests == []


def test_a_proxy_does_not_lead_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with OpenAIServer(["direct"]) as server:
        assert server.model().ask(HELLO).text == "direct"


@pytest.mark.parametrize("name", ["gpt-5", "openai:", "anthropic:claude", ""])
def test_a_name_that_cannot_be_meant_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="openai:MODEL"):
        open_model(name)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://"])
def test_an_address_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="TRIAGE_LLM_BASE_URL"):
        open_model("openai:x", url)
