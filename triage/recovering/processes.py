"""Runs commands, word by word and with no shell, each in a process group of its own that ends with us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from triage.errors import InputError

MOST_OUTPUT = 64 << 10  # bytes of the end of what it prints
_TICK = 0.05
_GRACE = 2.0  # seconds for the others once one has failed, and for a process that is told to end


@dataclass(frozen=True, slots=True)
class Ended:
    """code: None where it was ended by us, as it took too long or another one failed; output: the end of what it printed."""

    code: int | None
    output: str
    seconds: float


def together(commands: Sequence[Sequence[str]], timeout: float, stop: threading.Event | None = None) -> list[Ended]:
    """Starts all, waits for all; once one fails the others are ended soon after. stop: set from elsewhere, all are ended.

    Errors: InputError when one cannot be started.
    """
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        started: list[_Process] = []
        for argv in commands:
            started.append(_Process(argv))
            stack.callback(started[-1].out.close)
            stack.callback(started[-1].end)
        until = began + timeout
        while time.monotonic() < until and any(process.code is None for process in started):
            if stop is not None and stop.is_set():
                break
            if any(process.code not in (None, 0) for process in started):
                until = min(until, time.monotonic() + _GRACE)
                _wait(started, until)
                break
            time.sleep(_TICK)
        codes = [process.code for process in started]
        for process in started:
            process.end()
        return [Ended(code, p.tail(), time.monotonic() - began) for code, p in zip(codes, started, strict=True)]


def _wait(started: Sequence[_Process], until: float) -> None:
    while time.monotonic() < until and any(process.code is None for process in started):
        time.sleep(_TICK)


class _Process:
    def __init__(self, argv: Sequence[str]) -> None:
        self.out = tempfile.TemporaryFile()  # noqa: SIM115 - closed by its owner; a pipe that nobody reads would stop it
        try:
            self._process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT, start_new_session=True
            )
        except (OSError, ValueError) as error:
            self.out.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{argv[0]} cannot be run: {reason}", "is it installed on this machine?") from None

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        """The whole group: srun and ssh leave when they are told to, and take what they started along."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
                return

    def tail(self) -> str:
        size = self.out.seek(0, os.SEEK_END)
        self.out.seek(max(0, size - MOST_OUTPUT))
        return self.out.read().decode("utf-8", "replace")
