"""A candidate rule: compiled within limits, what it must have of literal text, what it takes, and texts it is meant for."""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import warnings
from collections.abc import Sequence
from typing import Any

from triage.compress.linewise import AFTER_PREFIX, RULE_END, Confined, confine, confine_tree
from triage.compress.shape import Shape
from triage.compress.takes import Lines, taker
from triage.domain import FilterRule, RuleCheck
from triage.errors import KnowledgeError
from triage.regex import compile_pattern, parse

MAX_LENGTH = 2000  # characters of a pattern
MAX_PROGRAM = 4000  # instructions of RE2
MIN_WORDING = 4  # letters and digits that every match must have
# The prefix as short as it can be, so that what it leaves is the rule's own text.
_SHORTEST_PREFIX = f"((?U:{AFTER_PREFIX}))"


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
                if compiled.programsize > MAX_PROGRAM:
                    size = f"{compiled.programsize} steps, at most {MAX_PROGRAM} are allowed"
                    raise Refused("size", f"the pattern compiles to {size}")
                tree = parse(rule.pattern)
                self._ignores_case = bool(tree.state.flags & sre.SRE_FLAG_IGNORECASE)
                self.shape = Shape(tree)
                self._taker = taker(rule.pattern)
                _ = self._taker.matcher  # it compiles
                self._head = compile_pattern("(?m)" + confine(rule.pattern, _SHORTEST_PREFIX, RULE_END))
        except KnowledgeError as error:
            raise Refused("compiles", str(error).removeprefix(": ")) from None
        except (RecursionError, OverflowError):
            raise Refused("size", "the pattern is nested too deeply to be read") from None

    def takes(self, lines: Lines | Sequence[str]) -> list[int]:
        """The places of the lines that the rule takes, ascending."""
        return lines.taken_by(self._taker) if isinstance(lines, Lines) else self._taker.matcher.which(lines)

    def body(self, line: str) -> int:
        """Where the rule's own text begins in a line that it takes: behind labels, time stamp and level."""
        found = self._head.search(line)
        return max((0, *(found.end(at) for at in range(1, self._head.groups + 1)))) if found else 0

    def wording(self) -> int:
        """The letters and digits that the poorest alternative asks for."""
        return self.shape.wording()

    def unshown(self, lines: Lines) -> str | None:
        """An alternative, or optional part, that no match of these lines, all of which the rule takes, needs."""
        for part in self.shape.parts():
            if self._which(part.needs, lines.texts):
                continue
            if part.without is None or len(self._which(part.without, lines.texts)) == len(lines.texts):
                return part.text
        return None

    def _which(self, tree: list[Any], lines: Sequence[str]) -> list[int]:
        return Confined.of(confine_tree(tree, self._ignores_case, AFTER_PREFIX, RULE_END)).which(lines)


def masked(line: str) -> str:
    """The line with its numbers hidden: what two lines that differ in numbers alone have in common."""
    return re.sub(r"\d+", "0", line)
