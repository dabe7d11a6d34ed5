from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.openai_server import Answer, OpenAIServer, status
from triage.errors import InputError, ModelError
from triage.llm import errors
from triage.llm.trace import Recorder, Replayer
from triage.llm.values import question

KEY = "test-key-0123456789"


def test_a_trace_answers_in_place_of_the_model(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with OpenAIServer(["one", "two", Answer("", "tool_calls", tool_calls=(("f", "{}"),))]) as server:
        model = Recorder(server.model(), trace)
        first = [model.ask(question("same", temperature=1.0)) for _ in range(2)]
        first.append(model.ask(question("other", schema={"type": "object"})))
    again = Replayer(trace)
    assert (again.name, model.name) == ("openai:scripted (replayed from trace.jsonl)", "openai:scripted")
    assert again.ask(question("other", schema={"type": "object"}, deadline=3)) == first[2]
    assert [again.ask(question("same", temperature=1.0)) for _ in range(2)] == first[:2]
    with pytest.raises(errors.ReplayError, match="no further answer"):
        again.ask(question("same", temperature=1.0))
    with pytest.raises(errors.ReplayError, match=r"no answer to this request.*similar incidents of the database"):
        again.ask(question("same", temperature=0.5))


@pytest.mark.parametrize(
    "answer",
    [status(429, "busy", retry_after=200), status(401), Answer("half of", "length"), status(413), Answer(raw="x")],
    ids=["busy", "refused", "cut", "long", "nonsense"],
)
def test_an_error_is_an_exchange_too(tmp_path: Path, answer: Answer) -> None:
    with OpenAIServer([answer]) as server, pytest.raises(ModelError) as first:
        Recorder(server.model(), tmp_path / "t").ask(question("x"))
    with pytest.raises(ModelError) as again:
        Replayer(tmp_path / "t").ask(question("x"))
    assert type(again.value) is type(first.value)
    assert vars(again.value) == vars(first.value)


def test_no_secret_is_written(tmp_path: Path) -> None:
    secret = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz"
    with OpenAIServer([f"{secret} {KEY}", status(400, f"what is {KEY}?")]) as server:
        model = Recorder(server.model(), tmp_path / "t", KEY)
        model.ask(question(f"HF {secret}\nlog of {KEY}"))
        with pytest.raises(ModelError):
            model.ask(question("x"))
    text = (tmp_path / "t").read_text()
    assert secret not in text
    assert KEY not in text
    assert (tmp_path / "t").stat().st_mode & 0o077 == 0
    # Who replays it need not have the key.
    assert Replayer(tmp_path / "t").ask(question(f"HF {secret}\nlog of {KEY}")).text.startswith("[redacted:")


@pytest.mark.parametrize(
    "text", ["no json", '{"schema": "other"}', '{"schema": "triage.exchange/1", "key": "k", "model": "m"}', "[]"]
)
def test_a_file_that_is_no_trace_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(f"\n{text}\n")
    with pytest.raises(InputError, match=r"t:2: is no exchange"):
        Replayer(tmp_path / "t")


def test_a_place_that_cannot_be_written_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    with OpenAIServer(["never"]) as server, pytest.raises(InputError, match="cannot be written"):
        Recorder(server.model(), tmp_path / "no" / "t")
    assert server.requests == []


def test_a_trace_is_one_object_a_line(tmp_path: Path) -> None:
    with OpenAIServer(["line one\nline two", "x"]) as server:
        for text in ("a", "b"):
            Recorder(server.model(), tmp_path / "t").ask(question(text))
    lines = [json.loads(line) for line in (tmp_path / "t").read_text().splitlines()]
    assert [line["request"]["messages"][0]["content"] for line in lines] == ["a", "b"]
    assert lines[0]["reply"]["text"] == "line one\nline two"


REPLY = {
    "text": "one",
    "finish": "stop",
    "tokens_in": 1,
    "tokens_out": 1,
    "model": "m",
    "seconds": 0.1,
    "tool_calls": [],
}
ODD = [
    {"reply": {k: v for k, v in REPLY.items() if k != "tool_calls"}},
    {"reply": {**REPLY, "more": 1}},
    {"reply": {**REPLY, "tool_calls": "abc"}},
    {"reply": {**REPLY, "tool_calls": [{"id": "c", "name": "f", "arguments": {}}]}},
    {"reply": {**REPLY, "tokens_in": "lots"}},
    {"reply": {**REPLY, "text": None}},
    {"reply": "one"},
    {"reply": REPLY, "error": {"kind": "ModelSlowError", "message": "", "hint": ""}},
    {"error": {"kind": "ModelSlowError", "hint": ""}},
    {"error": {"kind": "ModelBusyError", "message": "", "hint": "", "retry_after": "soon"}},
    {"error": {"kind": "ModelCutError", "message": "", "hint": ""}},
    {"error": {"kind": "KeyError", "message": "", "hint": ""}},
    {"error": []},
]


@pytest.mark.parametrize("answer", ODD, ids=[f"{n}" for n in range(len(ODD))])
def test_a_line_of_other_fields_is_refused(tmp_path: Path, answer: dict[str, object]) -> None:
    line = {"schema": "triage.exchange/1", "key": "k", "model": "m", "request": {}, **answer}
    (tmp_path / "t").write_text(json.dumps(line))
    with pytest.raises(InputError, match=r"t:1: is no exchange of a trace"):
        Replayer(tmp_path / "t")


@pytest.mark.parametrize(
    "change", [("disk is full", "disk is fine"), ('"sha256"', '"other"'), ('"tokens_in": 100', '"tokens_in": 1')]
)
def test_an_answer_that_was_changed_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    trace = tmp_path / "t"
    with OpenAIServer(["the disk is full"]) as server:
        Recorder(server.model(), trace).ask(question("x"))
    assert Replayer(trace).ask(question("x")).text == "the disk is full"
    trace.write_text(trace.read_text().replace(*change))
    with pytest.raises(InputError, match="t:1: the answer is not the one that was recorded"):
        Replayer(trace)
