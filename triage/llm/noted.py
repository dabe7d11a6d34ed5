"""A model whose calls are written down, for the record of a diagnosis."""

from __future__ import annotations

import time

from triage.domain import ModelCall
from triage.llm.errors import ModelCutError
from triage.llm.values import ChatModel, OnText, Reply, Request


class Noted:
    """calls: those so far, failed ones too."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.calls: tuple[ModelCall, ...] = ()

    @property
    def name(self) -> str:
        return self._model.name

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Errors: those of the model."""
        started = time.monotonic()
        try:
            reply = self._model.ask(request, on_text)
        except Exception as error:
            self._note(started, error.reply if isinstance(error, ModelCutError) else None, type(error).__name__)
            raise
        self._note(started, reply, "")
        return reply

    def _note(self, started: float, reply: Reply | None, error: str) -> None:
        spent = (reply.tokens_in, reply.tokens_out) if reply else (0, 0)
        self.calls = (*self.calls, ModelCall(self.name, time.monotonic() - started, *spent, error))
