"""A conversation in which a model may use tools before it answers: bounded, and ended politely."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triage.agents.asking import Asker
from triage.agents.tools.kit import MOST_CALLS, Toolbox, arguments
from triage.llm.values import Message, Reply, ToolCall, ToolSpec

SPENT = 0.6  # of a limit, after which tools end, so that there is enough left for the answer
_SAME = 3  # times that one call is made
FINISH = "diagnose-finish"


@dataclass(frozen=True, slots=True)
class Bounds:
    """steps: rounds of tool use; spent: names the limit that is nearly reached, "" for none."""

    steps: int
    spent: Callable[[float], str] = lambda _share: ""


@dataclass(frozen=True, slots=True)
class Talk:
    """messages: all of it, the answer last; stopped: answered, steps, calls, tokens, seconds, cost or repeats."""

    messages: tuple[Message, ...]
    text: str
    steps: int = 0
    stopped: str = "answered"


def plain(
    asker: Asker,
    messages: tuple[Message, ...],
    temperature: float = 0.0,
    schema: Mapping[str, Any] | None = None,
    most_tokens: int | None = None,
    tools: tuple[ToolSpec, ...] = (),
) -> Talk:
    """One question, to be answered without tools. tools: those that the messages speak of. Errors: ModelError."""
    text = asker.reply(
        messages, temperature, tools=tools, may_call=False, schema=None if tools else schema, most_tokens=most_tokens
    ).text
    return Talk((*messages, Message("assistant", text)), text)


def with_tools(
    asker: Asker,
    messages: tuple[Message, ...],
    box: Toolbox,
    bounds: Bounds,
    temperature: float = 0.0,
    finish: str = FINISH,
) -> Talk:
    """The model may ask for tools until it answers, or a bound is reached and the prompt `finish` says that it must.

    Errors: ModelError.
    """
    made: Counter[tuple[str, str]] = Counter()
    steps, stopped = 0, ""
    while True:
        reply = asker.reply(messages, temperature, tools=box.specs, may_call=not stopped)
        if stopped or not reply.tool_calls:
            return Talk((*messages, Message("assistant", reply.text)), reply.text, steps, stopped or "answered")
        steps += 1
        calls = _numbered(reply, steps)
        results = [Message("tool", _result(at, call, box, made), call_id=call.id) for at, call in enumerate(calls)]
        messages = (*messages, Message("assistant", reply.text, calls), *results)
        stopped = _stopped(steps, bounds, made)
        if stopped:
            messages = (*messages, Message("user", asker.fill(finish)))


def _result(at: int, call: ToolCall, box: Toolbox, made: Counter[tuple[str, str]]) -> str:
    """What one call is answered; at: which it is of its reply; made: how often each was made, counted on."""
    made[_same(call)] += 1
    if at >= MOST_CALLS:
        return f"not done: at most {MOST_CALLS} calls in one turn"
    if made[_same(call)] > 1:
        return "not done again: you made this very call before, and its answer has not changed"
    return box.use(call)


def _stopped(steps: int, bounds: Bounds, made: Counter[tuple[str, str]]) -> str:
    if max(made.values(), default=0) >= _SAME:
        return "repeats"
    return "steps" if steps >= bounds.steps else bounds.spent(SPENT)


def _same(call: ToolCall) -> tuple[str, str]:
    """What makes two calls one, however their arguments are written."""
    given = arguments(call)
    return call.name, call.arguments if given is None else json.dumps(given, sort_keys=True)


def _numbered(reply: Reply, step: int) -> tuple[ToolCall, ...]:
    """Each with an id of its own: some servers give none, or the same to all."""
    ids = [call.id for call in reply.tool_calls]
    sound = all(ids) and len(set(ids)) == len(ids)
    if sound:
        return reply.tool_calls
    return tuple(replace(call, id=f"call_{step}_{n}") for n, call in enumerate(reply.tool_calls, 1))
