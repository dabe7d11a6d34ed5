"""What differs between a run and a good run of the same kind of job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DifferenceKind = Literal["version", "setting", "size", "path", "node", "line"]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, 1-based."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is new, missing or changed. text: the line itself, or the difference in words.

    name, good, bad: of what has values; at, good_at: where this run says it, and where the good one does.
    evidence: the id under which the line is cited.
    """

    kind: DifferenceKind
    text: str
    why: str
    name: str = ""
    good: str = ""
    bad: str = ""
    at: Place | None = None
    good_at: Place | None = None
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences, most telling first. words: with what was compared; good: its files."""

    words: str
    good: tuple[str, ...] = ()
    new: tuple[Difference, ...] = ()
    missing: tuple[Difference, ...] = ()
    changed: tuple[Difference, ...] = ()
