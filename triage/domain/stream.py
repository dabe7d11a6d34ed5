"""What a followed log becomes, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Turn = Literal["rotated", "truncated", "replaced", "deleted"]


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A line that is shown. open: its newline is still to come; once it is there, the line is told again, whole."""

    file: str
    number: int
    text: str
    serious: bool = False  # an error or a warning, a line that a signature may know, a part of a traceback
    open: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Lines of a file, between two such accounts, that are not shown.

    first, last: their first and last numbers; lines that are shown stand between them. rules: lines by filter rule;
    repeated: those that say what was shown a short while ago.
    """

    file: str
    first: int
    last: int
    rules: Mapping[str, int] = field(default_factory=dict)
    repeated: int = 0

    @property
    def lines(self) -> int:
        return sum(self.rules.values()) + self.repeated


@dataclass(frozen=True, slots=True)
class Turned:
    """Another file took the place of the one that was read, or its content was replaced: line numbers start again."""

    file: str
    turn: Turn
    text: str


StreamEvent = StreamLine | LeftOut | Turned
