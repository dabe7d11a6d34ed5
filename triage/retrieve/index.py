"""The seam to a vector index, and an exact one in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One vector of length 1. Ids name their content, so an entry never changes: it is added or removed."""

    id: str
    vector: Vector
    labels: Mapping[str, str] = field(default_factory=dict)  # what `where` compares


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    similarity: float  # cosine, -1..1


class Index(Protocol):
    """All methods raise IndexUnavailableError where the index cannot be used; `where` asks for equal labels."""

    def add(self, entries: Sequence[Entry]) -> None:
        """Adds them; an id that is there already is replaced."""

    def remove(self, ids: Collection[str]) -> None:
        """Removes them; an id that is not there is passed over."""

    def search(self, vector: Vector, k: int, where: Mapping[str, str] | None = None) -> list[Hit]:
        """The k nearest, nearest first."""

    def searches(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        """The same for several at once: an embedded index of many vectors takes its time to open."""

    def ids(self, where: Mapping[str, str] | None = None) -> set[str]: ...

    def among(self, ids: Collection[str]) -> set[str]:
        """Those of them that are there."""

    def count(self) -> int: ...

    def held(self) -> AbstractContextManager[None]:
        """Several operations within it share what one costs to begin."""

    def rebuild(self, entries: Sequence[Entry]) -> None:
        """Replaces all that the index holds for this embedding."""


class MemoryIndex:
    """Exact, of this process alone: for tests, benchmarks and tools that keep nothing."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def add(self, entries: Sequence[Entry]) -> None:
        self._entries.update((entry.id, entry) for entry in entries)

    def remove(self, ids: Collection[str]) -> None:
        for name in ids:
            self._entries.pop(name, None)

    def search(self, vector: Vector, k: int, where: Mapping[str, str] | None = None) -> list[Hit]:
        found = [Hit(e.id, float(e.vector @ vector)) for e in self._entries.values() if _fits(e, where)]
        return sorted(found, key=lambda hit: (-hit.similarity, hit.id))[:k]

    def searches(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        return [self.search(vector, k) for vector in vectors]

    def held(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def among(self, ids: Collection[str]) -> set[str]:
        return self._entries.keys() & set(ids)

    def ids(self, where: Mapping[str, str] | None = None) -> set[str]:
        return {e.id for e in self._entries.values() if _fits(e, where)}

    def count(self) -> int:
        return len(self._entries)

    def rebuild(self, entries: Sequence[Entry]) -> None:
        self._entries = {entry.id: entry for entry in entries}


def _fits(entry: Entry, where: Mapping[str, Any] | None) -> bool:
    return all(entry.labels.get(name) == value for name, value in (where or {}).items())
