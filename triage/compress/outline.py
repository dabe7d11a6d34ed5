"""The outline of a line: the line with a zero for each digit. Finer than a skeleton, and as long as the line.

Most patterns do not tell one digit from another (`\\d+`, `.*`, `\\S+`). Such a *blind* pattern matches every line of an
outline or none, so it is tried once an outline. `200`, `[1-9]` and `0x` are not blind; blurred, they say which outlines
to doubt.
"""

from __future__ import annotations

import functools
import re
import re._constants as sre  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any

from triage import literals
from triage.errors import KnowledgeError
from triage.regex import parse, words

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_DIGITS = frozenset(map(ord, "0123456789"))
_WITH_DIGITS = {sre.CATEGORY_DIGIT, sre.CATEGORY_WORD, sre.CATEGORY_NOT_SPACE}
_ESCAPES = (b"\x1b", b"#000[", rb"\u000b[")


def outline(raw: bytes) -> bytes:
    """The line, or lines, with a zero for each digit."""
    return raw.translate(_ZEROS)


def has_escape(of: bytes) -> bool:
    """Whether lines of this outline may hold escape sequences, whose digits decide what of a line is shown."""
    return any(mark in of for mark in _ESCAPES)


@functools.lru_cache(8192)
def blind(pattern: str) -> bool:
    """Whether the pattern matches every line of an outline or none."""
    try:
        return _sequence(parse(pattern))
    except KnowledgeError:
        return False


@functools.lru_cache(8192)
def blur(pattern: str) -> str:
    """A pattern that matches a line, and its outline, whenever `pattern` matches the line; a blind one is its own."""
    if blind(pattern):
        return pattern
    try:
        tree = parse(pattern)
    except KnowledgeError:
        return ""
    return _flags(tree.state.flags, 0) + _blurred(tree) + (")" if tree.state.flags & _FLAGS else "")


@functools.lru_cache(8192)
def blurred_words(pattern: str) -> literals.Required | None:
    """The words that `blur(pattern)` needs, without reading that pattern."""
    if blind(pattern):
        return words(pattern)
    try:
        return literals.required(_broken(parse(pattern)))
    except KnowledgeError:
        return None


def _broken(nodes: Iterable[Any]) -> list[Any]:
    """The nodes, with a class for each digit."""
    return [_broken_node(op, value) for op, value in nodes]


def _broken_node(op: Any, value: Any) -> tuple[Any, Any]:
    if op is sre.LITERAL and value in _DIGITS:
        return sre.ANY, None
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return op, (*value[:2], _broken(value[2]))
    if op is sre.SUBPATTERN:
        return op, (*value[:3], _broken(value[3]))
    if op is sre.BRANCH:
        return op, (value[0], list(map(_broken, value[1])))
    return op, value


def _sequence(nodes: Iterable[Any]) -> bool:
    return all(_node(op, value) for op, value in nodes)


def _node(op: Any, value: Any) -> bool:
    if op in (sre.LITERAL, sre.NOT_LITERAL):
        return value not in _DIGITS
    if op is sre.IN:
        digits = _digits(value)
        return not digits or digits == _DIGITS
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _sequence(value[2])
    if op is sre.SUBPATTERN:
        return _sequence(value[3])
    if op is sre.BRANCH:
        return all(_sequence(branch) for branch in value[1])
    return op in (sre.ANY, sre.AT)


def _digits(items: Iterable[Any]) -> frozenset[int]:
    """The digits that a class names, whether or not it is negated."""
    found: set[int] = set()
    for op, value in items:
        if op is sre.LITERAL:
            found |= {value} & _DIGITS
        elif op is sre.RANGE:
            found |= _DIGITS.intersection(range(value[0], min(value[1], 57) + 1))
        elif op is sre.CATEGORY and value in _WITH_DIGITS:
            found |= _DIGITS
    return frozenset(found)


_FLAGS = sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_DOTALL
_AT = {
    sre.AT_BEGINNING: "^", sre.AT_BEGINNING_STRING: "^", sre.AT_END: "$", sre.AT_END_STRING: "$",
    sre.AT_BOUNDARY: r"\b", sre.AT_NON_BOUNDARY: r"\B",
}  # fmt: skip
_CATEGORY = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _flags(add: int, remove: int) -> str:
    on = ("i" if add & sre.SRE_FLAG_IGNORECASE else "") + ("s" if add & sre.SRE_FLAG_DOTALL else "")
    off = "-i" if remove & sre.SRE_FLAG_IGNORECASE else ""
    return f"(?{on}{off}:" if on or off else ""


def _blurred(nodes: Iterable[Any]) -> str:
    return "".join(_blurred_node(op, value) for op, value in nodes)


def _blurred_node(op: Any, value: Any) -> str:
    if op is sre.LITERAL:
        return r"\d" if value in _DIGITS else re.escape(chr(value))
    if op is sre.NOT_LITERAL:
        return "." if value in _DIGITS else f"[^{_in_class(value)}]"
    if op is sre.ANY:
        return "."
    if op is sre.IN:
        return _blurred_class(value)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        low, high, body = value
        count = f"{{{low},{'' if high is sre.MAXREPEAT else high}}}"
        return f"(?:{_blurred(body)})" + {"{0,}": "*", "{1,}": "+", "{0,1}": "?"}.get(count, count)
    if op is sre.SUBPATTERN:
        return (_flags(value[1], value[2]) or "(?:") + _blurred(value[3]) + ")"
    if op is sre.BRANCH:
        return "(?:" + "|".join(map(_blurred, value[1])) + ")"
    return _AT[value]


def _blurred_class(items: Iterable[Any]) -> str:
    """The class with all digits if it has one; a negated class loses those that it names."""
    (first, _), *rest = named = list(items)
    negated = first is sre.NEGATE
    digits = _digits(named)
    text = "".join(_blurred_item(op, value, negated) for op, value in (rest if negated else named))
    if negated:
        return f"[^{text}]" if text else r"[\s\S]"
    return f"[{text}0-9]" if digits else f"[{text}]"


def _blurred_item(op: Any, value: Any, negated: bool) -> str:
    if op is sre.CATEGORY:
        return _CATEGORY[value]
    low, high = (value, value) if op is sre.LITERAL else value
    kept = [(low, high)]
    if negated and _DIGITS.intersection((low, high, *range(max(low, 48), min(high, 57) + 1))):
        kept = [(a, b) for a, b in ((low, min(high, 47)), (max(low, 58), high)) if a <= b]
    return "".join(_in_class(a) if a == b else f"{_in_class(a)}-{_in_class(b)}" for a, b in kept)


def _in_class(code: int) -> str:
    return re.escape(chr(code)) if code < 128 else chr(code)
