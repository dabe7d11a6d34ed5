"""Which files someone who is not at the keyboard may name: those below the roots, by their true place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from triage.errors import InputError, UsageError
from triage.text import printable

MOST_PATHS = 64
MOST_PATH = 4096  # characters
MOST_ENTRIES = 20_000  # of a folder, that are checked for links
_ALLOW = "--root DIR allows another folder"


def roots_of(given: Sequence[str], by: str = "--root") -> tuple[Path, ...]:
    """The folders, as they truly lie; by: what names them. Errors: UsageError."""
    found = []
    for name in given:
        path = Path(name).expanduser()
        if not path.is_dir():
            raise UsageError(f"{by} {printable(name)} is no folder", "give a folder that is there")
        found.append(path.resolve())
    return tuple(found)


def within(paths: Sequence[str], roots: Sequence[Path], allow: str = _ALLOW) -> list[str]:
    """The true places of the paths; allow: what lets others be read, in words. Errors: InputError for one that is not below a root, or leads out of it."""
    if not 0 < len(paths) <= MOST_PATHS:
        raise InputError(f"{len(paths)} paths", f"give from 1 to {MOST_PATHS}, or the folder they are in")
    return [str(_within(path, roots, allow)) for path in paths]


def _within(name: str, roots: Sequence[Path], allow: str) -> Path:
    shown = printable(name[:200])
    if not name or len(name) > MOST_PATH or not name.isprintable():
        raise InputError(f"{shown!r} is no path", "give a file or folder below a root")
    path = Path(name) if Path(name).is_absolute() else roots[0] / name
    try:
        true = path.resolve(strict=True)
    except (OSError, RuntimeError):
        if _below(Path(os.path.realpath(path)), roots):  # unlike resolve(), it takes links that go round
            raise InputError(f"{shown} is not there", "give a file or folder below a root") from None
        raise InputError(f"{shown} is outside of the roots", allow) from None
    if not _below(true, roots):
        raise InputError(f"{shown} is outside of the roots", allow)
    if true.is_dir():
        _check_links(true, roots)
    elif not true.is_file():
        raise InputError(f"{shown} is no file or folder", "pipes and devices are not read")
    return true


def _check_links(folder: Path, roots: Sequence[Path]) -> None:
    """No link below the folder may lead out of the roots. Errors: InputError."""
    count = 0
    for where, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            count += 1
            path = Path(where, entry)
            if path.is_symlink() and not _below(Path(os.path.realpath(path)), roots):
                raise InputError(f"{printable(str(path))} leads outside of the roots", "name the files themselves")
        if count > MOST_ENTRIES:
            raise InputError(f"{printable(str(folder))} holds more than {MOST_ENTRIES} files", "name a smaller folder")


def _below(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
