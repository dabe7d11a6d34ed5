"""A model that answers in a conversation, about an incident or about the history.

Whatever the model does, the answer of code is there: `Told.answered` says whether it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from triage.agents.tools.kit import Found, Tool, tool
from triage.chat import outcome
from triage.chat.ground import ground_of
from triage.chat.history_brief import HistoryDesk, brief_of_history
from triage.chat.told import inputs
from triage.chat.turn import Brief, Options, Told, Turn
from triage.chat.values import Event, Note, OpenedLog, Subject
from triage.errors import TriageError
from triage.evidence.known import known_nodes, known_ranks
from triage.llm.private import Private
from triage.store.chat_values import StoredTurn

__all__ = ["Options", "Talker", "Told"]

ToolsOf = Callable[[OpenedLog | None], Sequence[Tool]]


class Talker:
    """tools_of: what the model may look into; with None for a log that cannot be read again."""

    def __init__(self, model: Private, tools_of: ToolsOf, options: Options) -> None:
        self._model, self._tools_of, self._options = model, tools_of, options

    def answer(
        self, subject: Subject, said: str, turns: Sequence[StoredTurn], known: Sequence[Event]
    ) -> Generator[Event, None, Told]:
        """Never fails: what goes wrong is a Note. known: what code answers to the same question."""
        yield from self._say_where()
        try:
            log = subject.open_log()
        except TriageError as error:
            log = None
            yield Note(f"the log cannot be read again ({error}): only what is cited of it is known")
        brief = self._brief(subject, said, turns, known, log)
        return (yield from Turn(self._model, self._options, brief).run())

    def about_history(
        self, desk: HistoryDesk, said: str, turns: Sequence[StoredTurn], known: Sequence[Event]
    ) -> Generator[Event, None, Told]:
        """The same of a question about all incidents. Errors: StoreError."""
        yield from self._say_where()
        brief = brief_of_history(desk, said, turns, known)
        return (yield from Turn(self._model, self._options, brief).run())

    def _say_where(self) -> Generator[Event, None, None]:
        if self._model.unsaid:
            yield Note(f"what is asked goes to {self._model.unsaid}, as TRIAGE_LLM_BASE_URL names no other server")
            self._model.unsaid = ""

    def _brief(
        self, subject: Subject, said: str, turns: Sequence[StoredTurn], known: Sequence[Event], log: OpenedLog | None
    ) -> Brief:
        nodes = known_nodes(log.log) if log else set[str]()
        ranks = known_ranks(log.log) if log else set[int]()
        proposed: dict[str, str] = {}
        tools = [*self._tools_of(log), *([_outcome_tool(proposed)] if subject.incident is not None else [])]
        return Brief(
            "chat",
            "chat-question",
            lambda room: inputs(subject, said, turns, known, room),
            ground_of(subject, said, known, nodes, ranks),
            known,
            tools,
            proposed,
        )


def _outcome_tool(proposed: dict[str, str]) -> Tool:
    """Puts what the model proposes into `proposed`, and writes nothing."""

    def propose(asked: Mapping[str, Any]) -> Found:
        given = {name: str(value).strip() for name, value in asked.items()}
        if problem := outcome.problem(given):
            return Found(f"not done: {problem}")
        proposed.update({"cause": "", "fix": "", "worked": "unknown", **given})
        return Found("the user is asked now; nothing is recorded before a yes")

    text = "string"
    return tool(
        "propose_outcome",
        "When the user says how it turned out: asks the user whether to record it. Writes nothing itself.",
        propose,
        verdict=(text, "confirmed, corrected or rejected", True),
        cause=(text, "the cause in the user's words", False),
        fix=(text, "what fixed it, in the user's words", False),
        worked=(text, "yes, no or unknown", False),
    )
