"""One question to a model: with tools, streamed, each sentence held to the log before it is shown."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triage.agents.asking import Asker
from triage.agents.talking import Bounds, plain, with_tools
from triage.agents.tools.kit import Found, Tool, Toolbox
from triage.chat.ground import Ground
from triage.chat.held import Held
from triage.chat.streamed import Emit, streamed
from triage.chat.told import ROOM
from triage.chat.values import CODE, Event, Note, ToolUsed
from triage.errors import ModelError
from triage.llm.errors import ModelRequestError, ModelTooLongError, ModelToolsError
from triage.llm.limits import Limited, Limits, Prices
from triage.llm.private import Private
from triage.llm.values import Message

_SMALL = 16_000  # tokens of a context in which there is no room for tools
_ANSWER = 1024  # tokens
_NO_PRICES = Prices()


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


@dataclass(frozen=True, slots=True)
class Brief:
    """What a model is asked. system, question: prompts; inputs: of the question, for so many tokens of room.

    known: what code answers; outcome: filled by a tool with what the model proposes; nothing: what supports no answer
    that cites none.
    """

    system: str
    question: str
    inputs: Callable[[int], Mapping[str, str]]
    ground: Ground
    known: Sequence[Event]
    tools: Sequence[Tool] = ()
    outcome: dict[str, str] = field(default_factory=dict)
    nothing: str = "no line of the log"


@dataclass(slots=True)
class Turn:
    """One question, on its way to an answer."""

    model: Private
    options: Options
    brief: Brief

    def run(self) -> Generator[Event, None, Told]:
        ground = self.brief.ground
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
        elif not held.cited and not self.brief.outcome:
            yield Note(
                f"{self.brief.nothing} supports this answer of {name}"
                + ("; what code knows of it:" if self.brief.known else "")
            )
        supported = held.cited or (not self.brief.known and bool(held.text.strip())) or bool(self.brief.outcome)
        by = f"llm:{name.removeprefix('llm:')}" if held.text.strip() else CODE
        return Told(not failed and supported, by, prompts, len(held.dropped) + held.marked, self.brief.outcome)

    def _ask(self, asker: Asker, limited: Limited, ground: Ground, held: Held, emit: Emit) -> None:
        """With tools, where there are some and the model takes them; in less room, where it has no more."""
        room = min(self.options.context or ROOM, ROOM)
        small = self.options.context is not None and self.options.context < _SMALL
        tools = () if small or not self.options.steps else self.brief.tools
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
        steps = str(self.options.steps if tools else 0)
        messages = (
            Message("system", asker.fill(self.brief.system, steps=steps)),
            Message("user", asker.fill(self.brief.question, **self.brief.inputs(room))),
        )
        if not tools:
            plain(asker, messages, most_tokens=_ANSWER)
            return
        box = Toolbox([_telling(t, held, emit) for t in tools], ground.show, result="chat-tool")
        with_tools(asker, messages, box, Bounds(self.options.steps, limited.nearly), finish="chat-finish")


def _telling(known: Tool, held: Held, emit: Emit) -> Tool:
    """The same tool, whose use is told; what was said before it is let through first."""

    def run(asked: Mapping[str, Any]) -> Found:
        held.end()
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        emit(ToolUsed(known.spec.name, words))
        return known.run(asked)

    return replace(known, run=run)
