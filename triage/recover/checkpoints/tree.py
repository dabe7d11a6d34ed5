"""A folder of checkpoints as the judge sees it: names, sizes and times, and a few questions to what the files hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["complete", "incomplete", "being written", "not looked into"]
Layout = Literal["Megatron", "DeepSpeed", "torch DCP", "Hugging Face", "Lightning", "Orbax", "folder", "file"]


@dataclass(frozen=True, slots=True)
class FileAt:
    """name: from the folder on, with slashes; size: bytes; changed: seconds since 1970."""

    name: str
    size: int
    changed: float


class Probe(Protocol):
    """Reads single files without loading what they hold. Files that cannot be read are told by an OSError in words."""

    def text(self, name: str) -> str:
        """The beginning of a small text, "" where there is none."""

    def cut(self, name: str) -> str:
        """Why the file is no whole one, in words: an archive without its directory, fewer bytes than its head says; "" if whole."""

    def parts(self, name: str) -> Mapping[str, int] | None:
        """Of the .metadata of a torch DCP: the files it names and the bytes each must have at least; None if it cannot be read."""

    def number(self, name: str, key: str) -> int | None:
        """A whole number that the file keeps under `key` at its top."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One checkpoint: its files by their names inside it. folder: where its siblings lie; step: None where no name says it."""

    name: str
    folder: str
    layout: Layout
    step: int | None
    files: Mapping[str, FileAt]
    inside: str  # what comes before the names of its files

    @property
    def changed(self) -> float:
        return max(f.changed for f in self.files.values())

    @property
    def bytes(self) -> int:
        return sum(f.size for f in self.files.values())


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What became of a unit. problems: why it is not to be used; notes: what one should know and can live with."""

    unit: Unit
    state: State
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """Newest first. chosen: the newest complete one."""

    found: tuple[Checkpoint, ...]
    chosen: Checkpoint | None
    notes: tuple[str, ...] = ()


def some(names: Sequence[str], most: int = 3) -> str:
    """A few of the names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
