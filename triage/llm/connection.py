"""A connection to a server of the OpenAI protocol, by langchain. The only module that opens one to a model."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from triage.llm.values import Message, OnText, Request, ToolCall

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage


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


class BrokenStreamError(Exception):
    """The stream ended before the answer did."""


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
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr

        # A proxy that the environment names does not lead to this machine.
        local = urlsplit(server.base_url).hostname in ("localhost", "127.0.0.1", "::1")
        self._http = httpx.Client(trust_env=not local)
        self._chat = ChatOpenAI(
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
        streams = on_text is not None
        threading.Thread(target=self._run, args=(events, request, body, seconds, streams), daemon=True).start()
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

    def _close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._http.close()

    def _run(
        self, events: queue.SimpleQueue[_Event], request: Request, body: dict[str, Any], seconds: float, streams: bool
    ) -> None:
        from langsmith import tracing_context

        try:
            with tracing_context(enabled=False):  # nothing goes to LangSmith, whatever the environment says
                messages = [_to_langchain(m) for m in request.messages]
                if streams:
                    events.put(("done", self._streamed(events, messages, body, seconds)))
                else:
                    events.put(("done", self._chat.invoke(messages, extra_body=body, timeout=seconds)))
        except BaseException as error:  # noqa: BLE001 - it is raised again by who waits
            events.put(("failed", error))

    def _streamed(
        self, events: queue.SimpleQueue[_Event], messages: list[BaseMessage], body: dict[str, Any], seconds: float
    ) -> AIMessage:
        whole: AIMessageChunk | None = None
        for chunk in self._chat.stream(messages, extra_body=body, timeout=seconds):
            whole = chunk if whole is None else whole + chunk
            if chunk.text:
                events.put(("text", chunk.text))
        if whole is None or not whole.response_metadata.get("finish_reason"):
            raise BrokenStreamError
        return whole


def tool_calls(message: AIMessage) -> tuple[ToolCall, ...]:
    """In their order and as the model wrote them; of an answer that came whole, those with arguments of JSON first."""
    from langchain_core.messages import AIMessageChunk

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
