"""Names that a client gives its files. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

MOST_PARTS, MOST_BYTES = 4, 120
_STRANGE = re.compile(r"[^A-Za-z0-9._+@=,\[\]-]+")


def safe_name(given: str, fallback: str = "log") -> PurePosixPath:
    """A name for an uploaded file: its last folders are kept, as they may say which node it is of; nothing else is."""
    parts = [p for p in re.split(r"[/\\]+", given.strip()) if p.strip(". ")]
    clean = [_short(_STRANGE.sub("_", part)).lstrip(".-") for part in parts[-MOST_PARTS:]]
    return PurePosixPath(*[part or "_" for part in clean] or [fallback])


def _short(part: str) -> str:
    """The end says what kind of file it is."""
    return part if len(part) <= MOST_BYTES else part[: MOST_BYTES // 2] + part[-MOST_BYTES // 2 :]


def another(name: PurePosixPath, taken: set[PurePosixPath]) -> PurePosixPath:
    """The name, with a number where it is taken, or where a file stands for a folder of it."""
    folders = {parent for t in taken for parent in t.parents}
    number, found = 1, name
    while found in taken or found in folders or any(parent in taken for parent in found.parents):
        number += 1
        found = PurePosixPath(f"{number}-{name.parts[0]}", *name.parts[1:])
    return found
