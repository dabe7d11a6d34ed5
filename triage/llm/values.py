"""What is asked of a chat model and what it answers. Pure; no vendor's types."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants used; arguments: JSON as the model wrote it, not checked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """tool_calls: those of an assistant's message; call_id: of a tool's, the call that it answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            plain["tool_calls"] = [asdict(call) for call in self.tool_calls]
        return {**plain, "call_id": self.call_id} if self.call_id else plain


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may ask for. parameters: JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One question. schema: JSON schema of the answer; deadline: seconds in all, repeated attempts included.

    tools: those that the model may ask for; with may_call False they are named, for messages speak of them, but none
    may be asked for any more. The settings may cap max_tokens and deadline further (open.py).
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 2048
    deadline: float = 120.0
    temperature: float = 0.0
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True

    def to_json(self) -> dict[str, Any]:
        plain = {
            "messages": [m.to_json() for m in self.messages],
            "schema": self.schema,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        if not self.tools:
            return plain
        return {**plain, "tools": [asdict(tool) for tool in self.tools], "may_call": self.may_call}

    @property
    def size(self) -> int:
        """Characters that are sent."""
        tools = sum(len(json.dumps(asdict(tool))) for tool in self.tools)
        return tools + sum(len(m.content) + sum(len(c.arguments) for c in m.tool_calls) for m in self.messages)

    @property
    def key(self) -> str:
        """sha256 of all that decides the answer: not the deadline, nor which model is asked."""
        plain = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. finish: why it ended, as the server says; tokens as it counts them, else by `estimated_tokens`."""

    text: str
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0
    model: str = ""
    seconds: float = 0.0
    tool_calls: tuple[ToolCall, ...] = ()


class ChatModel(Protocol):
    """Anything that answers. name: `provider:model`, for records."""

    @property
    def name(self) -> str: ...

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The answer, whole. on_text: is given its text as it comes, piece by piece, in the caller's thread.

        Errors: ModelError in its kinds (errors.py), never anything else. After an error, what on_text got is void.
        """
        ...


def question(text: str, system: str = "", **fields: Any) -> Request:
    """A request of one user message, behind a system message if there is one."""
    first = (Message("system", system),) if system else ()
    return Request((*first, Message("user", text)), **fields)


def estimated_tokens(characters: int) -> int:
    """At least so many tokens, by the four characters a token of plain English; logs have about two."""
    return characters // 4
