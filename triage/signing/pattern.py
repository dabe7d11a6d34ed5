"""The pattern of a line that tells a cause, written by code: its words stay, what is of one job alone becomes a class.

Pure. Whatever the line says, its text ends up as literals: no part of it can act as an operator.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from triage.compress.mining import own_text
from triage.compress.wildcards import Piece, anything, literal, pieces
from triage.text import excerpt

MAX_BODY = 240  # characters of a line that a pattern is made of
CUT = 500  # characters; a cited line of this length was cut, perhaps in a word
_LONG_WORD = 30  # letters; a longer one is no word of a language, and may be a secret that has no name before it
_CLASS = r"[\w.-]+"
_NUMBER = r"[-+]?\d[\d.,]*"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
# What is never a word of the message. What stood where a secret was cut out is not known.
_FOREIGN = re.compile(
    r"(?P<secret>\S*\[redacted:[\w-]{1,40}\]\S*)|(?P<address>[\w.+-]{1,80}@[\w-]{1,80}(?:\.[\w-]{1,80})+)"
    r"|(?P<quoted>(?<!\w)'[^'\n]{1,200}'(?!\w)|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`)"
)
_HOST_BEFORE = re.compile(r"\b(?:on|host|hostname|node|nodes|peer|server|from|machine)[ =:'\"]{1,3}$", re.IGNORECASE)


def proposals(line: str, names: Collection[str] = ()) -> tuple[str, ...]:
    """Patterns that find the line wherever it stands, the widest first: what is quoted open, then kept.

    names: of nodes and the like that stand for this job alone. Empty where the line says nothing.
    """
    body = _whole(line)
    known = frozenset(name for name in names if name)
    found = ("".join(_parts(body, known, kept)).strip() for kept in (False, True))
    return tuple(dict.fromkeys(_bounded(pattern) for pattern in found if pattern))


def _whole(line: str) -> str:
    """The line's own text, without a word that may be half a word, at most MAX_BODY characters up to a blank."""
    body = own_text(line) or line.strip()
    if len(line) >= CUT:
        body = body.partition(" ")[2].rpartition(" ")[0] or body
    if len(body) > MAX_BODY:
        body = excerpt(body, limit=MAX_BODY).rpartition(" ")[0] or body[:MAX_BODY]
    return body.strip()


def _parts(body: str, names: frozenset[str], kept: bool) -> Iterator[str]:
    at = 0
    for match in _FOREIGN.finditer(body):
        yield from _words(body[at : match.start()], names)
        if match["secret"] or match["address"]:
            yield r"\S+"
        elif kept:
            yield from _words(match[0], names)
        else:
            mark = literal(match[0][0])
            yield f"{mark}[^{mark}]+{mark}"
        at = match.end()
    yield from _words(body[at:], names)


def _words(text: str, names: frozenset[str]) -> Iterator[str]:
    before = ""
    for piece in pieces(text):
        yield _part(piece, before, names)
        before += piece.text


def _part(piece: Piece, before: str, names: frozenset[str]) -> str:
    if piece.kind == "number":
        return _NUMBER + (_EXPONENT if "e" in piece.text.lower() else "")
    if piece.kind == "path":
        return anything("path")
    if piece.text in names or (piece.kind in ("name", "id") and _HOST_BEFORE.search(before[-12:])):
        return _CLASS
    if piece.kind in ("word", "name") and max(map(len, re.split(r"\W", piece.text))) > _LONG_WORD:
        return _CLASS
    return piece.pattern


def _bounded(pattern: str) -> str:
    """No word of the pattern may be a part of another word of a line."""
    begin = r"\b" if re.match(r"[A-Za-z0-9]", pattern) else ""  # as RE2 knows words
    return f"{begin}{pattern}" + (r"\b" if re.search(r"(?<!\\)[A-Za-z0-9]$", pattern) else "")
