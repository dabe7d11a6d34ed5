"""Which of the folded lines a token budget keeps. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from triage.compress.folding import Entry
from triage.compress.tracebacks import HEADER
from triage.compress.wording import gist
from triage.domain import LogLine
from triage.text import rank_ranges

CHARS_PER_TOKEN = 1.9  # of log text, measured
MAX_SHOWN = 1000  # characters of a line that is shown
_ENDS = ((1, 2), (3, 8), (10, 30))  # first and last lines of a file, wanted in this order
CALM_SHARE = 0.5  # of the budget, for lines that tell of no trouble
_ALIKE = 3  # lines that say the same kind of thing, in the head or tail of a file
_ONSET = (3, 8)  # lines before and after the first error
_LAST_FRAMES = 6  # lines in which a traceback ends
_PASSAGES = 6  # of text that tells of no trouble
_GAP_MARK = 21  # characters of "... 1 line" with its margin

Group = tuple[Entry, ...]


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

    Cited ones and landmarks always; then both ends and the onset of trouble, errors, warnings, and of the rest a few
    passages. What tells of no trouble gets a part of the budget only: a log of much text and no error is short all the
    same. A traceback is shown whole, or its header and where it ends.
    """
    chosen: set[int] = set()
    left, calm_left = budget, round(budget * CALM_SHARE)
    for wanted in _tiers(files, excerpts(files)):
        fresh = [group for group in wanted.groups if any(id(entry) not in chosen for entry in group)]
        calm = [group for group in fresh if group[0].weight == "other" and not group[0].always]
        loud = [group for group in fresh if group[0].weight != "other" or group[0].always]
        for groups, room in ((loud, left), (calm, left if wanted.at_ends else min(left, calm_left))):
            costs = [sum(tokens(entry.folded()) for entry in group if id(entry) not in chosen) for group in groups]
            if not costs:
                continue
            if wanted.always or sum(costs) <= room:
                taken: Iterable[int] = range(len(groups))
            elif groups is calm and wanted.passages is not None:
                taken = _passages(costs, room) if wanted.passages else ()
            else:
                taken = _spread(costs, room)
            for at in taken:
                left -= costs[at]
                calm_left -= costs[at] if groups is calm else 0
                chosen.update(map(id, groups[at]))
    return [_without_small_gaps(entries, chosen) for entries in files]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is chosen together: groups of entries, each as a whole.

    at_ends: wanted for its place at an end or the onset. passages: of calm text that does not fit, whether a few passages
    are taken or nothing; None: what is evenly spread.
    """

    groups: Sequence[Group]
    at_ends: bool = False
    always: bool = False
    passages: bool | None = None


def excerpts(files: Sequence[Sequence[Entry]]) -> dict[int, Group]:
    """By the id of each entry of a traceback, what must be shown of it: each header, and the lines before the next."""
    found: dict[int, Group] = {}
    for entries in files:
        for block in _blocks(entries):
            starts = [at for at, entry in enumerate(block) if not at or HEADER in entry.body]
            ends = [*starts[1:], len(block)]
            shown = {place for a, b in zip(starts, ends, strict=True) for place in (a, *range(b)[-_LAST_FRAMES:])}
            short = tuple(block[at] for at in sorted(at for at in shown))
            found.update(dict.fromkeys(map(id, block), short))
    return found


def _blocks(entries: Iterable[Entry]) -> list[Group]:
    """The tracebacks."""
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.block >= 0:
            found.setdefault(entry.block, []).append(entry)
    return [tuple(block) for block in found.values()]


def _tiers(files: Sequence[Sequence[Entry]], short: Mapping[int, Group]) -> Iterator[_Wanted]:
    """What is wanted, the most wanted first. short: excerpts(files)."""

    def every(
        pick: Callable[[Sequence[Entry]], Iterable[Entry]], at_ends: bool = False, calm: bool | None = None
    ) -> _Wanted:
        groups = [short.get(id(entry), (entry,)) for entries in files for entry in pick(entries)]
        return _Wanted(tuple({id(group[0]): group for group in groups}.values()), at_ends, passages=calm)

    def says(entry: Entry) -> bool:
        return entry.weight == "error" and not entry.frame

    yield _Wanted([(entry,) for entries in files for entry in entries if entry.always], always=True)
    yield every(lambda entries: [entry for entry in entries if entry.always])
    yield every(lambda entries: _ends(entries, *_ENDS[0]), at_ends=True)
    yield every(lambda entries: [entry for entry in entries if says(entry)][:1])
    yield every(lambda entries: _one_each(filter(says, entries)))
    yield every(_onset, at_ends=True)
    yield every(lambda entries: _ends(entries, *_ENDS[1]), at_ends=True)
    yield every(lambda entries: _one_each(entry for entry in entries if entry.weight == "warning"))
    yield every(lambda entries: _ends(entries, *_ENDS[2]))
    yield every(lambda entries: filter(says, entries))
    yield _Wanted([block for entries in files for block in _blocks(entries)])
    yield every(lambda entries: [entry for entry in entries if entry.weight == "error"])
    yield every(lambda entries: [entry for entry in entries if entry.weight == "warning"])
    yield every(_one_each, calm=False)
    yield every(lambda entries: entries, calm=True)


def _without_small_gaps(entries: Sequence[Entry], chosen: Collection[int]) -> list[Entry]:
    """The chosen ones, and one alone between two of them that is shorter than the mark of a gap."""
    found = [entry for entry in entries if id(entry) in chosen]
    kept = {entry.line.number for entry in found}
    return [
        entry
        for entry in entries
        if id(entry) in chosen
        or (len(entry.line.text) <= _GAP_MARK and entry.line.number - 1 in kept and entry.line.number + 1 in kept)
    ]


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


def _passages(costs: Sequence[int], room: int) -> list[int]:
    """Places in a few unbroken rows, evenly spread, whose costs fit the room."""
    total = sum(costs)
    taken: list[int] = []
    passed = spent = row = 0
    for at, cost in enumerate(costs):
        if passed * _PASSAGES >= row * total:
            row += 1
        if spent + cost <= room * row / _PASSAGES:
            taken.append(at)
            spent += cost
        passed += cost
    return taken
