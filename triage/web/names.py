"""Names and paths that a client gives. Pure but for looking at the disk: nothing of it leaves the folders it may name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from triage.errors import InputError, UsageError

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


def allowed(given: str, roots: Sequence[Path]) -> str:
    """The path, where it truly lies under one of the roots, links followed. Errors: UsageError, InputError."""
    if not roots:
        raise UsageError("this server reads no paths", "upload the logs, or set TRIAGE_SERVE_ROOTS")
    refused = InputError(f"{given!r} is under none of the folders that this server may read")
    if "\0" in given or not given.startswith("/"):
        raise UsageError("a path must be absolute")
    try:
        real = Path(given).resolve(strict=True)
    except (OSError, RuntimeError):
        raise refused from None  # what is not allowed and what is not there look alike
    if not any(real.is_relative_to(root.resolve()) for root in roots):
        raise refused
    inside = [real, *real.rglob("*")] if real.is_dir() else [real]
    for path in inside:
        if path.is_symlink() and not any(path.resolve().is_relative_to(root.resolve()) for root in roots):
            raise InputError(f"{given!r} holds a link that leads out of the folders that this server may read")
    return str(real)
