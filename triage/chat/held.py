"""A model's answer on its way to the user: sentence by sentence, each held to the log before it is shown."""

from __future__ import annotations

import re

from triage.chat.ground import Ground, Place, check
from triage.chat.streamed import Emit
from triage.chat.values import Cited, Text

UNCITED = "[no line cited]"
_END = re.compile(r"(?<=[.!?])[\"”')\]*]{0,3}[ \t]+(?=[A-Z0-9\"“`\[(*_-])|\n")
_OPEN = re.compile(
    r"(?i)\b(?:unknown|cannot (?:tell|say|know)|can't tell|do(?:es)? not (?:show|say|tell|know)|not (?:known|shown|told)|no evidence)\b|[?:]\s*$"
)
_SHORT = 40  # characters of a paragraph that claims nothing
_MOST = 4000  # characters without an end of a sentence


class Held:
    """text: all that was let through; dropped: why sentences were not, in words; marked: paragraphs that cite no line."""

    def __init__(self, ground: Ground, emit: Emit) -> None:
        self._ground, self._emit = ground, emit
        self._rest = ""
        self._paragraph, self._places = "", list[Place]()
        self._shown: set[Place] = set()
        self.text = ""
        self.dropped: list[str] = []
        self.marked = 0

    @property
    def cited(self) -> bool:
        return bool(self._shown)

    def feed(self, piece: str) -> None:
        """Text as it comes."""
        self._rest += piece
        at = 0
        for found in _END.finditer(self._rest):
            if self._rest.count("`", at, found.start()) % 2:  # inside of `code. Like this`
                continue
            self._sentence(self._rest[at : found.end()])
            at = found.end()
        self._rest = self._rest[at:]
        if len(self._rest) > _MOST:
            self.end()

    def end(self) -> None:
        """The last sentence, and what is due at the end of a paragraph."""
        if self._rest.strip():
            self._sentence(self._rest)
        self._rest = ""
        self._close()

    def _sentence(self, text: str) -> None:
        body, ends = text.rstrip("\n"), text.endswith("\n")
        if body.strip():
            found = check(body, self._ground)
            if found.problem:
                self.dropped.append(found.problem)
            else:
                self._say(body)
                self._paragraph += body
                self._places += found.places
        if ends:
            self._close()

    def _close(self) -> None:
        """The end of a paragraph: a mark where it cites nothing, then the lines that it cites."""
        claims = len(self._paragraph.strip()) > _SHORT and not _OPEN.search(self._paragraph)
        if claims and not self._places:
            self.marked += 1
            self._say(f" {UNCITED}")
        if self._paragraph:
            self._say("\n")
        for place in dict.fromkeys(self._places):
            if place not in self._shown:
                self._shown.add(place)
                name = next((name for name, where in self._ground.ids.items() if where == place), "")
                self._emit(Cited(*place, self._ground.lines[place], name))
        self._paragraph, self._places = "", []

    def _say(self, text: str) -> None:
        self.text += text
        self._emit(Text(text))
