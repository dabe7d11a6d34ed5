"""What a failed call means: from the vendor's exceptions to ours, in one line each that holds no secret."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from triage.errors import ModelError
from triage.llm.clean import one_line
from triage.llm.connection import BrokenStreamError, TooMuchError
from triage.llm.errors import (
    ModelBusyError,
    ModelDownError,
    ModelNonsenseError,
    ModelRefusedError,
    ModelRequestError,
    ModelSlowError,
    ModelTooLongError,
    ModelToolsError,
)

# How servers say that a request is too long: OpenAI, vLLM, llama.cpp, Ollama, LiteLLM, TGI.
_TOO_LONG = re.compile(
    r"context_length_exceeded|ContextWindowExceeded|exceed_context_size|context (?:length|size|window)"
    r"|prompt is too long|input is too long|too many (?:input )?tokens|maximum (?:input|prompt) length|tokens? must be <=",
    re.IGNORECASE,
)
_ROOM = re.compile(
    r"(?:context (?:length|size|window)|maximum (?:input|prompt) length)\D{0,20}(\d{3,7})"
    r"|(\d{3,7}) tokens? (?:context|maximum|limit)",
    re.IGNORECASE,
)
# How servers say that a model, or they, know no tools: vLLM, Ollama, llama.cpp, OpenRouter.
_TOOLS = re.compile(r"\btools?\b|\btool[-_ ](?:call|choice|use)|function[-_ ]call", re.IGNORECASE)
_NO_MONEY = re.compile(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)


class Failures:
    """Of one server; key: of ours, which must not stand in a message."""

    def __init__(self, base_url: str, model: str, key: str) -> None:
        self.where = one_line(base_url, key)
        self._model, self._key = model, key

    def words(self, text: Any) -> str:
        return one_line(str(text), self._key)

    def slow(self) -> ModelError:
        return ModelSlowError(
            f"the model {self._model} at {self.where} did not answer in time",
            "raise TRIAGE_LLM_TIMEOUT, or use a faster model",
        )

    def told(self, error: Exception, tools: bool = False) -> ModelError:
        """The kind of ModelError for whatever langchain, openai and httpx raise. tools: the request held some."""
        import httpx
        import openai

        if much := next((e for e in _chain(error) if isinstance(e, TooMuchError)), None):
            return ModelNonsenseError(f"{self.where} sent {much}", "look at the model server")
        if isinstance(error, openai.APITimeoutError):
            return self.slow()
        if isinstance(error, openai.APIStatusError):
            return self._status(error.status_code, error, tools)
        broken = any(isinstance(e, (httpx.RemoteProtocolError, httpx.ReadError)) for e in _chain(error))
        if broken or isinstance(error, BrokenStreamError):
            return ModelDownError(f"{self.where} broke off in the middle of its answer", "look at the model server")
        if isinstance(error, openai.APIConnectionError):
            *_, cause = _chain(error)
            return ModelDownError(
                f"the model server {self.where} cannot be reached: {self.words(cause) or type(cause).__name__}",
                "does it run, and is TRIAGE_LLM_BASE_URL right?",
            )
        if isinstance(error, openai.APIError) and error.body is not None:
            return ModelDownError(
                f"{self.where} failed in the middle of its answer: {self.words(_said(error))}",
                "look at the model server",
            )
        what = f"{type(error).__name__}: {error}"
        return ModelNonsenseError(
            f"{self.where} gave no answer of the OpenAI protocol: {self.words(what)}",
            "is TRIAGE_LLM_BASE_URL right? it often ends in /v1",
        )

    def _status(self, status: int, error: Any, tools: bool) -> ModelError:
        said = self.words(_said(error))
        if status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(f"{error.code or ''} {said}")):
            return ModelTooLongError(
                f"the request does not fit into the context of {self._model}: {said}",
                "set TRIAGE_LLM_CONTEXT to the tokens that it takes, or use a model with a longer context",
                _room(error, said),
            )
        if tools and status in (400, 404, 422, 500, 501) and _TOOLS.search(said):
            return ModelToolsError(f"{self.where} takes no tools for {self._model}: {said}", "set TRIAGE_LLM_TOOLS=0")
        if status in (401, 403) or (status == 429 and _NO_MONEY.search(f"{error.code or ''} {said}")):
            return ModelRefusedError(
                f"{self.where} refused the key (HTTP {status}): {said}", "look at TRIAGE_LLM_API_KEY and its account"
            )
        wait = _retry_after(error.response.headers)
        if status == 429:
            later = f"; it says to wait {wait:g} s" if wait is not None else ""
            return ModelBusyError(
                f"{self.where} takes no more requests now (HTTP 429){later}: {said}", "try later", wait
            )
        if status >= 500 or status in (408, 409):
            return ModelDownError(f"{self.where} failed (HTTP {status}): {said}", "look at the model server", wait)
        hint = "is the model's name right, and TRIAGE_LLM_BASE_URL?" if status == 404 else "look at TRIAGE_LLM"
        return ModelRequestError(f"{self.where} does not take the request (HTTP {status}): {said}", hint)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it, the innermost last: what the system or the protocol said, of which wrappers tell less."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def _room(error: Any, said: str) -> int | None:
    """The tokens that the model takes, where the server says them: as a field (llama.cpp) or in words."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error")
    told = (inner if isinstance(inner, dict) else body).get("n_ctx")
    if isinstance(told, int):
        return told
    words = _ROOM.search(said)
    return int(next(filter(None, words.groups()))) if words else None


def _said(error: Any) -> str:
    """The server's own message, wherever it put it."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, dict) else body
        for name in ("message", "error", "detail"):
            if body.get(name):
                return str(body[name])
    return str(body or error.message)


def _retry_after(headers: Any) -> float | None:
    """Seconds that the server says to wait: a number, or a date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
