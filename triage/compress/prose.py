"""Text of no repeating kind, as a program prints that writes or reads stories: words of trouble in it tell of no trouble. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.compress import guard
from triage.compress.folding import Entry

_MUCH = 300  # lines of prose that make a file one that prints prose
_AROUND = 3  # lines before and after that are prose as well
_MIN_WORDS = 4
_TECHNICAL = re.compile(r"[\d=/\\\[\]{}<>_|@#$%^*~`]|\w[.:]\w|::|\(\)|^\s*[\w.]+:(?:\s|$)")


def calm(files: Sequence[Sequence[Entry]]) -> None:
    """Makes calm what only speaks of trouble or warns amid prose, in files with much of it."""
    for entries in files:
        prose = [_is_prose(entry) for entry in entries]
        if sum(prose) < _MUCH:
            continue
        for at, entry in enumerate(entries):
            around = prose[max(0, at - _AROUND) : at + _AROUND + 1]
            speaks = entry.weight == "warning" and not entry.line.hot and entry.line.level is None
            amid = sum(around) > _AROUND + 1
            if speaks and amid and (prose[at] or guard.alarm(entry.line.text) == "mention"):
                entry.weight = "other"


def _is_prose(entry: Entry) -> bool:
    """Whether it may be a line of a book: words and their punctuation, nothing that a program would put in."""
    words = entry.body.split()
    if len(words) < _MIN_WORDS or entry.block >= 0 or entry.line.time is not None:
        return False
    return not _TECHNICAL.search(entry.body[:400])
