"""What a character class of a parsed pattern may hold."""

from __future__ import annotations

import re._constants as sre  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_TRIED = "x1 ,;:_-/.X=('\"#"  # for a specimen, the first of these that the class takes
_SCRIPTS = "éßñжи中日アカ한"  # a letter of each of some scripts
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + _SCRIPTS)
_HEX = frozenset("abcdefABCDEF")
_WORDLY = 5  # letters of a class from which words can be made, at least
_WORD = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")

_CATEGORY: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: lambda char: "0" <= char <= "9",
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: _WORD.__contains__,
    sre.CATEGORY_NOT_DIGIT: lambda char: not "0" <= char <= "9",
    sre.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    sre.CATEGORY_NOT_WORD: lambda char: char not in _WORD,
}


def letters(op: Any, value: Any) -> frozenset[str]:
    """Letters that a single character of the pattern may be, a few of other scripts for all of them.

    Those of hexadecimal digits do not count, nor the exponent among digits.
    """
    if op is sre.ANY or op is sre.NOT_LITERAL:
        return _LETTERS
    if op is sre.LITERAL:
        return frozenset(chr(value)) if chr(value).isalpha() else frozenset()
    found = frozenset(char for char in (_LETTERS | {*_ends(value)}) if char.isalpha() and holds(value, char))
    return frozenset() if found <= _HEX and holds(value, "0") else found


def blank(op: Any, value: Any) -> bool:
    if op is sre.LITERAL:
        return chr(value).isspace()
    return op is not sre.IN or any(holds(value, char) for char in " \t\u3000")


def wordly(op: Any, value: Any) -> bool:
    """Whether words can be made of such characters, and not only the word that the pattern itself gives."""
    return op is not sre.LITERAL and len(letters(op, value)) >= _WORDLY


def example(op: Any, value: Any) -> str:
    """A character that fits; "" when there is none."""
    if op is sre.LITERAL:
        return chr(value)
    if op is not sre.IN:
        return "y" if op is sre.NOT_LITERAL and value == ord("x") else "x"
    return next((char for char in (*_TRIED, *_ends(value)) if holds(value, char)), "")


def plain(value: Sequence[Any]) -> list[str]:
    """The characters of a class that names them one by one, each once in whatever case; [] for any other class."""
    if any(op is not sre.LITERAL for op, _ in value):
        return []
    return list({chr(code).casefold(): chr(code) for _, code in value}.values())


def holds(items: Sequence[Any], char: str) -> bool:
    """Whether the class takes the character."""
    negated = items[0][0] is sre.NEGATE
    return any(_takes(op, value, char) for op, value in items if op is not sre.NEGATE) != negated


def _takes(op: Any, value: Any, char: str) -> bool:
    if op is sre.LITERAL:
        return bool(chr(value) == char)
    if op is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return _CATEGORY[value](char)


def _ends(items: Iterable[Any]) -> Iterator[str]:
    for op, value in items:
        if op is sre.LITERAL or op is sre.RANGE:
            yield from {chr(value)} if op is sre.LITERAL else {chr(value[0]), chr(value[1])}
