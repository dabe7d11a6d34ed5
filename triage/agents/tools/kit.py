"""How a model's call of a tool becomes an answer: checked, bounded, without secrets, fenced as data. Nothing is changed by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage import prompts
from triage.domain import LogLine, ToolUse
from triage.errors import TriageError
from triage.llm.clean import sound
from triage.llm.values import ToolCall, ToolSpec
from triage.redact import redact

MOST_CHARS = 6000  # of one answer
MOST_LINE = 400  # characters of a line
MOST_CALLS = 6  # of one reply
MOST_NUMBER = 10**12
MOST_ARGUMENTS = 20_000  # characters of the arguments of a call
RESULT = "diagnose-tool"
_KEPT_ARGUMENTS = 300  # characters, in the record of a use
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "array": list}


class ToolError(Exception):
    """What is wrong with a call, in words for the model."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a tool found. lines: those of the log, which may be cited now; text: what is said besides, above them."""

    text: str = ""
    lines: Sequence[LogLine] = ()
    names: Sequence[str] = ()  # further words of the log or of what was collected of this job, which may be named now


@dataclass(frozen=True, slots=True)
class Tool:
    """run: given arguments that fit the schema. Errors of run: ToolError, TriageError."""

    spec: ToolSpec
    run: Callable[[Mapping[str, Any]], Found]


def spec(name: str, description: str, **arguments: tuple[str, str, bool]) -> ToolSpec:
    """arguments: name to type (string, integer, or array of strings), meaning, whether it must be given."""
    schema = {
        "type": "object",
        "properties": {name: _schema(kind, means) for name, (kind, means, _) in arguments.items()},
        "required": [name for name, (_, _, must) in arguments.items() if must],
    }
    return ToolSpec(name, description, schema)


def _schema(kind: str, means: str) -> dict[str, Any]:
    items = {"items": {"type": "string"}} if kind == "array" else {}
    return {"type": kind, **items, "description": means}


def tool(
    name: str, description: str, run: Callable[[Mapping[str, Any]], Found], **arguments: tuple[str, str, bool]
) -> Tool:
    """arguments: as those of spec."""
    return Tool(spec(name, description, **arguments), run)


@dataclass(slots=True)
class Toolbox:
    """seen: is given the lines and names of the job that a call showed; uses: each call, in order; result: the prompt
    that fences what a tool found; most: characters of one answer."""

    tools: Sequence[Tool]
    seen: Callable[[Sequence[LogLine], Sequence[str]], None]
    uses: list[ToolUse] = field(default_factory=list)
    result: str = RESULT
    most: int = MOST_CHARS

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(known.spec for known in self.tools)

    def use(self, call: ToolCall) -> str:
        """What the model is told. Never fails: what cannot be done is said in words."""
        return self.answer(call)[0]

    def answer(self, call: ToolCall) -> tuple[str, str]:
        """What the model is told, and why it was not done, "" where it was."""
        try:
            text, shown = _bounded(found := self._run(call), self.most)
        except (ToolError, TriageError) as error:
            return self._not_done(call, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a model asks for, the diagnosis goes on
            return self._not_done(call, f"the tool failed ({type(error).__name__})")
        self.seen(shown, found.names)
        self._note(call, len(shown))
        return self._fenced(call.name, text), ""

    def _not_done(self, call: ToolCall, why: str) -> tuple[str, str]:
        self._note(call, 0, problem=why)
        return self._fenced(call.name, f"not done: {why}"), why

    def _fenced(self, name: str, text: str) -> str:
        return prompts.load(self.result).fill(name=name[:60], result=text)

    def _run(self, call: ToolCall) -> Found:
        known = next((t for t in self.tools if t.spec.name == call.name), None)
        if known is None:
            names = ", ".join(t.spec.name for t in self.tools)
            raise ToolError(f"there is no tool {call.name[:60]!r}; there are {names}")
        return known.run(_arguments(call, known.spec))

    def _note(self, call: ToolCall, lines: int, problem: str = "") -> None:
        arguments = redact(call.arguments)[:_KEPT_ARGUMENTS]
        self.uses.append(ToolUse(call.name[:60], arguments, lines, problem[:_KEPT_ARGUMENTS]))


def shown(line: LogLine) -> str:
    """As models see lines: FILE:LINE TEXT."""
    return f"{line.file}:{line.number} {redact(line.text)[:MOST_LINE]}"


def _bounded(found: Found, most: int) -> tuple[str, list[LogLine]]:
    """The text, and the lines of which there was room."""
    parts = [redact(line) for line in found.text.split("\n")] if found.text else []
    room = most - sum(map(len, parts))
    lines = []
    for line in found.lines:
        said = shown(line)
        if len(said) + 1 > room:
            break
        room -= len(said) + 1
        lines.append(line)
        parts.append(said)
    text = "\n".join(parts)
    text = text if len(text) <= most else f"{text[:most]}\n... cut here: there is no more room; ask for less"
    left = len(found.lines) - len(lines)
    return text + (f"\n... {left} more lines than there is room for; ask for less" if left else ""), lines


def arguments(call: ToolCall) -> dict[str, Any] | None:
    """As they are written, whatever the tool takes; None: no JSON object, or too long or too deep to be one."""
    if len(call.arguments) > MOST_ARGUMENTS:
        return None
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _arguments(call: ToolCall, spec: ToolSpec) -> dict[str, Any]:
    """Errors: ToolError for what does not fit the schema."""
    if len(call.arguments) > MOST_ARGUMENTS:
        raise ToolError(f"the arguments are longer than {MOST_ARGUMENTS} characters")
    given = arguments(call)
    if given is None:
        raise ToolError("the arguments are no JSON object")
    known = spec.parameters["properties"]
    given = {name: value for name, value in given.items() if value is not None}
    if strange := set(given) - set(known):
        raise ToolError(f"{spec.name} has no argument {', '.join(sorted(strange))[:100]}; it has {', '.join(known)}")
    if lacking := set(spec.parameters["required"]) - set(given):
        raise ToolError(f"{spec.name} needs {', '.join(sorted(lacking))}")
    return {name: _as(known[name]["type"], value, name) for name, value in given.items()}


def _as(kind: str, value: Any, name: str) -> Any:
    """A number that came as text is meant as one."""
    if kind == "integer" and isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value[:12])
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        value = int(value)
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
        raise ToolError(f"{name} must be of type {kind}")
    if isinstance(value, list):
        return [_as("string", item, f"each of {name}") for item in value]
    if isinstance(value, int) and not 0 <= value <= MOST_NUMBER:
        raise ToolError(f"{name} must be from 0 to {MOST_NUMBER}")
    return sound(value) if isinstance(value, str) else value
