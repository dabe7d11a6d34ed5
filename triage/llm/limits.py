"""A budget over all calls of a piece of work."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from triage.llm.errors import ModelBudgetError, ModelCutError
from triage.llm.values import ChatModel, OnText, Reply, Request, estimated_tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent: calls, tokens (in and out), seconds from the first call on, cost. None: no bound.

    cost: in the currency of the prices, without which it bounds nothing.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None

    def times(self, n: int) -> Limits:
        """For n pieces of work of this size; what may be spent in money stays."""
        calls = None if self.calls is None else self.calls * n
        tokens = None if self.tokens is None else self.tokens * n
        return replace(self, calls=calls, tokens=tokens, seconds=None if self.seconds is None else self.seconds * n)


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

    def __init__(self, model: ChatModel, limits: Limits = Limits(), prices: Prices = Prices()) -> None:
        self._model, self._limits, self._prices = model, limits, prices
        self._began: float | None = None
        self._answering = 0.0  # seconds, as the answers tell: the same when they are replayed
        self.used = Usage()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def cost(self) -> float | None:
        """What was spent; None: the prices are not known."""
        return self._prices.cost(self.used.tokens_in, self.used.tokens_out)

    def nearly(self, share: float) -> str:
        """The limit of which so much is spent: calls, tokens, seconds or cost; "" while all have more left."""
        spent = {
            "calls": (self.used.calls, self._limits.calls),
            "tokens": (self.used.tokens_in + self.used.tokens_out, self._limits.tokens),
            "seconds": (self._answering, self._limits.seconds),
            "cost": (self.cost or 0.0, self._limits.cost),
        }
        return next((name for name, (so_far, most) in spent.items() if most is not None and so_far >= share * most), "")

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Errors: ModelBudgetError when nothing is left, and those of the model."""
        request = self._within(request)
        started = time.monotonic()
        try:
            reply = self._model.ask(request, on_text)
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
            raise _spent("calls", f"{limits.calls} calls")
        if limits.cost is not None:
            request = self._affordable(request, limits.cost)
        if limits.tokens is not None:
            needed = estimated_tokens(request.size)
            left = limits.tokens - used.tokens_in - used.tokens_out - needed
            if left <= 0:
                raise _spent("tokens", f"{limits.tokens} tokens")
            request = replace(request, max_tokens=min(request.max_tokens, left))
        if limits.seconds is not None:
            self._began = time.monotonic() if self._began is None else self._began
            rest = limits.seconds - (time.monotonic() - self._began)
            if rest <= 0:
                raise _spent("seconds", f"{limits.seconds:g} s")
            request = replace(request, deadline=min(request.deadline, rest))
        return request

    def _affordable(self, request: Request, most: float) -> Request:
        """An answer no longer than what is left pays for. Errors: ModelBudgetError when it pays for none."""
        spent, asking = self.cost, self._prices.cost(estimated_tokens(request.size), 0)
        if spent is None or asking is None:
            return request
        left = most - spent - asking
        if left <= 0:
            raise _spent("cost", f"a cost of {most:g}")
        if self._prices.tokens_out:
            longest = int(left / self._prices.tokens_out * 1e6)
            if longest < 1:
                raise _spent("cost", f"a cost of {most:g}")
            return replace(request, max_tokens=min(request.max_tokens, longest))
        return request

    def _count(self, reply: Reply | None, started: float) -> None:
        self._answering += reply.seconds if reply else 0.0
        used = self.used
        self.used = Usage(
            used.calls + 1,
            used.tokens_in + (reply.tokens_in if reply else 0),
            used.tokens_out + (reply.tokens_out if reply else 0),
            used.seconds + time.monotonic() - started,
        )


def _spent(limit: str, what: str) -> ModelBudgetError:
    return ModelBudgetError(f"the model was not asked any further: the limit of {what} is reached", limit=limit)
