"""Runs the real command in a process of its own, forked from one that is warm."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.forked import READY
from tests.conftest import REPO


def _surroundings() -> dict[str, str]:
    """Without what is meant for the tests themselves: it is no setting."""
    return {name: value for name, value in os.environ.items() if name != "TRIAGE_SHARED"}


Run = Callable[..., "subprocess.CompletedProcess[str]"]


OWN_START = ("PYTHON", "LANG", "LC_", "LD_")  # variables that count when a process starts


class Forks:
    """A process that forks one for each command."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.forked", str(theirs.fileno())],
            env={**_surroundings(), "PYTHONPATH": str(REPO)},
            cwd=REPO,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._channel.settimeout(120)
        assert self._channel.recv(1) == READY

    def run(self, args: Sequence[str], data: bytes, cwd: Path, env: dict[str, str]) -> tuple[int, bytes, bytes]:
        """The exit code and what was written; a negative code is a signal."""
        request = json.dumps({"args": args, "cwd": str(cwd), "env": env}).encode()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            theirs, ours = os.pipe()
            socket.send_fds(self._channel, [request], [theirs, out.fileno(), err.fileno()])
            os.close(theirs)
            writer = threading.Thread(target=_write, args=(ours, data))
            writer.start()
            code = int(self._channel.recv(32))
            writer.join()
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def close(self) -> None:
        self._channel.close()
        self._server.wait(10)


def _write(pipe: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(data)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    server = Forks()
    yield server
    server.close()


@pytest.fixture
def triage(tmp_path: Path, forks: Forks) -> Run:
    """triage("diagnose", "x.log", stdin=..., cwd=...) -> the finished process, text in UTF-8."""

    def run(
        *args: str, stdin: str | bytes = "", cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        command = [sys.executable, "-m", "triage", *args]
        surroundings = {**_surroundings(), "PYTHONPATH": str(REPO), **env}
        if any(name.startswith(OWN_START) for name in env):
            done = subprocess.run(
                command,
                input=data,
                capture_output=True,
                cwd=cwd or tmp_path,
                env=surroundings,
                timeout=120,
                check=False,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = forks.run(args, data, cwd or tmp_path, surroundings)
        return subprocess.CompletedProcess(command, code, out.decode("utf-8"), err.decode("utf-8", "replace"))

    return run
