"""Chat models behind the OpenAI protocol: what is asked again, what is left out for a server that does not know it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from triage.llm.clean import clean_reply, clean_request
from triage.llm.connection import Connection, FailedError, Server, SlowError, TooMuchError, tool_calls
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
from triage.llm.values import OnText, Reply, Request, ToolSpec, estimated_tokens

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

OPENAI_URL = "https://api.openai.com/v1"
RETRIES = 2
_NOT_KNOWN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected|available)|not (?:supported|permitted|allowed|available)|does ?n[o']t support|extra",
    re.IGNORECASE,
)
_MOST_TOKENS = 10**8  # of one call, that a server may count
_BACKOFF = 0.5  # seconds before the first repetition, twice that before the second


class OpenAIChat:
    """Connects when it is first asked. Requests and replies lose their secrets here, whoever made them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._failures = Failures(server.base_url, server.model, server.key)
        self._connection: Connection | None = None
        self._unknown: set[str] = set()  # parameters that this server does not take

    @property
    def name(self) -> str:
        return f"{self._server.provider}:{self._server.model}"

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        server = self._server
        if server.offline:
            raise OfflineError(
                f"the model {self.name} was not asked: TRIAGE_OFFLINE=1 bars every connection, to this machine too",
                "set TRIAGE_OFFLINE=0 to ask it",
            )
        if not server.key and server.base_url == OPENAI_URL:
            raise ModelRefusedError(f"{server.base_url} wants a key", "set TRIAGE_LLM_API_KEY")
        request = clean_request(request, server.key)
        # What it imports takes a second and is no time of the model.
        self._connection = self._connection or Connection(server)
        started = time.monotonic()
        ends = started + min(request.deadline, server.most_seconds)
        message = self._repeated(request, ends, _Told(on_text) if on_text else None)
        return self._reply(message, request, time.monotonic() - started, streamed=on_text is not None)

    def _repeated(self, request: Request, ends: float, told: _Told | None) -> AIMessage:
        """Once more, and once more, if the failure may pass before the deadline and nothing of an answer was passed on."""
        for attempt in range(RETRIES + 1):
            try:
                return self._adapted(request, ends, told)
            except (ModelBusyError, ModelDownError) as error:
                wait = error.retry_after if error.retry_after is not None else _BACKOFF * 2**attempt
                if attempt == RETRIES or time.monotonic() + wait >= ends or (told is not None and told.anything):
                    raise
                time.sleep(wait)
        raise AssertionError("unreachable")

    def _adapted(self, request: Request, ends: float, told: _Told | None) -> AIMessage:
        """Without what the server says it does not take: not all know of schemas, temperatures or either name of max_tokens."""
        while True:
            body = self._body(request, streamed=told is not None)
            try:
                return self._once(request, body, ends, told)
            except ModelRequestError as error:
                strange = [name for name in body if name in error.message]
                if not strange or not _NOT_KNOWN.search(error.message) or not self._learned(strange):
                    raise

    def _body(self, request: Request, streamed: bool) -> dict[str, Any]:
        """What goes into the request beside model and messages."""
        limit = next(name for name in self._limit_names() if name not in self._unknown)
        body: dict[str, Any] = {
            limit: min(request.max_tokens, self._server.most_tokens),
            "temperature": request.temperature,
        }
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.tools:
            body["tools"] = list(map(_function, request.tools))
            if not request.may_call:
                body["tool_choice"] = "none"
        if streamed:
            body["stream_options"] = {"include_usage": True}
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

    def _once(self, request: Request, body: dict[str, Any], ends: float, told: _Told | None) -> AIMessage:
        rest = ends - time.monotonic()
        if rest <= 0:
            raise self._failures.slow()
        self._connection = connection = self._connection or Connection(self._server)
        try:
            return connection.ask(request, body, rest, told)
        except SlowError:
            self._connection = None
            raise self._failures.slow() from None
        except FailedError as failed:
            raise self._failures.told(failed.error, tools=bool(request.tools)) from None

    def _reply(self, message: AIMessage, request: Request, seconds: float, streamed: bool) -> Reply:
        told = message.response_metadata
        finish = str(told.get("finish_reason") or "stop")
        usage: Any = message.usage_metadata or {}
        text = message.text
        try:
            calls = tool_calls(message)
        except TooMuchError as error:
            raise self._failures.told(error) from None
        reply = Reply(
            text=text,
            finish=finish,
            tokens_in=_counted(usage.get("input_tokens"), request.size),
            tokens_out=_counted(usage.get("output_tokens"), len(text)),
            model=str(told.get("model_name") or self._server.model),
            seconds=round(seconds, 3),
            tool_calls=calls,
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
        if streamed and not text.strip() and not reply.tool_calls:  # a stream does not say that it is a refusal
            raise ModelDeclinedError(
                f"the model {self.name} answered with nothing, as one does that refuses in a stream"
            )
        return reply


class _Told:
    """Passes text on and knows whether there was any."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self.anything = False

    def __call__(self, text: str) -> None:
        self.anything = True
        self._on_text(text)


def _counted(told: Any, characters: int) -> int:
    """Tokens as the server counts them, where it does and can be believed: less than none would switch limits off."""
    return told if isinstance(told, int) and 0 < told <= _MOST_TOKENS else estimated_tokens(characters)


def _function(tool: ToolSpec) -> dict[str, Any]:
    plain = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": plain}
