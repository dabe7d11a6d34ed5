"""A model that answers in a conversation: with tools, streamed, each sentence held to the log before it is shown.

Whatever the model does, the answer of code is there: `Told.answered` says whether it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triage.agents.asking import Asker
from triage.agents.talking import Bounds, plain, with_tools
from triage.agents.tools.kit import Found, Tool, Toolbox, tool
from triage.chat import outcome
from triage.chat.ground import Ground, ground_of
from triage.chat.held import Held
from triage.chat.streamed import Emit, streamed
from triage.chat.told import ROOM, inputs
from triage.chat.values import CODE, Event, Note, OpenedLog, Subject, ToolUsed
from triage.errors import ModelError, TriageError
from triage.evidence.known import known_nodes, known_ranks
from triage.llm.errors import ModelRequestError, ModelTooLongError, ModelToolsError
from triage.llm.limits import Limited, Limits, Prices
from triage.llm.private import Private
from triage.llm.values import Message
from triage.store.chat_values import StoredTurn

_SMALL = 16_000  # tokens of a context in which there is no room for tools
_ANSWER = 1024  # tokens
_NO_PRICES = Prices()
ToolsOf = Callable[[OpenedLog | None], Sequence[Tool]]


@dataclass(frozen=True, slots=True)
class Options:
    """steps: rounds of tools; timeout: seconds of a call; context: tokens that the model takes, None: many."""

    steps: int = 8
    timeout: float = 120.0
    context: int | None = None
    limits: Limits = field(default_factory=Limits)  # of one answer
    prices: Prices = _NO_PRICES


@dataclass(frozen=True, slots=True)
class Told:
    """answered: something of the answer held and rests on a line. unsupported: sentences dropped, paragraphs marked.

    outcome: fields of an outcome that the model proposes, {} for none.
    """

    answered: bool
    produced_by: str = CODE
    prompts: tuple[Mapping[str, Any], ...] = ()
    unsupported: int = 0
    outcome: Mapping[str, str] = field(default_factory=dict)


class Talker:
    """tools_of: what the model may look into; with None for a log that cannot be read again."""

    def __init__(self, model: Private, tools_of: ToolsOf, options: Options) -> None:
        self._model, self._tools_of, self._options = model, tools_of, options

    @property
    def name(self) -> str:
        return self._model.name

    def answer(
        self, subject: Subject, said: str, turns: Sequence[StoredTurn], known: Sequence[Event]
    ) -> Generator[Event, None, Told]:
        """Never fails: what goes wrong is a Note. known: what code answers to the same question."""
        if self._model.unsaid:
            yield Note(f"what is asked goes to {self._model.unsaid}, as TRIAGE_LLM_BASE_URL names no other server")
            self._model.unsaid = ""
        try:
            log = subject.open_log()
        except TriageError as error:
            log = None
            yield Note(f"the log cannot be read again ({error}): only what is cited of it is known")
        turn = _Turn(self._model, self._options, subject, said, turns, known, log, self._tools_of(log))
        return (yield from turn.run())


@dataclass(slots=True)
class _Turn:
    """One question, on its way to an answer."""

    model: Private
    options: Options
    subject: Subject
    said: str
    turns: Sequence[StoredTurn]
    known: Sequence[Event]
    log: OpenedLog | None
    tools: Sequence[Tool]
    outcome: dict[str, str] = field(default_factory=dict)

    def run(self) -> Generator[Event, None, Told]:
        nodes = known_nodes(self.log.log) if self.log else set[str]()
        ranks = known_ranks(self.log.log) if self.log else set[int]()
        ground = ground_of(self.subject, self.said, self.known, nodes, ranks)
        limited = Limited(self.model.for_job(ground.nodes), self.options.limits, self.options.prices)
        held: list[Held] = []
        failed, prompts = "", list[tuple[Mapping[str, Any], ...]]()

        def work(emit: Emit) -> None:
            held.append(Held(ground, emit))
            asker = Asker(limited, _ANSWER, self.options.timeout, on_text=held[0].feed)
            try:
                self._ask(asker, limited, ground, held[0], emit)
            finally:
                prompts.append(tuple({"name": p.name, "version": p.version, "sha256": p.sha256} for p in asker.used))
            held[0].end()

        try:
            yield from streamed(work)
        except ModelError as error:
            failed = str(error)
        except Exception as error:  # noqa: BLE001 - a server or a model chose what came
            failed = f"asking it failed ({type(error).__name__})"
        return (yield from self._end(held[0], failed, prompts[0] if prompts else ()))

    def _end(self, held: Held, failed: str, prompts: tuple[Mapping[str, Any], ...]) -> Generator[Event, None, Told]:
        """Says what did not hold, and why code answers where it must."""
        name = self.model.name
        if held.dropped:
            why = "; ".join(dict.fromkeys(held.dropped[:3]))
            count = len(held.dropped)
            yield Note(
                f"of what {name} said, {count} sentence{'s' * (count > 1)} did not hold and {'were' if count > 1 else 'was'} dropped: {why}"
            )
        if failed:
            begun = "what stands above is only the beginning of its answer; " if held.text.strip() else ""
            yield Note(f"{name} gave no whole answer: {failed}; {begun}what code knows of it:")
        elif not held.text.strip():
            yield Note(f"nothing that {name} said holds; what code knows of it:")
        elif not held.cited and not self.outcome:
            yield Note(
                f"no line of the log supports this answer of {name}"
                + ("; what code knows of it:" if self.known else "")
            )
        supported = held.cited or (not self.known and bool(held.text.strip())) or bool(self.outcome)
        by = f"llm:{name.removeprefix('llm:')}" if held.text.strip() else CODE
        return Told(not failed and supported, by, prompts, len(held.dropped) + held.marked, self.outcome)

    def _ask(self, asker: Asker, limited: Limited, ground: Ground, held: Held, emit: Emit) -> None:
        """With tools, where there are some and the model takes them; in less room, where it has no more."""
        room = min(self.options.context or ROOM, ROOM)
        small = self.options.context is not None and self.options.context < _SMALL
        tools = () if small or not self.options.steps else (*self.tools, *self._outcome_tool())
        try:
            self._once(asker, limited, ground, held, emit, room - _ANSWER, tools)
        except (ModelToolsError, ModelRequestError):
            if not tools:
                raise
            self._once(asker, limited, ground, held, emit, room - _ANSWER, ())
        except ModelTooLongError as error:
            less = (error.room or room // 2) - 2 * _ANSWER
            self._once(asker, limited, ground, held, emit, max(less, _ANSWER), ())

    def _once(
        self, asker: Asker, limited: Limited, ground: Ground, held: Held, emit: Emit, room: int, tools: Sequence[Tool]
    ) -> None:
        told = inputs(self.subject, self.said, self.turns, self.known, room)
        steps = str(self.options.steps if tools else 0)
        messages = (
            Message("system", asker.fill("chat", steps=steps)),
            Message("user", asker.fill("chat-question", **told)),
        )
        if not tools:
            plain(asker, messages, most_tokens=_ANSWER)
            return
        box = Toolbox([_telling(t, held, emit) for t in tools], ground.show, result="chat-tool")
        with_tools(asker, messages, box, Bounds(self.options.steps, limited.nearly), finish="chat-finish")

    def _outcome_tool(self) -> Iterator[Tool]:
        if self.subject.incident is None:
            return
        text = "string"
        yield tool(
            "propose_outcome",
            "When the user says how it turned out: asks the user whether to record it. Writes nothing itself.",
            self._propose,
            verdict=(text, "confirmed, corrected or rejected", True),
            cause=(text, "the cause in the user's words", False),
            fix=(text, "what fixed it, in the user's words", False),
            worked=(text, "yes, no or unknown", False),
        )

    def _propose(self, asked: Mapping[str, Any]) -> Found:
        given = {name: str(value).strip() for name, value in asked.items()}
        if problem := outcome.problem(given):
            return Found(f"not done: {problem}")
        self.outcome = {"cause": "", "fix": "", "worked": "unknown", **given}
        return Found("the user is asked now; nothing is recorded before a yes")


def _telling(known: Tool, held: Held, emit: Emit) -> Tool:
    """The same tool, whose use is told; what was said before it is let through first."""

    def run(asked: Mapping[str, Any]) -> Found:
        held.end()
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        emit(ToolUsed(known.spec.name, words))
        return known.run(asked)

    return replace(known, run=run)
