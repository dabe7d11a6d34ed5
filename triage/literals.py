"""The words a pattern cannot match without. They let one pass of Aho-Corasick stand before hundreds of patterns.

A pattern's requirement is a set of literals, one of which is in every text that it matches, all case-folded.
"""

from __future__ import annotations

import re._constants as sre  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any

MIN_LENGTH = 2
MAX_ALTERNATIVES = 250

Required = frozenset[str]


def fold(text: str) -> str:
    """Text as literals are compared with it."""
    return text.lower() if text.isascii() else text.casefold()


def required(tree: Iterable[Any]) -> Required | None:
    """The best requirement of a parsed pattern, or None when any text might match."""
    found = _sequence(tree)
    return found if found and _score(found) >= MIN_LENGTH else None


def _score(literals: Required) -> int:
    return min(map(len, literals))


def _sequence(nodes: Iterable[Any]) -> Required | None:
    choices: list[Required] = []
    run = ""
    for op, value in nodes:
        if op is sre.LITERAL:
            run += chr(value)
            continue
        if op in (sre.AT, sre.SUBPATTERN):
            inner = _plain(op, value)
            if inner is not None:  # a group of literals alone, or an anchor: the run goes on
                run += inner
                continue
        if run:
            choices.append(frozenset({fold(run)}))
            run = ""
        nested = _node(op, value)
        if nested:
            choices.append(nested)
    if run:
        choices.append(frozenset({fold(run)}))
    return max(choices, key=lambda c: (min(_score(c), 12), -len(c)), default=None)


def _plain(op: Any, value: Any) -> str | None:
    if op is sre.AT:
        return ""
    text = ""
    for inner, what in value[3]:
        if inner is not sre.LITERAL:
            return None
        text += chr(what)
    return text


def _node(op: Any, value: Any) -> Required | None:
    if op is sre.SUBPATTERN:
        return _sequence(value[3])
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _sequence(value[2]) if value[0] >= 1 else None
    if op is sre.BRANCH:
        return _branches(value[1])
    return None


def _branches(branches: Iterable[Iterable[Any]]) -> Required | None:
    union: set[str] = set()
    for branch in branches:
        found = _sequence(branch)
        if not found:
            return None
        union |= found
    return frozenset(union) if len(union) <= MAX_ALTERNATIVES else None
