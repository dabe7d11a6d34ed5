"""Completeness across ranks, told by names: files whose names differ by numbers alone must fill their grid. Pure.

Of `zero_pp_rank_3_mp_rank_01_optim_states.pt` the numbers are called zero_pp_rank and mp_rank. Each takes the values that any name of the
checkpoint gives it, and every name that has it must be there with all of them; a rank's run from 0 on without a gap.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping

_NUMBER = re.compile(r"([A-Za-z_./-]*?)(\d{1,9})")
_SHARD = re.compile(r"(.*[-_])(\d{1,6})(-of-)(\d{1,6})(\..*)")
_RANK = re.compile(r"(?:rank|rng_state|model)'*")
_NO_GRID = re.compile(r"\.distcp$|-of-\d+\.|(?:^|/)(?:events\.|\.)|\.(?:json|txt|py|md|log|model)$")
MOST_MISSING = 10_000

Key = tuple[str, tuple[str, ...]]  # the name with # for its numbers, what the numbers are called


def missing(names: Collection[str]) -> list[str]:
    """Names that are not there, though others say that they should be; sorted, at most MOST_MISSING."""
    found: dict[Key, dict[tuple[int, ...], str]] = {}
    for name in names:
        if not _NO_GRID.search(name) and (read := _read(name)):
            key, numbers = read
            found.setdefault(key, {})[numbers] = name
    values = _values(found)
    lost: list[str] = []
    for (_shape, called), there in found.items():
        if not any(_RANK.search(one) for one in called):
            continue  # a number that is no rank's tells nothing of what should be there
        mine = _values({(_shape, called): there})
        ranges = [values[one] if _RANK.search(one) else mine[one] for one in called]
        wanted = itertools.islice(itertools.product(*(sorted(r) for r in ranges)), MOST_MISSING)
        lost += [_named(there, numbers) for numbers in wanted if numbers not in there]
    return sorted(set(lost) | set(_shards(names)))[:MOST_MISSING]


def _read(name: str) -> tuple[Key, tuple[int, ...]] | None:
    called: list[str] = []
    numbers = []
    for before, number in _NUMBER.findall(name):
        word = re.sub(r"^.*/", "", before).strip("_-.")
        called.append(word if re.search("[A-Za-z]", word) else f"{called[-1] if called else ''}'")
        numbers.append(int(number))
    shape = re.sub(r"\d+", "#", name)
    return ((shape, tuple(called)), tuple(numbers)) if numbers else None


def _values(found: Mapping[Key, Mapping[tuple[int, ...], str]]) -> dict[str, set[int]]:
    """Of each kind of number, all that occur; of ranks all up to the highest."""
    values: dict[str, set[int]] = {}
    for (_shape, called), there in found.items():
        for numbers in there:
            for one, number in zip(called, numbers, strict=True):
                values.setdefault(one, set()).add(number)
    return {
        one: set(range(max(seen) + 1)) if _RANK.search(one) and max(seen) < MOST_MISSING else seen
        for one, seen in values.items()
    }


def _named(there: Mapping[tuple[int, ...], str], numbers: tuple[int, ...]) -> str:
    """With as many digits as the names that are there."""
    like = next(iter(there.values()))
    widths = [len(number) for _, number in _NUMBER.findall(like)]
    parts = re.split(r"\d+", like)
    return "".join(
        itertools.chain.from_iterable(
            itertools.zip_longest(parts, (f"{n:0{w}d}" for n, w in zip(numbers, widths, strict=True)), fillvalue="")
        )
    )


def _shards(names: Iterable[str]) -> Iterable[str]:
    """Of `model-00002-of-00005.safetensors` all five."""
    of: dict[tuple[str, str, str], set[int]] = {}
    for name in names:
        if found := _SHARD.fullmatch(name):
            of.setdefault((found[1], found[3] + found[4], found[5]), set()).add(int(found[2]))
    for (head, count, tail), there in of.items():
        width, last = len(count) - 4, int(count[4:])
        first = 0 if 0 in there else 1
        yield from (
            f"{head}{n:0{width}d}{count}{tail}" for n in range(first, min(last, MOST_MISSING) + first) if n not in there
        )
