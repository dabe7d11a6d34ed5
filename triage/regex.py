"""The one door to regular expressions that knowledge files, models and users write: RE2, linear in time.

`erase` turns a pattern into one that matches the *skeleton* of every line the pattern matches. A skeleton is a line
with its digits and lower-case hex letters deleted; deleting letters is a homomorphism, so the image of a regular
language under it is regular, and a match on a line implies a match of the erased pattern on its skeleton. The scan
may therefore ask once per skeleton whether any signature could match, and never misses one.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Iterable, Sequence
from typing import Any

import re2

from triage.errors import KnowledgeError

ERASED = b"0123456789abcdef"
_ERASED_SET = frozenset(ERASED.decode())
MAX_PATTERN = 6000


def compile_pattern(pattern: str, where: str = "") -> Any:
    """An RE2 pattern over str. Errors: KnowledgeError for look-around, back references, bad syntax, too long."""
    if len(pattern) > MAX_PATTERN:
        raise KnowledgeError(f"{where}: pattern of {len(pattern)} characters", f"at most {MAX_PATTERN}")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise KnowledgeError(
            f"{where}: pattern {pattern!r} does not compile: {_text(error)}", "RE2 syntax, no look-around"
        ) from None


def _text(error: Exception) -> str:
    value = error.args[0] if error.args else error
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class PatternSet:
    """Which of many patterns match somewhere in a text.

    The patterns are split into small sets: the states of one automaton for all of them multiply, and on text of many
    kinds building states costs four times what asking several automata does.
    """

    CHUNK = 16

    def __init__(self, patterns: Sequence[str], where: str = "patterns") -> None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 64 << 20
        self._sets: list[tuple[int, Any]] = []
        for start in range(0, len(patterns), self.CHUNK):
            chunk = re2.Set.SearchSet(options)
            for pattern in patterns[start : start + self.CHUNK]:
                try:
                    chunk.Add(pattern)
                except re2.error as error:
                    raise KnowledgeError(f"{where}: pattern {pattern!r} does not compile: {_text(error)}") from None
            chunk.Compile()
            self._sets.append((start, chunk))

    def match(self, text: str | bytes) -> list[int]:
        """Indexes of the patterns that match, ascending."""
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return [start + index for start, chunk in self._sets for index in sorted(chunk.Match(raw) or ())]


def skeleton(raw: bytes) -> bytes:
    """The line without digits and lower-case hex letters."""
    return raw.translate(None, ERASED)


def erase(pattern: str) -> str:
    """The pattern for skeletons: matches skeleton(x) whenever `pattern` matches x. Never narrower, may be wider."""
    try:
        tree = sre_parser.parse(pattern)
    except re.error as error:
        raise KnowledgeError(f"pattern {pattern!r} cannot be read: {error}") from None
    folded = bool(tree.state.flags & sre.SRE_FLAG_IGNORECASE)
    return _flags(tree.state.flags) + _sequence(tree, folded)


def _flags(flags: int) -> str:
    letters = "".join(
        letter for letter, bit in (("i", sre.SRE_FLAG_IGNORECASE), ("s", sre.SRE_FLAG_DOTALL)) if flags & bit
    )
    return f"(?{letters})" if letters else ""


def _sequence(nodes: Iterable[Any], folded: bool) -> str:
    return "".join(_node(op, value, folded) for op, value in nodes)


def _node(op: Any, value: Any, folded: bool) -> str:
    if op is sre.LITERAL:
        return _literal(chr(value), folded)
    if op is sre.NOT_LITERAL:
        return f"(?:[^{_escape_in_class(chr(value))}]?)"
    if op is sre.ANY:
        return "(?:.?)"
    if op is sre.IN:
        return f"(?:{_class(value)}?)" if _class_touches_erased(value) else _class(value)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _repeat(value[0], value[1], value[2], folded)
    if op is sre.SUBPATTERN:
        _group, add, _remove, body = value
        inner = folded or bool(add & sre.SRE_FLAG_IGNORECASE)
        return ("(?i:" if inner else "(?:") + _sequence(body, inner) + ")"
    if op is sre.BRANCH:
        return "(?:" + "|".join(_sequence(branch, folded) for branch in value[1]) + ")"
    if op is sre.AT:
        return "^" if value is sre.AT_BEGINNING else "$" if value is sre.AT_END else ""
    raise KnowledgeError(f"pattern part {op} cannot be used", "RE2 syntax, no look-around or back references")


def _literal(char: str, folded: bool) -> str:
    if char in _ERASED_SET and not folded:
        return ""
    # Without regard to case, the letter may have been erased from the line or not.
    return f"(?:{re2.escape(char)}?)" if folded and char.lower() in _ERASED_SET else re2.escape(char)


def _repeat(low: int, high: Any, body: Iterable[Any], folded: bool) -> str:
    inner = _sequence(body, folded)
    if not inner:
        return ""
    top = "" if high is sre.MAXREPEAT else str(high)
    if (low, top) == (0, ""):
        return f"(?:{inner})*"
    if (low, top) == (1, ""):
        return f"(?:{inner})+"
    if low > 20 or (top and int(top) > 200):  # counted repeats are costly in RE2, and wider is allowed
        return f"(?:{inner})*"
    return f"(?:{inner}){{{low},{top}}}"


_CATEGORY = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
_UNTOUCHED = {sre.CATEGORY_NOT_WORD, sre.CATEGORY_SPACE}


def _class(items: list[Any]) -> str:
    text = ""
    for op, value in items:
        if op is sre.NEGATE:
            text = "^" + text
        elif op is sre.LITERAL:
            text += _escape_in_class(chr(value))
        elif op is sre.RANGE:
            text += f"{_escape_in_class(chr(value[0]))}-{_escape_in_class(chr(value[1]))}"
        else:
            text += _CATEGORY[value]
    return f"[{text}]"


def _class_touches_erased(items: list[Any]) -> bool:
    if items[0][0] is sre.NEGATE:
        return True
    for op, value in items:
        if op is sre.LITERAL and chr(value).lower() in _ERASED_SET:
            return True
        if op is sre.RANGE and any(value[0] <= ord(c) <= value[1] for low in _ERASED_SET for c in (low, low.upper())):
            return True
        if op is sre.CATEGORY and value not in _UNTOUCHED:
            return True
    return False


def _escape_in_class(char: str) -> str:
    return "\\" + char if char in "\\]^-[" else char
