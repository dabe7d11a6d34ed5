"""A candidate rule: compiled within limits, what it must have of literal text, what it takes, and texts it is meant for."""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from triage.compress.linewise import AFTER_PREFIX, RULE_END, confine
from triage.compress.takes import Lines, taker
from triage.domain import FilterRule, RuleCheck
from triage.errors import KnowledgeError
from triage.regex import compile_pattern, parse

MAX_LENGTH = 2000  # characters of a pattern
MAX_PROGRAM = 4000  # instructions of RE2
MIN_WORDING = 4  # letters and digits that every match must have
_MAX_SPECIMENS = 24
_REPEATED = 50
# The prefix as short as it can be, so that what it leaves is the rule's own text.
_SHORTEST_PREFIX = f"((?U:{AFTER_PREFIX}))"
_TRIED = "x1 ,;:_-/.X=('\"#"  # for a class, the first of these that it takes


class Refused(Exception):  # noqa: N818 - an answer, no fault
    """A candidate that cannot be a rule. check: the test it failed."""

    def __init__(self, check: str, reason: str) -> None:
        super().__init__(reason)
        self.result = RuleCheck(False, check, reason)


class Candidate:
    """A rule as the scan would use it. Errors: Refused, when the engine does not take it or it is too large."""

    def __init__(self, rule: FilterRule) -> None:
        self.rule = rule
        if not rule.pattern.strip():
            raise Refused("empty", "the pattern is empty and would take every line")
        if len(rule.pattern) > MAX_LENGTH:
            raise Refused("size", f"the pattern has {len(rule.pattern)} characters, at most {MAX_LENGTH} are allowed")
        if "\n" in rule.pattern:
            raise Refused("compiles", "the pattern has a line end in it, and a rule is asked of one line at a time")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python's parser, on what its own engine may read otherwise one day
                compiled = compile_pattern(rule.pattern)
                self._tree = parse(rule.pattern)
                self._taker = taker(rule.pattern)
                _ = self._taker.matcher  # it compiles
                self._head = compile_pattern("(?m)" + confine(rule.pattern, _SHORTEST_PREFIX, RULE_END))
        except KnowledgeError as error:
            raise Refused("compiles", str(error).removeprefix(": ")) from None
        except (RecursionError, OverflowError):
            raise Refused("size", "the pattern is nested too deeply to be read") from None
        if compiled.programsize > MAX_PROGRAM:
            size = f"the pattern compiles to {compiled.programsize} steps, at most {MAX_PROGRAM} are allowed"
            raise Refused("size", size)

    def takes(self, lines: Lines | Sequence[str]) -> list[int]:
        """The places of the lines that the rule takes, ascending."""
        return lines.taken_by(self._taker) if isinstance(lines, Lines) else self._taker.matcher.which(lines)

    def body(self, line: str) -> int:
        """Where the rule's own text begins in a line that it takes: behind labels, time stamp and level."""
        found = self._head.search(line)
        return max((0, *(found.end(at) for at in range(1, self._head.groups + 1)))) if found else 0

    def wording(self) -> int:
        """The letters and digits that the poorest alternative asks for."""
        return _wording(self._tree)

    def specimens(self) -> list[str]:
        """Texts that the rule takes, so that each alternative is in one of them; of many, the first."""
        ways = min(_MAX_SPECIMENS, _ways(self._tree))
        texts = list(dict.fromkeys(_specimen(self._tree, way) for way in range(ways)))
        return [texts[at] for at in self.takes(texts)]


def masked(line: str) -> str:
    """The line with its numbers hidden: what two lines that differ in numbers alone have in common."""
    return re.sub(r"\d+", "0", line)


def _wording(nodes: Iterable[Any]) -> int:
    return sum(_wording_of(op, value) for op, value in nodes)


def _wording_of(op: Any, value: Any) -> int:
    if op is sre.LITERAL:
        return int(chr(value).isalnum())
    if op is sre.IN:  # [Ss] is as good as a letter
        return int(len(value) <= 2 and all(kind is sre.LITERAL and chr(code).isalpha() for kind, code in value))
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _wording(value[2]) if value[0] else 0
    if op is sre.SUBPATTERN:
        return _wording(value[3])
    return min(map(_wording, value[1])) if op is sre.BRANCH else 0


def _ways(nodes: Iterable[Any]) -> int:
    """The alternatives of the branch that has the most, branches within it counted."""
    return max((_ways_of(op, value) for op, value in nodes), default=1)


def _ways_of(op: Any, value: Any) -> int:
    if op is sre.BRANCH:
        return sum(map(_ways, value[1]))
    if op is sre.SUBPATTERN:
        return _ways(value[3])
    return _ways(value[2]) if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) else 1


def _specimen(nodes: Iterable[Any], way: int) -> str:
    return "".join(_piece(op, value, way) for op, value in nodes)


def _piece(op: Any, value: Any, way: int) -> str:
    if op is sre.LITERAL:
        return str(chr(value))
    if op in (sre.ANY, sre.NOT_LITERAL):
        return "y" if op is sre.NOT_LITERAL and value == ord("x") else "x"
    if op is sre.IN:
        return _of_class(value)
    if op is sre.SUBPATTERN:
        return _specimen(value[3], way)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _specimen(value[2], way) * min(max(1, int(value[0])), _REPEATED)
    if op is sre.BRANCH:
        way %= sum(map(_ways, value[1]))
        for branch in value[1]:
            if way < _ways(branch):
                return _specimen(branch, way)
            way -= _ways(branch)
    return ""


def _of_class(items: Sequence[Any]) -> str:
    negated = items[0][0] is sre.NEGATE
    plain = [item for item in items if item[0] is not sre.NEGATE]
    for char in (*_TRIED, *_named(plain)):
        if any(_holds(op, value, char) for op, value in plain) != negated:
            return str(char)
    return ""


def _named(items: Iterable[Any]) -> Iterator[str]:
    for op, value in items:
        if op is not sre.CATEGORY:
            yield chr(value if op is sre.LITERAL else value[0])


_CATEGORY: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    sre.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    sre.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    sre.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


def _holds(op: Any, value: Any, char: str) -> bool:
    if op is sre.LITERAL:
        return bool(chr(value) == char)
    if op is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return _CATEGORY[value](char)
