"""Lists of nodes as Slurm writes them, expanded: nid[001-003,7],rack[1-2]n[01-04]. Pure.

python-hostlist does this too, but under the GPL.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator

MOST_NODES = 100_000
_NAME = re.compile(r"[A-Za-z0-9_.:-]*")
_NOBODY = frozenset({"", "(null)", "None", "None assigned", "N/A", "Unknown", "n/a"})


@functools.lru_cache(maxsize=16)  # the tasks of an array name the same nodes over and over
def expand(text: str) -> tuple[str, ...]:
    """The nodes in their order, without repeats, at most MOST_NODES; what is no list of nodes gives ()."""
    text = text.strip()
    if text in _NOBODY:
        return ()
    try:
        found = itertools.islice(itertools.chain.from_iterable(map(_hosts, _split(text))), MOST_NODES)
        return tuple(dict.fromkeys(found))
    except ValueError:
        return ()


def _split(text: str) -> list[str]:
    """At the commas outside brackets. Errors: ValueError when brackets do not fit."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            raise ValueError(text)
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise ValueError(text)
    return [part for part in (*parts, text[start:]) if part]


def _hosts(part: str) -> Iterator[str]:
    pieces = re.split(r"\[([^\]]*)\]", part)  # names and spans in turn
    if not all(_NAME.fullmatch(name) for name in pieces[::2]):
        raise ValueError(part)
    choices = [
        [piece] if at % 2 == 0 else list(itertools.islice(_numbers(piece), MOST_NODES))
        for at, piece in enumerate(pieces)
    ]
    return map("".join, itertools.product(*choices))


def _numbers(spans: str) -> Iterator[str]:
    """With as many digits as the first of each span."""
    for span in spans.split(","):
        first, dash, last = span.partition("-")
        if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
            raise ValueError(spans)
        low, high = int(first), int(last or first)
        if high - low > MOST_NODES:
            raise ValueError(spans)
        yield from (f"{number:0{len(first)}d}" for number in range(low, high + 1))
