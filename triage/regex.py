"""The one door to regular expressions that knowledge files, models and users write: RE2, linear in time.

`erase` turns a pattern into one that matches the *skeleton* of every line the pattern matches. A skeleton is a line
with its digits and hex letters deleted; deleting letters is a homomorphism, so the image of a regular
language under it is regular, and a match on a line implies a match of the erased pattern on its skeleton. The scan
may therefore ask once per skeleton whether any signature could match, and never misses one.
"""

from __future__ import annotations

import functools
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Iterable, Sequence
from typing import Any

import re2

from triage import literals
from triage.errors import KnowledgeError
from triage.wordindex import WordIndex

ERASED = b"0123456789abcdefABCDEF"
_ERASED_SET = frozenset(ERASED.decode())
_ERASING = dict.fromkeys(ERASED)
_TOGETHER = 16  # patterns of one set; the states of one automaton for many multiply
MAX_PATTERN = 20000  # derived patterns are longer than those that people write


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

    RE2's own set builds one automaton of all patterns, which text that never repeats drives out of its cache (0.5 ms a
    line with 800 patterns). Here the words that patterns need are looked for first, in one pass of Aho-Corasick, and
    only patterns whose word is there are tried; each is compiled when it is first tried. Patterns that need no word go
    into small sets.
    """

    def __init__(self, patterns: Sequence[str], where: str = "patterns") -> None:
        self._patterns = tuple(patterns)
        self._where = where
        self._single: list[Any] = [None] * len(self._patterns)
        self._words = WordIndex([words(pattern) for pattern in self._patterns])
        self._always = self._words.without(_TOGETHER)
        self._groups: list[Any] = [None] * len(self._always)

    def match(self, text: str) -> list[int]:
        """Indexes of the patterns that match, ascending."""
        raw = text.encode("utf-8", "replace")
        found = [i for i in self._candidates(text) if self._one(i).Match(raw)]
        for at, members in enumerate(self._always):
            if self._groups[at] is None:
                self._groups[at] = self._compile(members)
            found += [members[hit] for hit in self._groups[at].Match(raw) or ()]
        return sorted(found)

    def _candidates(self, text: str) -> set[int]:
        met = {owners for owners, _ in self._words.hits(literals.fold(_sound(text)))}
        return {owner for owners in met for owner in owners}

    def _one(self, index: int) -> Any:
        if self._single[index] is None:
            self._single[index] = self._compile([index])
        return self._single[index]

    def _compile(self, members: Sequence[int]) -> Any:
        """An RE2 set of some of the patterns; its Match is called with less ado than a pattern's search."""
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 32 << 20
        group = re2.Set.SearchSet(options)
        for index in members:
            pattern = self._patterns[index]
            try:
                group.Add(pattern)
            except re2.error as error:
                raise KnowledgeError(f"{self._where}: {pattern!r} does not compile: {_text(error)}") from None
        group.Compile()
        return group


@functools.lru_cache(8192)
def words(pattern: str) -> literals.Required | None:
    """The words one of which is in every text that the pattern matches; None: it is to be tried on every text."""
    try:
        return literals.required(parse(pattern))
    except KnowledgeError:
        return None  # RE2 may still know it


def erased_words(pattern: str) -> literals.Required | None:
    """The words that `erase(pattern)` needs, without reading that pattern: those of the pattern, erased."""
    found = frozenset(word.translate(_ERASING) for word in words(pattern) or ())
    if found and min(map(len, found)) >= literals.MIN_LENGTH:
        return found
    return words(erase(pattern))


def _sound(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@functools.lru_cache(8192)
def parse(pattern: str) -> Any:
    """The pattern as Python's own parser reads it. Errors: KnowledgeError."""
    try:
        return sre_parser.parse(pattern)
    except re.error as error:
        raise KnowledgeError(f"pattern {pattern!r} cannot be read: {error}") from None


def skeleton(raw: bytes) -> bytes:
    """The line without digits and hex letters."""
    return raw.translate(None, ERASED)


@functools.lru_cache(8192)
def erase(pattern: str) -> str:
    """The pattern for skeletons: matches skeleton(x) whenever `pattern` matches x. Never narrower, may be wider."""
    tree = parse(pattern)
    return _flags(tree.state.flags) + _sequence(tree)


def _flags(flags: int) -> str:
    letters = "".join(
        letter for letter, bit in (("i", sre.SRE_FLAG_IGNORECASE), ("s", sre.SRE_FLAG_DOTALL)) if flags & bit
    )
    return f"(?{letters})" if letters else ""


def _sequence(nodes: Iterable[Any]) -> str:
    return "".join(_node(op, value) for op, value in nodes)


def _node(op: Any, value: Any) -> str:
    if op is sre.LITERAL:
        return _literal(chr(value))
    if op is sre.NOT_LITERAL:
        return f"(?:[^{_escape_in_class(chr(value))}]?)"
    if op is sre.ANY:
        return "(?:.?)"
    if op is sre.IN:
        return f"(?:{_class(value)}?)" if _class_touches_erased(value) else _class(value)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _repeat(value[0], value[1], value[2])
    if op is sre.SUBPATTERN:
        _group, add, _remove, body = value
        return ("(?i:" if add & sre.SRE_FLAG_IGNORECASE else "(?:") + _sequence(body) + ")"
    if op is sre.BRANCH:
        return "(?:" + "|".join(_sequence(branch) for branch in value[1]) + ")"
    if op is sre.AT:
        return "^" if value is sre.AT_BEGINNING else "$" if value is sre.AT_END else ""
    raise KnowledgeError(f"pattern part {op} cannot be used", "RE2 syntax, no look-around or back references")


def _literal(char: str) -> str:
    return "" if char in _ERASED_SET else str(re2.escape(char))


def _repeat(low: int, high: Any, body: Iterable[Any]) -> str:
    inner = _sequence(body)
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
        if op is sre.LITERAL and chr(value) in _ERASED_SET:
            return True
        if op is sre.RANGE and any(value[0] <= ord(c) <= value[1] for c in _ERASED_SET):
            return True
        if op is sre.CATEGORY and value not in _UNTOUCHED:
            return True
    return False


def _escape_in_class(char: str) -> str:
    return "\\" + char if char in "\\]^-[" else char
