"""Names that a client gives its files. Pure."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

MOST_PARTS, MOST_BYTES = 4, 120
_STRANGE = re.compile(r"[^\w.+@=,\[\]-]+")  # letters of any alphabet tell two logs apart


def safe_name(given: str, fallback: str = "log") -> PurePosixPath:
    """A name for an uploaded file: its last folders are kept, as they may say which node it is of; nothing else is."""
    parts = [p for p in re.split(r"[/\\]+", given.strip()) if p.strip(". ")]
    clean = [_short(_STRANGE.sub("_", unicodedata.normalize("NFC", part))).lstrip(".-") for part in parts[-MOST_PARTS:]]
    return PurePosixPath(*[part or "_" for part in clean] or [fallback])


def _short(part: str) -> str:
    """The end says what kind of file it is."""
    raw, half = part.encode(), MOST_BYTES // 2
    return (
        part if len(raw) <= MOST_BYTES else raw[:half].decode("utf-8", "ignore") + raw[-half:].decode("utf-8", "ignore")
    )


class Taken:
    """Names of one upload, each given once."""

    def __init__(self) -> None:
        self._names: set[PurePosixPath] = set()
        self._folders: set[PurePosixPath] = set()
        self._last: dict[PurePosixPath, int] = {}  # thousands may have one name: where to go on counting

    def another(self, name: PurePosixPath) -> PurePosixPath:
        """The name, with a number where it is taken, or where a file stands for a folder of it; taken from now on."""
        number, found = self._last.get(name, 1), name
        if number > 1:
            found = _numbered(name, number)
        while found in self._names or found in self._folders or not self._names.isdisjoint(found.parents):
            number += 1
            found = _numbered(name, number)
        self._last[name] = number
        self._names.add(found)
        self._folders.update(found.parents)
        return found


def _numbered(name: PurePosixPath, number: int) -> PurePosixPath:
    return PurePosixPath(f"{number}-{name.parts[0]}", *name.parts[1:])
