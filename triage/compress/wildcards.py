"""A line cut into pieces, each with the pattern of what may stand in its place: words stay, values become classes.

No class takes a blank, and none that stands for a number, a name or a path takes a plain word: so a message can never
slip into the place of a value.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Kind = Literal["space", "mark", "word", "number", "clock", "hex", "id", "name", "path"]

MAX_WORDS = 12  # plain words that one place of a pattern may list
_LISTED = 3  # names, paths and the like that are listed before a class stands for all
_NUMBER = r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?"
_ANY: dict[Kind, str] = {
    "number": _NUMBER,
    "clock": r"\d+(?:[-/:T_]\d+)+(?:[.,]\d+)?Z?",
    "hex": r"(?:0x)?[0-9a-fA-F]+(?:-[0-9a-fA-F]+)*",
    "id": r"[\w.-]*\d[\w.-]*",
    "name": r"[A-Za-z\d]*(?:[._-]+[A-Za-z\d]+)+",
    "path": r"[\w.~@:-]*(?:/+[\w.@+=:~%-]+)+/?",
}
_UNIT = r"(?:%|[A-Za-zµ]{1,5}(?:/[A-Za-z]{1,8})?)(?![\w.-])"
_PIECE = re.compile(
    rf"""(?P<space>[ \t]+)
    | (?P<clock>\d{{4}}[-/]\d\d[-/]\d\d(?:[T_]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?Z?)?(?![\w-])|\d{{1,6}}(?::\d\d){{1,3}}(?:[.,]\d{{1,9}})?(?![\w-]))
    | (?P<path>(?:\w{{1,10}}:/)?[\w.~@-]{{0,80}}(?:/[\w.@+=:~%-]{{1,200}}){{1,40}}/?)
    | (?P<number>(?:(?<![\w)])[-+])?\d+(?:,\d\d\d)*(?:\.\d+)?(?:[eE][-+]?\d+)?(?={_UNIT}|(?![\w]|[.-]\w)))
    | (?P<hex>(?:0x[0-9a-fA-F]{{1,32}}|(?=[0-9a-f-]{{0,60}}\d)(?=[0-9a-f-]{{0,60}}[a-f])[0-9a-f]{{8,64}}(?:-[0-9a-f]{{4,32}}){{0,6}})(?![\w-]))
    | (?P<name>\w+(?:[.-]\w+)*)
    | (?P<mark>(.)\8{{2,}}|.)""",
    re.VERBOSE,
)
_SEPARATOR = re.compile(r"([^A-Za-z0-9]+)")
_LETTERS_THEN_DIGITS = re.compile(r"([A-Za-z]+)\d+")
_DIGITS_THEN_LETTERS = re.compile(r"\d+([A-Za-z]+)")
_FRACTION = re.compile(r"[\d/.,]+")
_SLASHED_WORDS = re.compile(r"[A-Za-z]+/[A-Za-z]+")


class Piece(NamedTuple):
    kind: Kind
    text: str
    pattern: str


def pieces(body: str) -> list[Piece]:
    """The pieces of a line, in order; together they are the whole line."""
    found: list[Piece] = []
    for match in _PIECE.finditer(body):
        kind, text = match.lastgroup or "mark", match[0]
        if kind == "path" and _FRACTION.fullmatch(text):  # 12/500
            found += [_piece("mark" if part == "/" else "name", part) for part in re.split("(/)", text) if part]
        else:
            found.append(_piece(kind, text))
    return found


def anything(kind: Kind) -> str:
    """The pattern that all values of this kind have in common."""
    return _ANY[kind]


def literal(text: str) -> str:
    """The pattern of the text itself."""
    if text.isalnum():
        return text
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


@functools.lru_cache(20_000)
def _piece(kind: str, text: str) -> Piece:
    if kind == "space":
        return Piece("space", text, " +" if "\t" not in text else r"\s+")
    if kind == "mark":
        return Piece("mark", text, literal(text[0]) + ("+" if len(text) > 1 else ""))
    if kind == "path":
        if _SLASHED_WORDS.fullmatch(text):  # tokens/s
            return Piece("word", text, literal(text))
        return Piece("path", text, _with_numbers(text))
    if kind == "name":
        return _named(text)
    value: Kind = "number" if kind == "number" else "hex" if kind == "hex" else "clock"
    return Piece(value, text, _ANY[value])


def _named(text: str) -> Piece:
    if text.isalpha():
        return Piece("word", text, literal(text))
    if text.isdigit():
        return Piece("number", text, _NUMBER)
    if any(map(str.isdigit, text)):
        return Piece("id", text, _with_numbers(text))
    return Piece("name", text, literal(text))


def _with_numbers(text: str) -> str:
    """The text with its numbers open: `part-00012.bin` is `part\\-\\d+\\.bin`."""
    return "".join(map(_segment, _SEPARATOR.split(text)))


def _segment(text: str) -> str:
    if not any(map(str.isdigit, text)):
        return literal(text)
    if text.isdigit():
        return r"\d+"
    if match := _LETTERS_THEN_DIGITS.fullmatch(text):
        return match[1] + r"\d+"
    if match := _DIGITS_THEN_LETTERS.fullmatch(text):
        return r"\d+" + match[1]
    return r"\w*\d\w*"


def together(found: Iterable[Piece]) -> str | None:
    """One pattern for all that stands in one place; None when it is free text."""
    kinds: dict[Kind, dict[str, None]] = {}
    for piece in found:
        kinds.setdefault(piece.kind, {})[piece.pattern] = None
    if len(kinds.get("word", ())) > MAX_WORDS:
        return None
    parts = [
        part
        for kind, patterns in kinds.items()
        for part in (patterns if kind not in _ANY or len(patterns) <= _LISTED else (_ANY[kind],))
    ]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(sorted(parts))})"


def frame(found: Sequence[Piece]) -> tuple[str, ...]:
    """The marks and blanks of a line, with an empty text for each word or value between them."""
    return tuple(piece.pattern if piece.kind in ("space", "mark") else "" for piece in found)
