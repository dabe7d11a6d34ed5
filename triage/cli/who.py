"""Who sits at the keyboard."""

from __future__ import annotations

import getpass


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container runs under a number that nobody has
        return "unknown"
