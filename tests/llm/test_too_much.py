"""Servers that send without end: what is read of them is bounded, and the reading ends with the time."""

from __future__ import annotations

import json
import threading
import time

import pytest

from tests.openai_server import Answer, OpenAIServer
from triage.llm import errors
from triage.llm.connection import READER
from triage.llm.values import question

MIB = 1 << 20


def streamed(server: OpenAIServer, deadline: float = 60.0) -> str:
    return server.model().ask(question("x", deadline=deadline), lambda _text: None).text


@pytest.mark.parametrize("stream", [True, False])
def test_a_long_answer_is_read_whole(stream: bool) -> None:
    with OpenAIServer([Answer("word " * 20_000, pieces=("word " * 1000,) * 20)]) as server:
        model = server.model()
        reply = model.ask(question("x"), (lambda _text: None) if stream else None)
    assert len(reply.text) == 100_000
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_stream_is_bounded() -> None:
    with (
        OpenAIServer([Answer(pieces=("A" * 100_000,) * 200)]) as server,
        pytest.raises(errors.ModelNonsenseError, match="sent more than 16 MiB in one answer"),
    ):
        streamed(server)


@pytest.mark.parametrize("status", [200, 400])
def test_a_body_is_bounded(status: int) -> None:
    raw = json.dumps({"error": {"message": "x" * (17 * MIB)}})
    with (
        OpenAIServer([Answer(raw=raw, status=status)]) as server,
        pytest.raises(errors.ModelNonsenseError, match="sent more than 16 MiB in one answer"),
    ):
        server.model().ask(question("x"))


@pytest.mark.parametrize("status", [200, 400])
def test_what_is_compressed_unasked_is_not_unfolded(status: int) -> None:
    with (
        OpenAIServer([Answer(raw="x" * 100, status=status, headers={"Content-Encoding": "gzip"})]) as server,
        pytest.raises(errors.ModelNonsenseError, match="sent a compressed answer, which was not asked for"),
    ):
        server.model().ask(question("x"))


@pytest.mark.parametrize("stream", [True, False])
def test_the_calls_of_an_answer_are_bounded(stream: bool) -> None:
    with (
        OpenAIServer([Answer("", "tool_calls", tool_calls=(("f", "{}"),) * 3000)]) as server,
        pytest.raises(errors.ModelNonsenseError, match="sent more than 100 calls of tools"),
    ):
        server.model().ask(question("x"), (lambda _text: None) if stream else None)


def test_the_reading_ends_with_the_time() -> None:
    reads: set[threading.Thread] = set()

    def told(_text: str) -> None:
        reads.update(t for t in threading.enumerate() if t.name == READER)

    with OpenAIServer(["warm", Answer(pieces=("w ",) * 40_000)]) as server:
        model = server.model()
        model.ask(question("x"))  # imports the client
        with pytest.raises(errors.ModelSlowError):
            model.ask(question("x", deadline=2.0), told)
        assert reads
        for thread in reads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in reads)


def test_the_time_is_up_though_more_came_than_was_read() -> None:
    with OpenAIServer(["warm", Answer(pieces=("w ",) * 4000)]) as server:
        model = server.model()
        model.ask(question("x"))  # imports the client
        began = time.monotonic()
        with pytest.raises(errors.ModelSlowError):
            model.ask(question("x", deadline=0.5), lambda _text: time.sleep(0.05))
        assert time.monotonic() - began < 60  # to read all takes 200 s
