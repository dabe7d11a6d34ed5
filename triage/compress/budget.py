"""Which of the folded lines a token budget keeps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.compress.folding import Entry
from triage.compress.wording import rank_ranges
from triage.domain import LogLine

CHARS_PER_TOKEN = 1.9  # of log text, measured
MAX_SHOWN = 1000  # characters of a line that is shown
_ENDS = ((1, 3), (3, 10), (10, 30))  # first and last lines of a file, wanted in this order
_ONSET = (3, 12)  # lines before and after the first error


def tokens(line: LogLine) -> int:
    """About what the line costs with its number, count and ranks."""
    size = len(line.text) + len(str(line.number)) + 2
    if line.repeats > 1:
        size += 8 + len(rank_ranges(line.ranks))
    return max(1, round(size / CHARS_PER_TOKEN))


def choose(files: Sequence[Sequence[Entry]], budget: int) -> list[list[Entry]]:
    """Of each file the entries that fit the budget.

    Protected ones always; then both ends and the onset of trouble, errors, warnings, and the rest spread evenly.
    """
    chosen: set[int] = set()
    left = budget
    for tier in _tiers(files):
        fresh = list({id(entry): entry for entry in tier if id(entry) not in chosen}.values())
        costs = [tokens(entry.folded()) for entry in fresh]
        always = bool(fresh) and fresh[0].protected
        taken = range(len(fresh)) if always or sum(costs) <= left else _spread(costs, left)
        for at in taken:
            chosen.add(id(fresh[at]))
            left -= costs[at]
    return [[entry for entry in entries if id(entry) in chosen] for entries in files]


def _tiers(files: Sequence[Sequence[Entry]]) -> Iterable[list[Entry]]:
    yield [entry for entries in files for entry in entries if entry.protected]
    for head, tail in _ENDS:
        yield [entry for entries in files for entry in (*entries[-tail:], *entries[:head])]
        yield [entry for entries in files for entry in _onset(entries)]
    for weight in ("error", "warning", "other"):
        yield [entry for entries in files for entry in _one_each(entries, weight)]
        yield [entry for entries in files for entry in entries if entry.weight == weight]


def _onset(entries: Sequence[Entry]) -> Sequence[Entry]:
    first = next((at for at, entry in enumerate(entries) if entry.weight == "error"), None)
    if first is None:
        return ()
    return entries[max(0, first - _ONSET[0]) : first + _ONSET[1]]


def _one_each(entries: Sequence[Entry], weight: str) -> list[Entry]:
    """The first line of each template."""
    found: dict[int | str, Entry] = {}
    for entry in entries:
        if entry.weight == weight:
            found.setdefault(entry.line.template if entry.line.template >= 0 else entry.body, entry)
    return list(found.values())


def _spread(costs: Sequence[int], room: int) -> list[int]:
    """Places evenly spread whose costs fit the room."""
    total = sum(costs)
    taken: list[int] = []
    spent = passed = 0
    for at, cost in enumerate(costs):
        passed += cost
        # As much of the room may be spent as has been passed of the whole.
        if spent + cost <= room * passed / total:
            taken.append(at)
            spent += cost
    return taken
