"""Which lines belong to a Python traceback, told line by line. Lines of several ranks may interleave. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADER = "Traceback (most recent call last)"
_CHAIN = re.compile(r"The above exception was|During handling of the above")
_MAX_LINES = 400
_MAX_GAP = 400  # lines of other ranks between two lines of one traceback
_MAX_OPEN = 16_384  # streams


@dataclass(slots=True, eq=False)
class OpenTraceback:
    """A traceback being read. indent: of its header; last: the number of its last line."""

    indent: int
    last: int
    size: int = 0
    ended: bool = False  # the exception itself was seen
    chained: bool = False  # "During handling ...": another traceback follows
    bare: bool = True  # only headers were seen: ranks without labels that fail together

    def takes(self, number: int, body: str) -> bool:
        if self.size >= _MAX_LINES or number - self.last > _MAX_GAP:
            return False
        if not self.ended:
            return True
        return not body.strip() or bool(_CHAIN.search(body))

    def take(self, number: int, body: str) -> None:
        self.last = number
        self.size += 1
        self.bare = self.bare and HEADER in body
        if _CHAIN.search(body):
            self.chained = True
        elif body.strip() and HEADER not in body and len(body) - len(body.lstrip()) <= self.indent:
            self.ended = True
        if HEADER in body:
            self.ended = False


class Tracebacks:
    """Of one file; asked in order of line number. Each stream (triage.heads.split) has its own open traceback."""

    def __init__(self) -> None:
        self.open: dict[str, OpenTraceback] = {}

    def of(self, stream: str, number: int, body: str) -> OpenTraceback | None:
        """The traceback that the line belongs to."""
        now = self.open.get(stream)
        if HEADER in body:
            if now is None or not (now.chained or now.bare):
                now = self.open[stream] = OpenTraceback(len(body) - len(body.lstrip()), number)
                if len(self.open) > _MAX_OPEN:
                    del self.open[next(iter(self.open))]
            now.chained = False
        elif now is None or not now.takes(number, body):
            self.open.pop(stream, None)
            return None
        now.take(number, body)
        return now
