"""What a model is shown of a log: one of each kind of line that the rules in force leave over, the costliest first. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from triage import heads
from triage.compress import guard, telling
from triage.compress.wording import wording
from triage.domain import LogLine

EXAMPLES = 3  # lines of a kind that are shown
MOST_CHARS = 400  # of a line


@dataclass(frozen=True, slots=True)
class Kind:
    """Lines of one wording. lines: some that differ; count and size: lines and bytes of all, in the log."""

    wording: str
    lines: tuple[str, ...]
    count: int
    size: int


@dataclass(slots=True)
class _Found:
    lines: dict[str, None] = field(default_factory=dict)  # a set in order
    count: int = 0
    size: int = 0


def kinds(lines: Iterable[LogLine], asked: Iterable[str] = ()) -> tuple[Kind, ...]:
    """The kinds of line, the costliest first. asked: lines whose kinds are left out, for they were asked about before.

    A line that tells of trouble is no kind: no rule may take it.
    """
    known = {kind_of(line) for line in asked}
    found: dict[str, _Found] = {}
    for line in lines:
        if line.level in ("error", "fatal") or not line.text.strip() or guard.alarm(line.text) or _of_stack(line.text):
            continue
        name = kind_of(line.text)
        if not name or name in known:
            continue
        entry = found.setdefault(name, _Found())
        if len(entry.lines) < EXAMPLES:
            entry.lines[line.text[:MOST_CHARS]] = None
        entry.count += line.repeats
        entry.size += line.repeats * (len(line.text) + 1)
    made = (Kind(name, tuple(entry.lines), entry.count, entry.size) for name, entry in found.items())
    return tuple(sorted(made, key=lambda kind: -kind.size))


def _of_stack(text: str) -> bool:
    """May it be part of a traceback? No rule takes one."""
    return telling.is_frame(text) or telling.is_source(heads.split(text)[1])


def kind_of(text: str) -> str:
    """What lines of one kind have in common: their wording behind labels and time stamps."""
    return wording(heads.split(text)[1])


def batches(found: Sequence[Kind], most_kinds: int, most_chars: int) -> Iterator[tuple[Kind, ...]]:
    """Kinds for one question each; a question has at least one."""
    batch: list[Kind] = []
    room = most_chars
    for kind in found:
        size = sum(len(line) + 8 for line in kind.lines)
        if batch and (len(batch) == most_kinds or size > room):
            yield tuple(batch)
            batch, room = [], most_chars
        batch.append(kind)
        room -= size
    if batch:
        yield tuple(batch)


def numbered(batch: Sequence[Kind]) -> tuple[str, ...]:
    """The lines of a question in order: line N of it is the N-th, from 1."""
    return tuple(line for kind in batch for line in kind.lines)


def digest(shown: str) -> str:
    """The sha256 of what a model was shown, by which a rule remembers it."""
    return hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()
