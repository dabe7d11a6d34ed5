"""A budget over all calls of a piece of work."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from triage.llm.errors import ModelBudgetError, ModelCutError
from triage.llm.values import ChatModel, Reply, Request, estimated_tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent: calls, tokens (in and out), seconds from the first call on. None: no bound."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """Per million tokens, in any currency; None: not known."""

    tokens_in: float | None = None
    tokens_out: float | None = None

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. calls: those that were answered or failed; seconds: spent waiting for answers."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


class Limited:
    """A model that keeps within limits: what is left caps the deadline and the length of each answer.

    The tokens of a request are known only after it: it may go over by the difference to their estimate.
    """

    def __init__(self, model: ChatModel, limits: Limits = Limits()) -> None:
        self._model, self._limits = model, limits
        self._began: float | None = None
        self.used = Usage()

    @property
    def name(self) -> str:
        return self._model.name

    def ask(self, request: Request) -> Reply:
        """Errors: ModelBudgetError when nothing is left, and those of the model."""
        request = self._within(request)
        started = time.monotonic()
        try:
            reply = self._model.ask(request)
        except ModelCutError as error:
            self._count(error.reply, started)
            raise
        except Exception:
            self._count(None, started)
            raise
        self._count(reply, started)
        return reply

    def _within(self, request: Request) -> Request:
        limits, used = self._limits, self.used
        if limits.calls is not None and used.calls >= limits.calls:
            raise _spent(f"{limits.calls} calls")
        if limits.tokens is not None:
            needed = sum(estimated_tokens(m.content) for m in request.messages)
            left = limits.tokens - used.tokens_in - used.tokens_out - needed
            if left <= 0:
                raise _spent(f"{limits.tokens} tokens")
            request = replace(request, max_tokens=min(request.max_tokens, left))
        if limits.seconds is not None:
            self._began = time.monotonic() if self._began is None else self._began
            rest = limits.seconds - (time.monotonic() - self._began)
            if rest <= 0:
                raise _spent(f"{limits.seconds:g} s")
            request = replace(request, deadline=min(request.deadline, rest))
        return request

    def _count(self, reply: Reply | None, started: float) -> None:
        used = self.used
        self.used = Usage(
            used.calls + 1,
            used.tokens_in + (reply.tokens_in if reply else 0),
            used.tokens_out + (reply.tokens_out if reply else 0),
            used.seconds + time.monotonic() - started,
        )


def _spent(what: str) -> ModelBudgetError:
    return ModelBudgetError(f"the model was not asked again: the limit of {what} is reached")
