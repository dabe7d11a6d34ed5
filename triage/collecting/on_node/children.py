"""Each look at the system is made in a child of its own, with a time limit.

A look at a process or a file system that hangs may never return, not even when it is killed; what is printed does not wait
for it.
"""

import base64
import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

MOST = 4 << 20  # bytes of one command's output that are kept, its end
AT_ONCE = 16
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/opt/rocm/bin:/usr/local/cuda/bin"

Finding = Dict[str, Any]  # attempts[] (tool, code, seconds, problem), files (name to bytes), facts
_groups: "Set[int]" = set()  # of the children that run
_LEAVE = 1.0  # seconds that one that was killed has to go


class Look:
    """make: returns a finding; limit: seconds; pid: of the process that is looked at; instead: what is found where it hangs."""

    def __init__(
        self,
        tool: str,
        make: "Callable[[], Finding]",
        limit: float,
        pid: "Optional[int]" = None,
        instead: "Optional[Callable[[], Finding]]" = None,
    ) -> None:
        self.tool, self.make, self.limit, self.pid, self.instead = tool, make, limit, pid, instead


def attempt(tool: str, started: float, code: "Optional[int]" = None, problem: str = "") -> "Dict[str, Any]":
    seconds = round(time.monotonic() - started, 2)
    return {"tool": tool, "code": code, "seconds": seconds, "problem": problem}


def run(looks: "List[Look]", ends: float) -> "Iterator[Tuple[Look, Finding]]":
    """What each look found, as it comes. ends: on the monotonic clock, from when on no more are made."""
    waiting = list(looks)
    killed: "Set[int]" = set()
    running: "Dict[int, Tuple[Look, int, bytearray, float]]" = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE and time.monotonic() < ends:
            look = waiting.pop(0)
            child, pipe = _start(look)
            running[pipe] = (look, child, bytearray(), time.monotonic())
        if not running:
            for look in waiting:
                yield look, {"attempts": [attempt(look.tool, time.monotonic(), None, "no time was left for it")]}
            break
        for pipe in select.select(list(running), [], [], 0.1)[0]:
            piece = os.read(pipe, 1 << 16)
            running[pipe][2].extend(piece)
            if not piece:
                look, child = running[pipe][:2]
                yield look, _ended(pipe, *running.pop(pipe))
                killed.add(child)
        now = time.monotonic()
        for pipe, (look, child, _, started) in list(running.items()):
            if now > min(started + look.limit, ends + 1):
                yield look, _ended(pipe, *running.pop(pipe))
                killed.add(child)
        killed -= _gone(killed)
    until = time.monotonic() + _LEAVE
    while killed and time.monotonic() < until:
        killed -= _gone(killed)
        time.sleep(0.01)


def _gone(killed: "Set[int]") -> "Set[int]":
    """Those that are waited for. In a container what is not becomes a dead child of its first process, a rank perhaps, for good."""
    found = set()
    for child in killed:
        try:
            ended = os.waitpid(child, os.WNOHANG)[0]
        except ChildProcessError:
            ended = child
        if ended:
            found.add(child)
    return found


def _start(look: Look) -> "Tuple[int, int]":
    pipe, into = os.pipe()
    child = os.fork()
    if child:
        os.close(into)
        _groups.add(child)
        return child, pipe
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):  # one that never ends must not hold what its parent prints to
            os.dup2(null, number)
        data = json.dumps(_made(look), default=packed).encode()
        while data:
            data = data[os.write(into, data) :]
    finally:
        os._exit(0)


def _made(look: Look) -> Finding:
    started = time.monotonic()
    try:
        return look.make()
    except OSError as error:
        is_gone = look.pid is not None and error.errno in (errno.ENOENT, errno.ESRCH)
        problem = "the process ended meanwhile" if is_gone else error.strerror or str(error)
        return {"attempts": [attempt(look.tool, started, None, problem)]}
    except Exception as error:  # noqa: BLE001 - what one look cannot do does not end the others
        return {"attempts": [attempt(look.tool, started, None, f"{type(error).__name__}: {error}")]}


def packed(value: object) -> str:
    assert isinstance(value, bytes)
    return base64.b64encode(zlib.compress(value)).decode()


def _ended(pipe: int, look: Look, child: int, said: bytearray, started: float) -> Finding:
    os.close(pipe)
    _kill(child)
    try:
        found: Finding = json.loads(bytes(said).decode())
    except ValueError:
        waited = time.monotonic() - started
        problem = f"no answer within {waited:.0f} s" if waited >= 1 else "ended without an answer"
        found = {"attempts": [attempt(look.tool, started, None, problem)], **(look.instead() if look.instead else {})}
    return found


def _kill(child: int) -> None:
    _groups.discard(child)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def end_all(*_: object) -> None:
    """As a handler of signals: nothing that was begun outlives us."""
    for child in list(_groups):
        _kill(child)
    os._exit(1)


def command(argv: "List[str]", limit: float, more_path: str = "") -> "Tuple[Dict[str, Any], bytes, bytes]":
    """The attempt, and the end of what the command said on stdout and stderr. more_path: more folders where it may be."""
    started = time.monotonic()
    tool = " ".join(argv)
    # Those of the system first: a look into a folder of a file system that hangs would never return.
    path = ":".join(part for part in (SYSTEM_PATH, os.environ.get("PATH", ""), more_path) if part)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, LC_ALL="C", PATH=path, RUST_BACKTRACE="0", RUST_LIB_BACKTRACE="0"),
        )
    except FileNotFoundError:
        return attempt(tool, started, None, f"there is no {argv[0]} here"), b"", b""
    assert process.stdout and process.stderr
    out, err = bytearray(), bytearray()
    pipes = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    ends = started + limit
    while pipes and time.monotonic() < ends:
        for pipe in select.select(list(pipes), [], [], max(0.0, ends - time.monotonic()))[0]:
            piece = os.read(pipe, 1 << 16)
            pipes[pipe].extend(piece)
            del pipes[pipe][:-MOST]
            if not piece:
                del pipes[pipe]
    code: "Optional[int]" = None
    try:
        code = process.wait(max(0.1, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE)
    problem = f"no answer within {limit:g} s" if code is None else ""
    if code:
        problem = last_line(bytes(err)) or f"exit code {code}"
    return attempt(tool, started, code, problem), bytes(out), bytes(err)


def last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
