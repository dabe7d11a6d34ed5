"""Who sits at the keyboard, and whose number is whose."""

from __future__ import annotations

import getpass
import pwd


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container runs under a number that nobody has
        return "unknown"


def user_of(number: str) -> str:
    """The name of a user id with its number, where this machine knows it."""
    try:
        return f"{pwd.getpwuid(int(number)).pw_name} (uid {number})"
    except (KeyError, ValueError, OverflowError):
        return f"uid {number}" if number.isdigit() else number
