"""What ails the disk under a file that cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

LITTLE = 64 << 10  # bytes: SQLite and the index take more to open what they have


def trouble(path: Path) -> tuple[str, str]:
    """What is wrong, and what to do: its disk is full, or only to be read. ("", "") for neither, and where it is not known."""
    try:
        disk, state = _mount(path)
    except OSError:
        return "", ""
    if state.f_flag & os.ST_RDONLY:
        return f"{disk} is mounted read-only", "set TRIAGE_HOME to a folder that can be written"
    if _full(state):
        return f"the disk {disk} is full", "free some space, or set TRIAGE_HOME to a folder on another disk"
    return "", ""


def is_full(path: Path) -> bool:
    try:
        return _full(_mount(path)[1])
    except OSError:
        return False


def _full(state: os.statvfs_result) -> bool:
    return state.f_bavail * state.f_frsize < LITTLE or bool(state.f_files and not state.f_favail)


def _mount(path: Path) -> tuple[Path, os.statvfs_result]:
    """The folder from which on all is as it is at this path: a bind mount is no other device, so `is_mount` does not see it."""
    here = next(p for p in (path, *path.parents) if p.exists())
    state = os.statvfs(here)
    for parent in here.parents:
        above = os.statvfs(parent)
        if (above.f_fsid, above.f_flag) != (state.f_fsid, state.f_flag):
            break
        here = parent
    return here, state


def only_read(database: Path) -> bool:
    """Whether a SQLite file that is there cannot be written by this user: it, or the files that SQLite puts beside it."""
    if not database.exists():
        return False
    beside = [database.with_name(database.name + end) for end in ("-wal", "-shm")]
    ready = os.access(database.parent, os.W_OK) or all(os.access(file, os.W_OK) for file in beside)
    return not (ready and os.access(database, os.W_OK))
