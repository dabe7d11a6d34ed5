"""The parts of a pattern: its alternatives, what is optional in it, where words could slip in; texts made from them."""

from __future__ import annotations

import itertools
import re._constants as sre  # type: ignore[import-not-found]
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triage.compress import charclass

MOST_WAYS = 40  # of all alternatives and optional parts of a pattern
MOST_REPEATS = 200  # that a count may ask for
_LOOSE = 3  # characters that may be anything, in all: the dots of `0.5` and `...`
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
# One such letter alone says nothing: an exponent, an hour, 0x, the end of a plural.
_MUTE = frozenset("eETZxXsS")
Nodes = Iterable[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """An alternative, or something optional. ways: the pattern as parsed, in forms that need it, or that leave it out.

    needs: takes only what uses the part, where it is not repeated; without: takes only what does not use it, and is
    None for what is optional.
    """

    text: str
    needs: list[Any]
    without: list[Any] | None


@dataclass(frozen=True, slots=True)
class _Choice:
    """A place where a text of the pattern goes one way or another. under: what must be chosen to come there."""

    node: int
    ways: int
    under: Mapping[int, int]


class Shape:
    """tree: as `regex.parse` gives it."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._choices = list(_choices(tree, {}))

    def wording(self) -> int:
        """The letters and digits that the poorest alternative asks for."""
        return _wording(self._tree)

    def fault(self) -> str | None:
        """Why the pattern cannot be tried to the end, in words."""
        if sum(choice.ways for choice in self._choices) > MOST_WAYS:
            return f"the pattern has more than {MOST_WAYS} alternatives and optional parts, more than can be tried"
        most = max(_counts(self._tree), default=0)
        return f"the pattern counts to {most}, at most {MOST_REPEATS} are allowed" if most > MOST_REPEATS else None

    def gapes(self) -> bool:
        """Whether a message of several words fits in: letters and blanks, again and again."""
        return _gapes(self._tree) or _loose(self._tree) > _LOOSE

    def specimens(self) -> list[str]:
        """Texts that should match, so that each alternative is in one of them, each optional part there and away."""
        return self._texts([{}, *self._singly()])

    def combined(self) -> list[str]:
        """Texts that should match: each two alternatives together, as far as they go together."""
        pairs = (
            {**one, **other}
            for one, other in itertools.combinations(self._singly(), 2)
            if all(other.get(node, way) == way for node, way in one.items())
        )
        return self._texts([{}, *self._singly(), *pairs])

    def _singly(self) -> list[dict[int, int]]:
        return [{**choice.under, choice.node: way} for choice in self._choices for way in range(choice.ways)]

    def _texts(self, chosen: Iterable[Mapping[int, int]]) -> list[str]:
        return list(dict.fromkeys(_specimen(self._tree, ways) for ways in chosen))

    def parts(self) -> Iterator[Part]:
        """Each alternative, and each optional group, that says something."""
        tree = list(self._tree)
        for op, value in _all(tree):
            if op is sre.BRANCH:
                branches = value[1]
                for at, branch in enumerate(branches):
                    if not _mute(branch):
                        others = (None, [*branches[:at], *branches[at + 1 :]])
                        needs = _with(tree, value, (sre.BRANCH, (None, [branch])))
                        yield Part(_specimen(branch, {}), needs, _with(tree, value, (sre.BRANCH, others)))
            elif _is_option(op, value):
                _, high, body = value
                yield Part(_specimen(body, {}), _with(tree, value, (op, (1, high, body))), None)


def _is_option(op: Any, value: Any) -> bool:
    """An optional part that says something. A lone class is none: words are put in its place (siblings.py)."""
    if op not in _REPEATS or value[0] > 0 or value[1] == 0:
        return False
    body = list(value[2])
    alone = len(body) == 1 and body[0][0] in (sre.IN, sre.ANY, sre.NOT_LITERAL)
    return not alone and not _mute(body)


def _inside(op: Any, value: Any) -> list[Any]:
    """The sequences of nodes within a node."""
    if op is sre.BRANCH:
        return list(value[1])
    if op is sre.SUBPATTERN:
        return [value[3]]
    return [value[2]] if op in _REPEATS else []


def _all(nodes: Nodes) -> Iterator[tuple[Any, Any]]:
    for op, value in nodes:
        yield op, value
        for inner in _inside(op, value):
            yield from _all(inner)


def _with(nodes: Nodes, old: Any, new: Any) -> list[Any]:
    """The nodes with another one in the place of the one whose value is `old`."""
    found = []
    for op, value in nodes:
        if value is old:
            found.append(new)
        elif op is sre.BRANCH:
            found.append((op, (value[0], [_with(branch, old, new) for branch in value[1]])))
        elif op is sre.SUBPATTERN:
            found.append((op, (*value[:3], _with(value[3], old, new))))
        elif op in _REPEATS:
            found.append((op, (*value[:2], _with(value[2], old, new))))
        else:
            found.append((op, value))
    return found


def _choices(nodes: Nodes, under: Mapping[int, int]) -> Iterator[_Choice]:
    for op, value in nodes:
        if op is sre.BRANCH:
            yield _Choice(id(value), len(value[1]), under)
        elif op is sre.IN and 1 < len(charclass.plain(value)) <= 4 and charclass.letters(op, value):
            yield _Choice(id(value), len(charclass.plain(value)), under)  # no[wt], as parsed from (?:now|not)
        elif _is_option(op, value):
            yield _Choice(id(value), 2, under)
        for at, inner in enumerate(_inside(op, value)):
            chosen = {id(value): at} if op is sre.BRANCH or _is_option(op, value) else {}
            yield from _choices(inner, {**under, **chosen})


def _specimen(nodes: Nodes, chosen: Mapping[int, int]) -> str:
    return "".join(_piece(op, value, chosen) for op, value in nodes)


def _piece(op: Any, value: Any, chosen: Mapping[int, int]) -> str:
    way = chosen.get(id(value), 0)
    if op is sre.IN and id(value) in chosen:
        return charclass.plain(value)[way]
    if op in (sre.LITERAL, sre.ANY, sre.NOT_LITERAL, sre.IN):
        return charclass.example(op, value)
    if op is sre.SUBPATTERN:
        return _specimen(value[3], chosen)
    if op is sre.BRANCH:
        return _specimen(value[1][way], chosen)
    if op in _REPEATS:
        times = min(max(1, int(value[0])), MOST_REPEATS)
        return "" if way or value[1] == 0 else _specimen(value[2], chosen) * times
    return ""


def _mute(nodes: Nodes) -> bool:
    """Whether the part can say nothing: digits, marks, and one letter of those that stand among them."""
    found = _letters(nodes)
    return len(found) < 2 and all(letters <= _MUTE for letters in found)


def _letters(nodes: Nodes) -> list[frozenset[str]]:
    """The letters that each place of a text may hold, places without any left out."""
    found: list[frozenset[str]] = []
    for op, value in nodes:
        if op in (sre.LITERAL, sre.ANY, sre.NOT_LITERAL, sre.IN):
            found += [letters] if (letters := charclass.letters(op, value)) else []
        else:
            inner = [_letters(body) for body in _inside(op, value)]
            longest = max(inner, key=len, default=[])
            if op is sre.BRANCH and len(longest) == 1:
                longest = [frozenset[str]().union(*(letters for places in inner for letters in places))]
            found += longest * (2 if op in _REPEATS and value[1] > 1 else 1)
    return found


def _gapes(nodes: Nodes) -> bool:
    for op, value in nodes:
        if op in _REPEATS and value[1] > 1:
            singles = [node for node in _all(value[2]) if not _inside(*node) and node[0] is not sre.AT]
            if any(itertools.starmap(charclass.wordly, singles)) and any(itertools.starmap(charclass.blank, singles)):
                return True
        if any(map(_gapes, _inside(op, value))):
            return True
    return False


def _loose(nodes: Nodes) -> int:
    singles = (node for node in _all(nodes) if node[0] in (sre.ANY, sre.NOT_LITERAL, sre.IN))
    return sum(charclass.wordly(op, value) and charclass.blank(op, value) for op, value in singles)


def _counts(nodes: Nodes) -> Iterator[int]:
    """The counts of repeats, multiplied where one stands in another; no end counts as the beginning."""
    for op, value in nodes:
        times = 1
        if op in _REPEATS:
            times = max(1, int(value[0] if value[1] is sre.MAXREPEAT else value[1]))
        inner = max((count for body in _inside(op, value) for count in _counts(body)), default=1)
        yield times * inner


def _wording(nodes: Nodes) -> int:
    return sum(_wording_of(op, value) for op, value in nodes)


def _wording_of(op: Any, value: Any) -> int:
    if op is sre.LITERAL:
        return int(chr(value).isalnum())
    if op is sre.IN:  # [Ss] is as good as a letter
        return int(len(value) <= 2 and all(kind is sre.LITERAL and chr(code).isalpha() for kind, code in value))
    if op in _REPEATS:
        return _wording(value[2]) if value[0] else 0
    return min(map(_wording, _inside(op, value)), default=0)
