"""JSON out of what models write: fenced, explained, with stray commas and backslashes, or cut in the middle. Pure.

`find_object` and `find_items` never fail: what is not there is empty. Of a text that was cut, what is whole remains.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MOST = 400_000  # characters that are looked at
_STARTS = 200  # places where JSON may begin that are tried
_DEEPEST = 60
_LONGEST = 100  # characters of a number
_FENCE = re.compile(r"```[ \t]*\w{0,20}[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?")
_WORD = re.compile(r"[A-Za-z]+")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_PLAIN = re.compile(r'[^"\\]+')
# Not \b and \f: who writes them means a regular expression, not a backspace.
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_DOUBLED = re.compile(r"\\\\(?=[dDsSwWbBAzZ.^$*+?()\[\]{}|/\\-])")


@dataclass(frozen=True, slots=True)
class Items:
    """The whole items of a list; cut: the text ended before the list did."""

    items: tuple[Any, ...] = ()
    cut: bool = False


def find_object(text: str) -> dict[str, Any]:
    """The first JSON object; of one that was cut, the members that are whole. {} without one."""
    return next((value for value, _ in _found(text, "{")), {})


def find_items(text: str, name: str = "") -> Items:
    """The list that an object holds under `name`, or the list that stands alone; only items that are whole."""
    best = Items()
    for value, cut in _found(text, "{["):
        inner = value.get(name) if isinstance(value, dict) and name else value
        if isinstance(inner, list):
            best = Items(tuple(inner), cut)
            if best.items:
                return best
    return best


def undoubled(pattern: str) -> str:
    """A regular expression whose backslashes were escaped once too often, as it was meant: `\\\\\\\\d` is `\\\\d`."""
    return _DOUBLED.sub(r"\\", pattern)


def _found(text: str, begins: str) -> Iterator[tuple[Any, bool]]:
    """JSON values with whether they were cut: fenced ones first, whole ones before cut ones."""
    text = _THOUGHT.sub("", text[:_MOST])
    places = [match[1] for match in _FENCE.finditer(text)] + [text]
    if '{\\"' in text:  # JSON inside of a JSON string
        places.append(text.replace('\\"', '"').replace("\\\\", "\\"))
    cut: list[Any] = []
    for place in places:
        for value, whole in _values(place, begins):
            if whole:
                yield value, False
            else:
                cut.append(value)
    yield from ((value, True) for value in cut)


def _values(text: str, begins: str) -> Iterator[tuple[Any, bool]]:
    at, tried = 0, 0
    while tried < _STARTS and (start := min((p for c in begins if (p := text.find(c, at)) >= 0), default=-1)) >= 0:
        tried += 1
        reader = _Reader(text, start)
        try:
            value = reader.value(0)
        except _BadError:
            at = start + 1
            continue
        if value:
            yield value, not reader.cut
        if reader.cut:
            return
        at = reader.at


def _number(digits: str) -> int | float | None:
    """None: larger than any that is meant."""
    if len(digits) > _LONGEST:
        return None
    if not set(digits) & set(".eE"):
        return int(digits)
    found = float(digits)
    return found if math.isfinite(found) else None


class _BadError(ValueError):
    """No JSON, however leniently read."""


class _Cut:
    """In place of a value that is not whole."""


_CUT = _Cut()


class _Reader:
    """Reads one value from `at` on. At the end of the text, `cut` says so, and lists and objects keep what is whole."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.cut = False

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise _BadError
        match self._next():
            case "":
                return self._ended()
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case '"':
                return self._string()
            case _:
                return self._scalar()

    def _next(self) -> str:
        if space := _SPACE.match(self.text, self.at):
            self.at = space.end()
        return self.text[self.at : self.at + 1]

    def _ended(self) -> _Cut:
        self.cut = True
        return _CUT

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while not self._closes("]"):
            item = self.value(depth + 1)
            if self.cut:  # this item may lack its end
                break
            found.append(item)
            self._comma("]")
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while not self._closes("}"):
            name = self._name()
            value = self.value(depth + 1)
            if self.cut and not isinstance(value, (dict, list)):
                break
            found[name] = value
            self._comma("}")
        return found

    def _name(self) -> str:
        """Of a member, and the colon behind it; what follows a cut one is cut too."""
        if self._next() != '"':
            raise _BadError
        name = self._string()
        if self._next() not in (":", ""):
            raise _BadError
        self.at += 1
        return str(name)

    def _closes(self, end: str) -> bool:
        """Whether the container ends here, by its sign or with the text; a comma before it is let pass."""
        while (here := self._next()) == ",":
            self.at += 1
        if here == "":
            self._ended()
            return True
        if here == end:
            self.at += 1
            return True
        return False

    def _comma(self, end: str) -> None:
        if not self.cut and self._next() not in (",", end, ""):
            raise _BadError

    def _scalar(self) -> Any:
        if match := _NUMBER.match(self.text, self.at):
            self.at = match.end()
            if self.at == len(self.text):  # more digits may have followed
                return self._ended()
            return _number(match[0])
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise _BadError
        self.at = word.end()
        if word[0] in _WORDS:
            return _WORDS[word[0]]
        if self.at == len(self.text) and any(known.startswith(word[0]) for known in _WORDS):
            return self._ended()
        raise _BadError

    def _string(self) -> str | _Cut:
        """A backslash before what JSON does not know stays: models write regular expressions as they would in Python."""
        parts: list[str] = []
        self.at += 1
        while self.at < len(self.text):
            if plain := _PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
                continue
            if self.text[self.at] == '"':
                self.at += 1
                # Two escapes may make one character; half a pair is none.
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            parts.append(self._escape())
        return self._ended()

    def _escape(self) -> str:
        sign = self.text[self.at + 1 : self.at + 2]
        if sign == "u" and (digits := _HEX.match(self.text, self.at + 2)):
            self.at += 6
            return chr(int(digits[0], 16))
        if sign in _ESCAPES:
            self.at += 2
            return _ESCAPES[sign]
        self.at += 1
        return "\\"
