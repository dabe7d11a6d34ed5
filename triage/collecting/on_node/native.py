"""The stack of each thread of a program that is not Python's, by a debugger that stops it for a moment."""

import os
import re
from typing import List

from triage.collecting.on_node.children import Finding, attempt, command
from triage.collecting.on_node.processes import proc

# Nothing is fetched, no file beside the program is run, and no argument, which may be a secret, is printed.
_GDB = ["gdb", "-nx", "-batch", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off"]
_GDB_PRINTS = ["-iex", "set print frame-arguments none", "-ex", "thread apply all bt 64", "-p"]
DEBUGGERS = ([*_GDB, *_GDB_PRINTS], ["eu-stack", "-m", "-n", "64", "-p"])
_TELLS = re.compile(rb"Thread \d|TID \d|#\d+ ", re.MULTILINE)


def native(pid: int, file: str, started: float, limit: float) -> Finding:
    """By the first debugger that is here. Of a process in D, T or t state none is taken: what attaches to one would wait, or
    set it going when it lets go."""
    text = proc(pid, "stat")
    comm, state = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2]
    if state in "DTtZX":
        return {"attempts": [attempt("stack", started, None, f"left alone, as it is in state {state}")]}
    _read_first(pid)
    attempts, said = [], b""
    for argv in DEBUGGERS:
        done, out, err = command([*argv, str(pid)], limit)
        attempts.append(dict(done, tool=f"{argv[0]} {argv[-1]} {pid}"))
        told = _told(out)
        if told:
            return {
                "attempts": attempts,
                "files": {file: f"Process {pid}: {comm}\n".encode() + b"\n".join(told) + b"\n"},
            }
        if not done["problem"].startswith("there is no"):
            attempts[-1]["problem"] = done["problem"] or "no stack"
            said += f"# {argv[0]} -p {pid}: {attempts[-1]['problem']}\n".encode() + err.strip() + b"\n"
    return {"attempts": attempts, "files": {file: said} if said else {}}


def _read_first(pid: int) -> None:
    """A debugger reads the program and its libraries while it holds the process: a file system that hangs is to hold us, who
    hold nothing."""
    for path in {
        line.split(None, 5)[5] for line in proc(pid, "maps").splitlines() if " /" in line and "x" in line.split()[1]
    }:
        try:
            os.stat(path)
        except OSError:
            continue


def _told(out: bytes) -> "List[bytes]":
    """Threads and frames, without what the debugger says of itself."""
    return [line for line in out.splitlines() if _TELLS.match(line)]
