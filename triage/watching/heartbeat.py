"""The file by which a dead watcher is noticed."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from triage.errors import InputError
from triage.watching.values import Status
from triage.watching.words import span

_SCHEMA = "triage.heartbeat/1"
_LATE = 3.0  # periods
_GRACE = 15.0  # seconds, beside the periods: a look at a node that does not answer takes a while


class Heartbeat:
    """Written at each look, whole or not at all. Errors: InputError where the first cannot be written."""

    def __init__(self, path: Path, period: float, target: str) -> None:
        self._path, self._period, self._target = path, period, target
        self._failed = False
        try:
            self._write("starting", ended=False)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", "give --heartbeat a file that can be written") from None

    def beat(self, status: Status, ended: bool = False) -> str:
        """Why it could not be written, told once; "" if all is well: a full disk does not end a watch."""
        try:
            self._write(status.state, ended)
        except OSError as error:
            told, self._failed = self._failed, True
            return "" if told else f"the heartbeat {self._path} cannot be written: {error.strerror}"
        self._failed = False
        return ""

    def _write(self, state: str, ended: bool) -> None:
        text = json.dumps(
            {
                "schema": _SCHEMA,
                "time": time.time(),
                "pid": os.getpid(),
                "host": platform.node(),
                "period": self._period,
                "target": self._target,
                "state": state,
                "ended": ended,
            }
        )
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            new.write_text(text + "\n", "utf-8")
            new.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise


@dataclass(frozen=True, slots=True)
class Pulse:
    """alive: it watches, or ended by itself because the job did; words: for a person."""

    alive: bool
    words: str


def check(path: Path) -> Pulse:
    """Whether the watcher that writes this file is alive. Errors: InputError: there is no such file, or it is none."""
    try:
        told = json.loads(path.read_text("utf-8"))
        if told["schema"] != _SCHEMA:
            raise ValueError
        at, period, pid, host = float(told["time"]), float(told["period"]), int(told["pid"]), str(told["host"])
        what = f"the watcher of {told['target']} (pid {pid} on {host})"
        ended, state = bool(told["ended"]), str(told["state"])
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", "is a watcher started with --heartbeat, and with this file?"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: no heartbeat of triage watch", "give the file that --heartbeat names") from None
    age = max(0.0, time.time() - at)  # a clock that was put back makes no watcher dead
    if ended:
        return Pulse(state != "hung", f"{what} ended {span(age)} ago; the job was {state}")
    if host == platform.node() and not Path(f"/proc/{pid}").exists():
        return Pulse(False, f"{what} is dead; its last sign of life came {span(age)} ago, when the job was {state}")
    if age > _LATE * period + _GRACE:
        return Pulse(False, f"{what} gives no sign of life since {span(age)}, and should each {span(period)}")
    return Pulse(True, f"{what} is alive; {span(age)} ago the job was {state}")
