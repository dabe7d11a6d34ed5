"""A model that never reads personal data: it is replaced in what is asked, and put back into what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from triage.llm.clean import clean_request
from triage.llm.errors import ModelCutError
from triage.llm.values import ChatModel, Message, OnText, Reply, Request, ToolCall
from triage.redact.pseudonyms import Pseudonyms

_BEGUN = re.compile(r"<[A-Za-z]{0,5}(?:-\d{0,6})?\Z")  # the start of a stand-in


class Private:
    """Asks another model in other words. Whatever records or replays calls stands behind it: a trace holds what was sent."""

    def __init__(self, model: ChatModel, kept: Iterable[str] = (), unsaid: str = "") -> None:
        """kept: names that the model must see, such as those of nodes; unsaid: the server, where no setting names it."""
        self._model = model
        self.unsaid = unsaid
        self._names = Pseudonyms(kept)

    @property
    def name(self) -> str:
        return self._model.name

    def for_job(self, kept: Iterable[str]) -> Private:
        """The same model for another job, whose stand-ins begin anew."""
        return Private(self._model, kept)

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        request = clean_request(request)  # what is put back later holds no secret
        hidden = replace(request, messages=tuple(map(self._hidden, request.messages)))
        told = _Restored(on_text, self._names) if on_text else None
        try:
            reply = self._model.ask(hidden, told)
        except ModelCutError as error:
            error.reply = self._restored(error.reply)
            raise
        if told is not None:
            told.end()
        return self._restored(reply)

    def _hidden(self, message: Message) -> Message:
        calls = tuple(replace(call, arguments=self._names.hide(call.arguments)) for call in message.tool_calls)
        return replace(message, content=self._names.hide(message.content), tool_calls=calls)

    def _restored(self, reply: Reply) -> Reply:
        return replace(
            reply, text=self._names.restore(reply.text), tool_calls=tuple(map(self._restored_call, reply.tool_calls))
        )

    def _restored_call(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._names.restore(call.arguments))


class _Restored:
    """Hands text on as it comes, but for an end that may be half a stand-in."""

    def __init__(self, on_text: OnText, names: Pseudonyms) -> None:
        self._on_text, self._names, self._held = on_text, names, ""

    def __call__(self, text: str) -> None:
        text = self._held + text
        begun = _BEGUN.search(text)
        at = begun.start() if begun else len(text)
        text, self._held = text[:at], text[at:]
        if text:
            self._on_text(self._names.restore(text))

    def end(self) -> None:
        if self._held:
            self._on_text(self._held)
