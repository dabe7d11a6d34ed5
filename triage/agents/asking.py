"""One way to ask for all agents: a prompt by name, its use noted, a cut answer taken for what it is worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from triage import prompts
from triage.domain import PromptUsed
from triage.llm.errors import ModelCutError
from triage.llm.values import ChatModel, Message, OnText, Reply, Request, ToolSpec

_TOLD_EVERY = 0.3  # seconds


class Asker:
    """Asks a model by the prompts of prompts/. Errors of `ask` and `reply`: ModelError, but for an answer cut at its length.

    tell: is told now and then how much of an answer has come; on_text: is given an answer as it comes. With either,
    answers are streamed.
    """

    def __init__(
        self,
        model: ChatModel,
        most_tokens: int = 2048,
        deadline: float = 120.0,
        tell: Callable[[str], None] | None = None,
        on_text: OnText | None = None,
    ) -> None:
        self._model, self._most_tokens, self._deadline = model, most_tokens, deadline
        self._tell, self._on_text = tell, on_text
        self._used: dict[str, PromptUsed] = {}

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def used(self) -> tuple[PromptUsed, ...]:
        """The prompts asked so far, once each."""
        return tuple(self._used.values())

    def fill(self, prompt: str, **inputs: str) -> str:
        """The text of a prompt that is going to be asked."""
        chosen = prompts.load(prompt)
        self._used[prompt] = PromptUsed(chosen.name, str(chosen.version), chosen.sha256)
        return chosen.fill(**inputs)

    def ask(self, prompt: str, temperature: float = 0.0, **inputs: str) -> str:
        """What the model says to one prompt."""
        return self.reply((Message("user", self.fill(prompt, **inputs)),), temperature).text

    def reply(
        self,
        messages: tuple[Message, ...],
        temperature: float = 0.0,
        *,
        tools: tuple[ToolSpec, ...] = (),
        may_call: bool = True,
        schema: Mapping[str, Any] | None = None,
        most_tokens: int | None = None,
    ) -> Reply:
        """What the model says in a conversation."""
        request = Request(
            messages, schema, most_tokens or self._most_tokens, self._deadline, temperature, tools, may_call
        )
        try:
            return self._model.ask(request, self._listener())
        except ModelCutError as error:
            return error.reply

    def _listener(self) -> OnText | None:
        return self._on_text or (_Counter(self.model, self._tell) if self._tell else None)


class _Counter:
    """Tells how many characters of an answer have come."""

    def __init__(self, model: str, tell: Callable[[str], None]) -> None:
        self._model, self._tell = model, tell
        self._characters, self._last = 0, 0.0

    def __call__(self, text: str) -> None:
        self._characters += len(text)
        if time.monotonic() - self._last >= _TOLD_EVERY:
            self._last = time.monotonic()
            self._tell(f"{self._model} answers: {self._characters} characters so far")
