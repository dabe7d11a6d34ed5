"""Chat models behind the OpenAI protocol, by langchain. The only module that opens a connection to a model."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from triage.llm.clean import clean_reply, clean_request
from triage.llm.errors import (
    ModelBusyError,
    ModelCutError,
    ModelDeclinedError,
    ModelDownError,
    ModelRefusedError,
    ModelRequestError,
    OfflineError,
)
from triage.llm.failures import Failures
from triage.llm.values import Reply, Request, ToolCall, estimated_tokens

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

OPENAI_URL = "https://api.openai.com/v1"
RETRIES = 2
_NOT_KNOWN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected|available)|not (?:supported|permitted|allowed|available)|does ?n[o']t support|extra",
    re.IGNORECASE,
)
_BACKOFF = 0.5  # seconds before the first repetition, twice that before the second


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


class OpenAIChat:
    """Connects when it is first asked. Requests and replies lose their secrets here, whoever made them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._failures = Failures(server.base_url, server.model, server.key)
        self._client: _Client | None = None
        self._unknown: set[str] = set()  # parameters that this server does not take

    @property
    def name(self) -> str:
        return f"{self._server.provider}:{self._server.model}"

    def ask(self, request: Request) -> Reply:
        server = self._server
        if server.offline:
            raise OfflineError(
                f"the model {self.name} was not asked: TRIAGE_OFFLINE=1 bars every connection, to this machine too",
                "set TRIAGE_OFFLINE=0 to ask it",
            )
        if not server.key and server.base_url == OPENAI_URL:
            raise ModelRefusedError(f"{server.base_url} wants a key", "set TRIAGE_LLM_API_KEY")
        request = clean_request(request, server.key)
        self._client = self._client or _Client(server)  # what it imports takes a second and is no time of the model
        started = time.monotonic()
        ends = started + min(request.deadline, server.most_seconds)
        message = self._repeated(request, ends)
        return self._reply(message, request, time.monotonic() - started)

    def _repeated(self, request: Request, ends: float) -> AIMessage:
        """Once more, and once more, if the failure may pass before the deadline."""
        for attempt in range(RETRIES + 1):
            try:
                return self._adapted(request, ends)
            except (ModelBusyError, ModelDownError) as error:
                wait = error.retry_after if error.retry_after is not None else _BACKOFF * 2**attempt
                if attempt == RETRIES or time.monotonic() + wait >= ends:
                    raise
                time.sleep(wait)
        raise AssertionError("unreachable")

    def _adapted(self, request: Request, ends: float) -> AIMessage:
        """Without what the server says it does not take: not all know of schemas, temperatures or either name of max_tokens."""
        while True:
            body = self._body(request)
            try:
                return self._once(request, body, ends)
            except ModelRequestError as error:
                strange = [name for name in body if name in error.message]
                if not strange or not _NOT_KNOWN.search(error.message) or not self._learned(strange):
                    raise

    def _body(self, request: Request) -> dict[str, Any]:
        """What goes into the request beside model and messages."""
        limit = next(name for name in self._limit_names() if name not in self._unknown)
        body: dict[str, Any] = {
            limit: min(request.max_tokens, self._server.most_tokens),
            "temperature": request.temperature,
        }
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {name: value for name, value in body.items() if name not in self._unknown}

    def _learned(self, strange: list[str]) -> bool:
        """Whether leaving these out helps: one name of the limit must remain."""
        unknown = self._unknown | set(strange)
        if unknown == self._unknown or unknown.issuperset(self._limit_names()):
            return False
        self._unknown = unknown
        return True

    def _limit_names(self) -> tuple[str, str]:
        """Newer models of OpenAI take the one name only, many other servers only the other."""
        new, old = "max_completion_tokens", "max_tokens"
        return (new, old) if self._server.base_url == OPENAI_URL else (old, new)

    def _once(self, request: Request, body: dict[str, Any], ends: float) -> AIMessage:
        """One attempt, in a thread, for no time-out of the client bounds a server that sends a byte now and then."""
        rest = ends - time.monotonic()
        if rest <= 0:
            raise self._failures.slow()
        self._client = client = self._client or _Client(self._server)
        future: Future[AIMessage] = Future()
        threading.Thread(target=client.run, args=(future, request, body, rest), daemon=True).start()
        try:
            error = future.exception(rest)
        except FutureTimeoutError:
            self._client = None
            client.close()
            raise self._failures.slow() from None
        if error is None:
            return future.result()
        if isinstance(error, Exception):
            raise self._failures.told(error) from None
        raise error

    def _reply(self, message: AIMessage, request: Request, seconds: float) -> Reply:
        told = message.response_metadata
        finish = str(told.get("finish_reason") or "stop")
        usage: Any = message.usage_metadata or {}
        text = message.text
        asked = sum(estimated_tokens(m.content) for m in request.messages)
        reply = Reply(
            text=text,
            finish=finish,
            tokens_in=usage.get("input_tokens") or asked,
            tokens_out=usage.get("output_tokens") or estimated_tokens(text),
            model=str(told.get("model_name") or self._server.model),
            seconds=round(seconds, 3),
            tool_calls=_tool_calls(message),
        )
        reply = clean_reply(reply, self._server.key)
        if refusal := message.additional_kwargs.get("refusal"):
            raise ModelDeclinedError(f"the model {self.name} declined to answer: {self._failures.words(refusal)}")
        if finish == "content_filter":
            raise ModelDeclinedError(f"a content filter of {self._failures.where} withheld the answer of {self.name}")
        if finish == "length":
            raise ModelCutError(
                f"the answer of {self.name} was cut after {reply.tokens_out} tokens",
                "raise TRIAGE_LLM_MAX_TOKENS, or ask for less",
                reply=reply,
            )
        return reply


class _Client:
    """A connection of its own, so that closing it ends an answer that takes too long."""

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
            streaming=False,
            cache=False,
            verbose=False,
        )

    def run(self, future: Future[AIMessage], request: Request, body: dict[str, Any], seconds: float) -> None:
        try:
            future.set_result(self._invoke(request, body, seconds))
        except BaseException as error:  # noqa: BLE001 - it is raised again by who waits
            future.set_exception(error)

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._http.close()

    def _invoke(self, request: Request, body: dict[str, Any], seconds: float) -> AIMessage:
        from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
        from langsmith import tracing_context

        kinds: dict[str, Any] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
        messages: list[AnyMessage] = [kinds[m.role](content=m.content) for m in request.messages]
        with tracing_context(enabled=False):  # nothing goes to LangSmith, whatever the environment says
            return self._chat.invoke(messages, extra_body=body, timeout=seconds)


def _tool_calls(message: AIMessage) -> tuple[ToolCall, ...]:
    good = [ToolCall(c["id"] or "", c["name"], json.dumps(c["args"], ensure_ascii=False)) for c in message.tool_calls]
    odd = [ToolCall(c["id"] or "", c["name"] or "", c["args"] or "") for c in message.invalid_tool_calls]
    return (*good, *odd)
