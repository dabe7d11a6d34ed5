"""A connection to a server of the OpenAI protocol, by langchain. The only module that opens one to a model."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from triage.llm.values import Message, OnText, Request, ToolCall

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

READER = "model-reader"  # the thread that reads answers
MOST_BYTES = 16 << 20  # of one response; a long answer, token by token, is a few
MOST_CALLS = 100  # of tools, in one answer
_LAST_WAIT = 2.0  # seconds at the end of the process, for all readers whose time was up
_MANY_CALLS = f"more than {MOST_CALLS} calls of tools in one answer"


@dataclass(frozen=True, slots=True)
class Server:
    """Where to ask what. provider: as in the settings; key "": none is sent. The most of one call is a cap."""

    provider: str
    model: str
    base_url: str
    key: str = ""
    most_tokens: int = 4096
    most_seconds: float = 120.0
    offline: bool = False


_late: list[threading.Thread] = []  # readers whose time was up


@atexit.register
def _wait_for_readers() -> None:
    """Python must not end while one still parses: a thread that is ended within a parser aborts the process."""
    ends = time.monotonic() + _LAST_WAIT
    for reader in _late:
        reader.join(max(0.0, ends - time.monotonic()))


class BrokenStreamError(Exception):
    """The stream ended before the answer did."""


class TooMuchError(Exception):
    """The server sent more than any answer needs; the message says what."""


class _StoppedError(Exception):
    """Nobody waits for the answer any more."""


class SlowError(Exception):
    """No whole answer in time."""


class FailedError(Exception):
    """What langchain, openai or httpx raised is in `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


_Event = tuple[Literal["text", "done", "failed"], Any]


class Connection:
    """One of its own for each model, so that closing it ends an answer that takes too long."""

    def __init__(self, server: Server) -> None:
        import httpx
        from pydantic import SecretStr

        from triage.llm.streaming import StreamingChat

        # A proxy that the environment names does not lead to this machine.
        local = urlsplit(server.base_url).hostname in ("localhost", "127.0.0.1", "::1")
        # Not compressed: a megabyte that unfolds to a gigabyte would get past any bound on what is read.
        self._http = httpx.Client(
            trust_env=not local, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [_bound]}
        )
        self._chat = StreamingChat(
            model=server.model,
            base_url=server.base_url,
            api_key=SecretStr(server.key or "none"),
            max_retries=0,
            http_client=self._http,
            openai_proxy=None,
            use_responses_api=False,
            stream_usage=False,
            cache=False,
            verbose=False,
        )

    def ask(self, request: Request, body: dict[str, Any], seconds: float, on_text: OnText | None) -> AIMessage:
        """One attempt, in a thread, for no time-out of the client bounds a server that sends a byte now and then.

        body: what goes along beside model and messages. Errors: SlowError, after which the connection is closed;
        FailedError; and what on_text raises.
        """
        ends = time.monotonic() + seconds
        events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        stop = threading.Event()
        reads = functools.partial(self._run, events, request, body, seconds, stop if on_text is not None else None)
        reader = threading.Thread(target=reads, name=READER, daemon=True)
        reader.start()
        try:
            return self._awaited(events, ends, on_text)
        except SlowError:
            _late[:] = [*filter(threading.Thread.is_alive, _late), reader]
            raise
        finally:
            stop.set()

    def _awaited(self, events: queue.SimpleQueue[_Event], ends: float, on_text: OnText | None) -> AIMessage:
        while True:
            try:
                kind, value = events.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                self._close()
                raise SlowError from None
            if kind == "failed":
                raise FailedError(value) if isinstance(value, Exception) else value
            if kind == "done":
                done: AIMessage = value
                return done
            if on_text is not None:
                on_text(value)
            if time.monotonic() > ends:  # a server that sends faster than it is read leaves the queue never empty
                self._close()
                raise SlowError

    def _close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._http.close()

    def _run(
        self,
        events: queue.SimpleQueue[_Event],
        request: Request,
        body: dict[str, Any],
        seconds: float,
        stop: threading.Event | None,
    ) -> None:
        """stop: given, the answer is streamed until it is set."""
        from langsmith import tracing_context

        try:
            with tracing_context(enabled=False):  # nothing goes to LangSmith, whatever the environment says
                messages = [_to_langchain(m) for m in request.messages]
                if stop is not None:
                    events.put(("done", self._streamed(events, messages, body, seconds, stop)))
                else:
                    events.put(("done", self._chat.invoke(messages, extra_body=body, timeout=seconds)))
        except BaseException as error:  # noqa: BLE001 - it is raised again by who waits
            events.put(("failed", error))

    def _streamed(
        self,
        events: queue.SimpleQueue[_Event],
        messages: list[BaseMessage],
        body: dict[str, Any],
        seconds: float,
        stop: threading.Event,
    ) -> AIMessage:
        whole: AIMessageChunk | None = None
        for chunk in self._chat.stream(messages, extra_body=body, timeout=seconds):
            if stop.is_set():
                raise _StoppedError
            whole = chunk if whole is None else whole + chunk
            if len(whole.tool_call_chunks) > MOST_CALLS:
                raise TooMuchError(_MANY_CALLS)
            if chunk.text:
                events.put(("text", chunk.text))
        if whole is None or not whole.response_metadata.get("finish_reason"):
            raise BrokenStreamError
        return whole


def tool_calls(message: AIMessage) -> tuple[ToolCall, ...]:
    """In their order and as the model wrote them; of an answer that came whole, those with arguments of JSON first.

    Errors: TooMuchError.
    """
    from langchain_core.messages import AIMessageChunk

    if len(message.tool_calls) + len(message.invalid_tool_calls) > MOST_CALLS:
        raise TooMuchError(_MANY_CALLS)
    if isinstance(message, AIMessageChunk):  # its own reading would complete arguments that were cut
        return tuple(ToolCall(c["id"] or "", c["name"] or "", c["args"] or "") for c in message.tool_call_chunks)
    good = [ToolCall(c["id"] or "", c["name"], json.dumps(c["args"], ensure_ascii=False)) for c in message.tool_calls]
    odd = [ToolCall(c["id"] or "", c["name"] or "", c["args"] or "") for c in message.invalid_tool_calls]
    return (*good, *odd)


def _to_langchain(message: Message) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.messages.tool import invalid_tool_call

    if message.role == "tool":
        return ToolMessage(content=message.content, tool_call_id=message.call_id)
    if message.role == "assistant":
        # As what cannot be read, their arguments go back as the model wrote them.
        calls = [invalid_tool_call(id=c.id, name=c.name, args=c.arguments, error=None) for c in message.tool_calls]
        return AIMessage(content=message.content, invalid_tool_calls=calls)
    kinds: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage}
    return kinds[message.role](content=message.content)


def _bound(response: httpx.Response) -> None:
    """Lets no more be read of a response than any answer needs. Errors: TooMuchError for a compressed one."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise TooMuchError("a compressed answer, which was not asked for")
    response.stream = _bounded_stream(response.stream)


def _bounded_stream(stream: Any) -> httpx.SyncByteStream:
    import httpx

    class Bounded(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            left = MOST_BYTES
            for piece in stream:
                left -= len(piece)
                if left < 0:
                    raise TooMuchError(f"more than {MOST_BYTES >> 20} MiB in one answer")
                yield piece

        def close(self) -> None:
            stream.close()

    return Bounded()
