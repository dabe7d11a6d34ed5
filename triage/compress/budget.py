"""Which of the folded lines a token budget keeps. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from triage.compress.folding import Entry
from triage.compress.wording import gist
from triage.domain import LogLine
from triage.text import rank_ranges

CHARS_PER_TOKEN = 1.9  # of log text, measured
MAX_SHOWN = 1000  # characters of a line that is shown
_ENDS = ((1, 2), (3, 8), (10, 30))  # first and last lines of a file, wanted in this order
CALM_SHARE = 0.5  # of the budget, for lines that tell of no trouble
_ALIKE = 3  # lines that say the same kind of thing, in the head or tail of a file
_ONSET = (3, 8)  # lines before and after the first error
_LAST_FRAMES = 6  # of a traceback


def tokens(line: LogLine) -> int:
    """About what the line costs with its number, count and ranks."""
    size = min(len(line.text), MAX_SHOWN) + len(str(line.number)) + 2
    if line.repeats > 1:
        size += 8 + len(rank_ranges(line.ranks))
    return max(1, round(size / CHARS_PER_TOKEN))


def short(text: str) -> str:
    """The text with its middle left out, where it is longer than what is shown of a line."""
    if len(text) <= MAX_SHOWN:
        return text
    half = MAX_SHOWN // 2
    return f"{text[:half]} ...[{len(text) - 2 * half} characters left out]... {text[-half:]}"


def cost(files: Iterable[Iterable[Entry]]) -> int:
    """About what all of it costs, in tokens."""
    return sum(tokens(entry.folded()) for entries in files for entry in entries)


def choose(files: Sequence[Sequence[Entry]], budget: int) -> list[list[Entry]]:
    """Of each file the entries that fit the budget.

    Protected ones always; then both ends and the onset of trouble, errors, warnings, and the rest spread evenly. What
    tells of no trouble gets a part of the budget only: a log of much text and no error is short all the same.
    """
    chosen: set[int] = set()
    left, calm_left = budget, round(budget * CALM_SHARE)
    for at_ends, tier in _tiers(files):
        fresh = list({id(entry): entry for entry in tier if id(entry) not in chosen}.values())
        calm = [entry for entry in fresh if entry.weight == "other" and not entry.protected]
        loud = [entry for entry in fresh if entry.weight != "other" or entry.protected]
        for entries, room in ((loud, left), (calm, left if at_ends else min(left, calm_left))):
            costs = [tokens(entry.folded()) for entry in entries]
            always = bool(entries) and entries[0].protected
            taken = range(len(entries)) if always or sum(costs) <= room else _spread(costs, room)
            chosen.update(id(entries[at]) for at in taken)
            spent = sum(costs[at] for at in taken)
            left -= spent
            calm_left -= spent if entries is calm else 0
    return [[entry for entry in entries if id(entry) in chosen] for entries in files]


def _tiers(files: Sequence[Sequence[Entry]]) -> Iterator[tuple[bool, list[Entry]]]:
    """What is wanted, the most wanted first, and whether it is wanted for its place at an end or the onset."""

    def every(pick: Callable[[Sequence[Entry]], Iterable[Entry]], at_ends: bool = False) -> tuple[bool, list[Entry]]:
        return at_ends, [entry for entries in files for entry in pick(entries)]

    def says(entry: Entry) -> bool:
        return entry.weight == "error" and not entry.frame

    yield every(lambda entries: [entry for entry in entries if entry.protected])
    yield every(lambda entries: _ends(entries, *_ENDS[0]), at_ends=True)
    yield every(lambda entries: [entry for entry in entries if says(entry)][:1])
    yield every(lambda entries: _one_each(filter(says, entries)))
    yield every(_onset, at_ends=True)
    yield every(lambda entries: _ends(entries, *_ENDS[1]), at_ends=True)
    yield every(lambda entries: _one_each(entry for entry in entries if entry.weight == "warning"))
    yield every(lambda entries: _ends(entries, *_ENDS[2]))
    yield every(lambda entries: filter(says, entries))
    yield every(_last_frames)
    yield every(lambda entries: [entry for entry in entries if entry.weight == "error"])
    yield every(lambda entries: [entry for entry in entries if entry.weight == "warning"])
    yield every(_one_each)
    yield every(lambda entries: entries)


def _ends(entries: Sequence[Entry], head: int, tail: int) -> list[Entry]:
    """The last and first lines, no more than a few that say the same kind of thing."""
    return [*_few_alike(entries[: -tail - 1 : -1]), *_few_alike(entries[:head])]


def _few_alike(entries: Iterable[Entry]) -> list[Entry]:
    seen: Counter[str] = Counter()
    found = []
    for entry in entries:
        kind = gist(entry.body)
        seen[kind] += 1
        if seen[kind] <= _ALIKE:
            found.append(entry)
    return found


def _onset(entries: Sequence[Entry]) -> Sequence[Entry]:
    first = next((at for at, entry in enumerate(entries) if entry.weight == "error"), None)
    return () if first is None else entries[max(0, first - _ONSET[0]) : first + _ONSET[1]]


def _one_each(entries: Iterable[Entry]) -> list[Entry]:
    """The first line of each kind."""
    return list({gist(entry.body): entry for entry in reversed(list(entries))}.values())[::-1]


def _last_frames(entries: Sequence[Entry]) -> list[Entry]:
    """Where each traceback ends: the frames nearest to the exception."""
    blocks: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.block >= 0:
            blocks.setdefault(entry.block, []).append(entry)
    return [entry for block in blocks.values() for entry in block[-_LAST_FRAMES:]]


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
