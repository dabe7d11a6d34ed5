"""One way to ask for all agents: a prompt by name, its use noted, a cut answer taken for what it is worth."""

from __future__ import annotations

from triage import prompts
from triage.domain import PromptUsed
from triage.llm.errors import ModelCutError
from triage.llm.values import ChatModel, question


class Asker:
    """Asks a model by the prompts of prompts/. Errors of `ask`: ModelError, but for an answer cut at its length."""

    def __init__(self, model: ChatModel, most_tokens: int = 2048, deadline: float = 120.0) -> None:
        self._model, self._most_tokens, self._deadline = model, most_tokens, deadline
        self._used: dict[str, PromptUsed] = {}

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def used(self) -> tuple[PromptUsed, ...]:
        """The prompts asked so far, once each."""
        return tuple(self._used.values())

    def ask(self, prompt: str, temperature: float = 0.0, **inputs: str) -> str:
        """What the model says."""
        chosen = prompts.load(prompt)
        self._used[prompt] = PromptUsed(chosen.name, str(chosen.version), chosen.sha256)
        asked = question(
            chosen.fill(**inputs), max_tokens=self._most_tokens, deadline=self._deadline, temperature=temperature
        )
        try:
            return self._model.ask(asked).text
        except ModelCutError as error:
            return error.reply.text
