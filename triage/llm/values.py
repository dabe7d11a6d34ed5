"""What is asked of a chat model and what it answers. Pure; no vendor's types."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants used; arguments: JSON as the model wrote it, not checked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question. schema: JSON schema of the answer; deadline: seconds in all, repeated attempts included.

    The settings may cap max_tokens and deadline further (open.py).
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 2048
    deadline: float = 120.0
    temperature: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "messages": [{"role": m.role, "content": m.content} for m in self.messages],
            "schema": self.schema,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }

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

    def ask(self, request: Request) -> Reply:
        """The answer, whole. Errors: ModelError in its kinds (errors.py), never anything else."""
        ...


def question(text: str, system: str = "", **fields: Any) -> Request:
    """A request of one user message, behind a system message if there is one."""
    first = (Message("system", system),) if system else ()
    return Request((*first, Message("user", text)), **fields)


def estimated_tokens(text: str) -> int:
    """At least so many tokens, by the four characters a token of plain English; logs have about two."""
    return len(text) // 4
