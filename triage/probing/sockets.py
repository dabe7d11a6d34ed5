"""The sockets of processes, as /proc shows them. Standard library alone: this text also runs on other nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_INODE = re.compile(r"socket:\[(\d{1,20})\]")
_LISTEN, _CONNECTED = "0A", "01"  # states of TCP
_UNIX_LISTENS = 0x10000  # a flag of a Unix socket
_UNIX_CONNECTED = "03"
_STANDARD = ("0", "1", "2")  # a service's output may be a connection to the journal
Table = dict[str, str]  # inode to where it listens, "" for one that is connected


def read_sockets(pids: Iterable[int], proc: str = "/proc") -> dict[str, tuple[list[str], int]]:
    """Of each process: where it listens, and how many connections it has; one that is not readable is left out."""
    tables: dict[str, Table] = {}
    found = {}
    for pid in pids:
        try:
            space = os.readlink(f"{proc}/{pid}/ns/net")  # noqa: PTH115 - Python of other nodes may be old
            if space not in tables:
                tables[space] = _table(f"{proc}/{pid}/net")
            inodes = _inodes(f"{proc}/{pid}/fd")
        except OSError:
            continue
        told = [tables[space][inode] for inode in inodes if inode in tables[space]]
        found[str(pid)] = (sorted(set(filter(None, told))), told.count(""))
    return found


def _inodes(folder: str) -> list[str]:
    found = []
    for number in os.listdir(folder):  # noqa: PTH208
        if number in _STANDARD:
            continue
        try:
            match = _INODE.fullmatch(os.readlink(f"{folder}/{number}"))  # noqa: PTH115
        except OSError:
            continue
        if match:
            found.append(match[1])
    return found


def _table(folder: str) -> Table:
    found: Table = {}
    for name in ("tcp", "tcp6"):
        for cells in _rows(f"{folder}/{name}"):
            if len(cells) > 9 and cells[3] in (_LISTEN, _CONNECTED):
                port = int(cells[1].rpartition(":")[2], 16)
                found[cells[9]] = f"port {port}" if cells[3] == _LISTEN else ""
    for cells in _rows(f"{folder}/unix"):
        if len(cells) > 6 and int(cells[3], 16) & _UNIX_LISTENS:
            found[cells[6]] = cells[7] if len(cells) > 7 else "a socket without a name"
        elif len(cells) > 6 and cells[5] == _UNIX_CONNECTED:
            found[cells[6]] = ""
    return found


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []
