"""Why a model gave no answer that can be used. Each is one line: what is wrong, and what to do.

ModelError
├── OfflineError        no connection is allowed
├── ModelDownError      no connection, or the server failed (5xx)
├── ModelRefusedError   the key is missing, wrong, or has no right (401, 403) or no money
├── ModelBusyError      too many requests (429)
├── ModelSlowError      no answer within the deadline
├── ModelTooLongError   the request does not fit into the model's context
├── ModelCutError       the answer was cut at max_tokens; `reply` holds what came
├── ModelDeclinedError  the model, or a filter before it, declined to answer
├── ModelRequestError   the server does not know the model, or not such a request (other 4xx)
├── ModelToolsError     the server or the model takes no tools
├── ModelNonsenseError  what came is no answer of the protocol
├── ModelBudgetError    the limits of calls, tokens or seconds are spent; nothing was asked
└── ReplayError         the trace holds no answer to this request
"""

from __future__ import annotations

from triage.errors import ModelError
from triage.llm.values import Reply


class OfflineError(ModelError):
    """No connection is allowed."""


class _PassingError(ModelError):
    """May be over in a while: `retry_after` seconds, where the server said so."""

    def __init__(self, message: str, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class ModelDownError(_PassingError):
    """No connection, or the server failed."""


class ModelBusyError(_PassingError):
    """Too many requests."""


class ModelRefusedError(ModelError):
    """The key is missing, wrong, or has no right or no money."""


class ModelSlowError(ModelError):
    """No answer within the deadline."""


class ModelTooLongError(ModelError):
    """The request does not fit into the model's context, of `room` tokens where the server said so."""

    def __init__(self, message: str, hint: str = "", room: int | None = None) -> None:
        super().__init__(message, hint)
        self.room = room


class ModelCutError(ModelError):
    """The answer was cut at max_tokens; what came of it is in `reply`."""

    def __init__(self, message: str, hint: str = "", *, reply: Reply) -> None:
        super().__init__(message, hint)
        self.reply = reply


class ModelDeclinedError(ModelError):
    """The model, or a filter before it, declined to answer."""


class ModelRequestError(ModelError):
    """The server does not know the model, or not such a request."""


class ModelToolsError(ModelError):
    """The server or the model takes no tools."""


class ModelNonsenseError(ModelError):
    """What came is no answer of the protocol."""


class ModelBudgetError(ModelError):
    """The limits are spent; nothing was asked. limit: which: calls, tokens, seconds or cost."""

    def __init__(self, message: str, hint: str = "", limit: str = "") -> None:
        super().__init__(message, hint)
        self.limit = limit


class ReplayError(ModelError):
    """The trace holds no answer to this request."""
