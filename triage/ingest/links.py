"""Where symbolic links of a folder lead: some hold no log, and to read them may never end or take what others are to read."""

from __future__ import annotations

import os
from pathlib import Path

_OF_KERNEL = ("/proc/", "/sys/", "/dev/")  # /proc/kmsg calls itself a regular file, and reading it waits for ever


def why_not(path: Path, folder: Path) -> str:
    """Why a link below the folder is not followed, in words; "" where it is, or is none."""
    if not path.is_symlink():
        return ""
    target = os.path.realpath(path)
    if f"{target}/".startswith(_OF_KERNEL):
        return "a link into the kernel's own files, left out"
    if f"{os.path.realpath(folder)}/".startswith(f"{target.rstrip('/')}/") and path.is_dir():
        return "a link to a folder above, left out"
    return ""


def leads_out(path: Path, folder: Path) -> bool:
    return path.is_symlink() and not os.path.realpath(path).startswith(f"{os.path.realpath(folder).rstrip('/')}/")
