"""A real HTTP server on this machine that speaks the OpenAI protocol and answers as told.

    with OpenAIServer(["first answer", Answer("half of an", finish="length"), status(429, retry_after=1)]) as server:
        model = server.model()
        ...
        assert server.requests[0].text.endswith("the question")

Answers are used up in order; what comes after the last is HTTP 500. A function (of the request) as the only argument
answers every call. Several threads may ask at once.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from triage.llm.open import open_model
from triage.llm.values import ChatModel


@dataclass(frozen=True)
class Answer:
    """A completion. wait: seconds before its head; drip: seconds between single bytes of its body. usage None: none is told.

    tool_calls: (name, JSON of the arguments); raw: the body as it is, in place of all else.
    Who asks for a stream gets the same in chunks, drip seconds between them. pieces: the text of each, else a word; cut:
    how many chunks come before the connection breaks; garbage: a chunk in place of the second.
    """

    text: str = ""
    finish: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    drip: float = 0.0
    usage: tuple[int, int] | None = (100, 10)
    tool_calls: tuple[tuple[str, str], ...] = ()
    refusal: str = ""
    raw: str | None = None
    hang_up: bool = False  # closes the connection without an answer
    pieces: tuple[str, ...] = ()
    cut: int | None = None
    garbage: str | None = None

    def chunks(self, model: str, told_usage: bool) -> list[str]:
        """Server-sent events. told_usage: the last of them counts the tokens."""
        deltas: list[dict[str, Any]] = [
            {"content": piece} for piece in self.pieces or re.findall(r"\S+\s*|\s+", self.text)
        ]
        for n, (name, arguments) in enumerate(self.tool_calls):
            half = len(arguments) // 2
            begun = {"name": name, "arguments": arguments[:half]}
            deltas.append({"tool_calls": [{"index": n, "id": f"call_{n + 1}", "type": "function", "function": begun}]})
            deltas.append({"tool_calls": [{"index": n, "function": {"arguments": arguments[half:]}}]})
        if self.refusal:
            deltas = [{"refusal": word + " "} for word in self.refusal.split()]
        choices: list[list[dict[str, Any]]] = [[{"index": 0, "delta": d, "finish_reason": None}] for d in deltas]
        choices.insert(0, [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        choices.append([{"index": 0, "delta": {}, "finish_reason": self.finish}])
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        found = [json.dumps({**head, "choices": choice}) for choice in choices]
        if self.usage is not None and told_usage:
            found.append(json.dumps({**head, "choices": [], "usage": _usage(self.usage)}))
        if self.garbage is not None:
            found[1] = self.garbage
        return [*found, "[DONE]"]

    def body(self, model: str) -> bytes:
        if self.raw is not None:
            return self.raw.encode()
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.refusal:
            message |= {"content": None, "refusal": self.refusal}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for n, (name, arguments) in enumerate(self.tool_calls, 1)
            ]
        document: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
        }
        if self.usage is not None:
            document["usage"] = _usage(self.usage)
        return json.dumps(document).encode()


def _usage(counted: tuple[int, int]) -> dict[str, int]:
    told, said = counted
    return {"prompt_tokens": told, "completion_tokens": said, "total_tokens": told + said}


def status(code: int, message: str = "", *, retry_after: float | str | None = None, kind: str = "") -> Answer:
    """An error as OpenAI words it; kind: its `code`."""
    document = {"error": {"message": message or f"error {code}", "type": "error", "code": kind or None}}
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Answer(status=code, headers=headers, raw=json.dumps(document))


def as_json(value: Any, **fields: Any) -> Answer:
    """A completion whose text is this value as JSON."""
    return Answer(json.dumps(value), **fields)


@dataclass(frozen=True)
class Asked:
    """One request that arrived. at: seconds since the server began."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", ()))

    @property
    def text(self) -> str:
        """The contents of all messages."""
        return "\n".join(str(m.get("content") or "") for m in self.messages)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that may be called."""
        return (
            []
            if self.body.get("tool_choice") == "none"
            else [t["function"]["name"] for t in self.body.get("tools", ())]
        )


Scripted = str | Answer
Script = Iterable[Scripted] | Callable[[Asked], Scripted]


class _Quiet(ThreadingHTTPServer):
    """A client that goes away is none of the server's faults."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class OpenAIServer:
    """requests: all that arrived, in order."""

    def __init__(self, script: Script = ()) -> None:
        self.requests: list[Asked] = []
        self._answer = script if callable(script) else _one_by_one(script)
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._began = time.monotonic()
        self._http = _Quiet(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def model(self, name: str = "openai:scripted", key: str = "test-key-0123456789", **fields: Any) -> ChatModel:
        """A model that asks this server, as the settings would make it."""
        return open_model(name, self.url, key, **fields)

    def env(self, name: str = "openai:scripted", key: str = "test-key-0123456789") -> dict[str, str]:
        """What makes `triage` ask this server."""
        return {"TRIAGE_LLM": name, "TRIAGE_LLM_BASE_URL": self.url, "TRIAGE_LLM_API_KEY": key}

    def answer(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        with self._lock:
            asked = Asked(path, headers, body, time.monotonic() - self._began)
            self.requests.append(asked)
            found = self._answer(asked)
        return Answer(found) if isinstance(found, str) else found

    def pause(self, seconds: float) -> None:
        """Ends early when the server stops."""
        self._stopped.wait(seconds)


def _one_by_one(script: Iterable[Scripted]) -> Callable[[Asked], Scripted]:
    rest = iter(script)
    return lambda _asked: next(rest, status(500, "the script has no further answer"))


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw) if raw else {}
            answer = server.answer(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            server.pause(answer.wait)
            if answer.hang_up:
                self.close_connection = True
                return
            if body.get("stream") and answer.raw is None:
                self._stream(answer, body)
                return
            data = answer.body(str(body.get("model", "")))
            try:
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self._send(data, answer.drip)
            except ConnectionError:  # who asked has gone
                self.close_connection = True

        def _stream(self, answer: Answer, body: dict[str, Any]) -> None:
            told_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            events = answer.chunks(str(body.get("model", "")), told_usage)
            try:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for event in events[: answer.cut]:
                    data = f"data: {event}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                    server.pause(answer.drip)
                if answer.cut is None:
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.close_connection = True
            except ConnectionError:  # who asked has gone
                self.close_connection = True

        def _send(self, data: bytes, drip: float) -> None:
            if not drip:
                self.wfile.write(data)
                return
            for at in range(len(data)):
                self.wfile.write(data[at : at + 1])
                server.pause(drip)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
