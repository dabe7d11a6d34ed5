"""A conversation's events for a terminal: text wrapped as it comes, cited lines set apart, what a tool does dim."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from triage.chat.values import Asks, Cited, Done, Event, Note, Text, ToolUsed
from triage.text import middle_cut

SCHEMA = "triage.chat/1"
QUOTED = 3  # lines of the terminal for a cited line
_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


def coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Printer:
    """write: takes text as it is to be shown; width: columns; colour: escape codes of our own may stand in it."""

    def __init__(self, write: Callable[[str], None], width: int, colour: bool) -> None:
        self._write, self._width, self._colour = write, max(width, 40), colour
        self._column = 0
        self._indent = self._space = ""

    def __call__(self, event: Event) -> None:
        match event:
            case Text():
                self._text(event.text)
            case Cited():
                self._cited(event)
            case ToolUsed():
                self._apart(f"[{event.name}: {event.words}]" if event.words else f"[{event.name}]", _DIM)
            case Note():
                self._apart(f"({event.text})", _DIM)
            case Asks():
                self._apart(event.text, _BOLD)
            case Done():
                self._end_line()

    def _text(self, text: str) -> None:
        """Word by word; a line that is longer than the terminal goes on under its own indentation. Commands stay whole."""
        for piece in re.findall(r"\n|[^\S\n]+|`[^`\n]*`[^\s`]*|\$ [^\n]+|\S+", text):
            if piece == "\n":
                self._new_line()
            elif piece.isspace():
                self._space += piece
            else:
                self._word(piece)

    def _word(self, word: str) -> None:
        if self._column == 0:
            self._indent = self._space + (" " * (len(word) + 1) if re.fullmatch(r"[-*]|\d{1,3}\.", word) else "")
        elif self._column + len(self._space) + len(word) > self._width and self._column > len(self._indent):
            self._write("\n")
            self._column, self._space = 0, self._indent
        self._write(self._space + word)
        self._column += len(self._space) + len(word)
        self._space = ""

    def _new_line(self) -> None:
        self._write("\n")
        self._column, self._indent, self._space = 0, "", ""

    def _cited(self, c: Cited) -> None:
        self._end_line()
        place = f"{c.file}:{c.line}"
        if not c.id and not c.note and len(place) + len(c.text) + 5 <= self._width:
            self._write(f"  {self._styled(place, _DIM)} | {c.text}\n")
            return
        head = f"{c.id} {place}".strip() + (f"  = {c.note}" if c.note else "")
        for line in textwrap.wrap(head, self._width - 5, break_on_hyphens=False) or [""]:
            self._write(f"  {self._styled(line, _DIM)}\n")
        short = middle_cut(" ".join(c.text.split()), (self._width - 7) * QUOTED - QUOTED * 8)
        for line in textwrap.wrap(short, self._width - 7, break_on_hyphens=False) or [""]:
            self._write(f"     | {line}\n")

    def _apart(self, text: str, style: str) -> None:
        self._end_line()
        for line in text.split("\n"):
            for part in textwrap.wrap(line, self._width, break_on_hyphens=False):
                self._write(f"{self._styled(part, style)}\n")

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_PLAIN}" if self._colour else text

    def _end_line(self) -> None:
        if self._column:
            self._new_line()


def as_json(asked: str, events: list[Event], chat: int | None, incident: int | None) -> Mapping[str, Any]:
    """One turn as one object."""
    done = next((e for e in events if isinstance(e, Done)), Done())
    asks = next((e for e in events if isinstance(e, Asks)), None)
    return {
        "schema": SCHEMA,
        "session": chat,
        "turn": done.turn,
        "incident": incident,
        "asked": asked,
        "answer": "".join(e.text for e in events if isinstance(e, Text)),
        "citations": [asdict(e) for e in events if isinstance(e, Cited)],
        "tools": [asdict(e) for e in events if isinstance(e, ToolUsed)],
        "notes": [e.text for e in events if isinstance(e, Note)],
        "asks": asdict(asks) if asks else None,
        "produced_by": done.produced_by,
        "prompts": [dict(p) for p in done.prompts],
        "unsupported": done.unsupported,
    }
