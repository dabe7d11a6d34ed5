"""The files that a process writes its words to. Standard library alone: this text also runs on other nodes."""

from __future__ import annotations

import os
import re

_LOG_NAME = re.compile(r"\.(?:log|out|err|txt)(?:\.\w{1,20})?$")
_MOST_FILES = 1000  # open files that are looked at


def written_files(process: str) -> tuple[list[str], list[str]]:
    """process: its folder in /proc. Those of its standard output and error; and other logs that it holds open to write."""
    try:
        numbers = sorted(map(int, os.listdir(f"{process}/fd")))[:_MOST_FILES]  # noqa: PTH208 - for speed
    except OSError:
        return [], []
    outputs: list[str] = []
    logs: list[str] = []
    for number in numbers:
        try:
            path = os.readlink(f"{process}/fd/{number}")  # noqa: PTH115 - for speed
        except OSError:
            continue
        if (
            path in outputs
            or path in logs
            or not path.startswith("/")
            or path.startswith(("/dev/", "/proc/"))
            or path.endswith(" (deleted)")
        ):
            continue
        if number in (1, 2):
            outputs.append(path)
        elif _LOG_NAME.search(path) and _is_written(f"{process}/fdinfo/{number}"):
            logs.append(path)
    return outputs, logs


def _is_written(info: str) -> bool:
    try:
        with open(info, "rb") as file:  # noqa: PTH123 - for speed
            flags = next((line for line in file if line.startswith(b"flags:")), b"flags: 0")
    except OSError:
        return False
    return int(flags[6:], 8) & 3 in (os.O_WRONLY, os.O_RDWR)
