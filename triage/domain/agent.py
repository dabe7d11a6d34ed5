"""What a model did for a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a read-only tool. arguments: as the model wrote them; lines: of the log that it showed; problem: why it did not."""

    name: str
    arguments: str
    lines: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """steps: rounds of tool use; stopped: why the model was asked no further.

    samples: the failure type of each answer that held; objections: of the second pass, those that held, and dropped
    those that did not; both None when it was not asked.
    """

    steps: int = 0
    tools: tuple[ToolUse, ...] = ()
    stopped: str = ""
    samples: tuple[str, ...] = ()
    asked: int = 1  # answers
    objections: int | None = None
    dropped: int | None = None
