"""Real jobs to watch: see scenarios/jobs.py."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from triage import reach
from triage.probing.probe import LocalProbe, Whose
from triage.watching.loop import Target, Told, Watcher
from triage.watching.tails import Logs
from triage.watching.values import Options, Status

JOBS = Path(__file__).parent / "scenarios" / "jobs.py"


class Starter:
    """Forks jobs from a process that has imported what they need."""

    def __init__(self, *more: str) -> None:
        env = {**os.environ, "RANK": "x", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(JOBS), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self._answer()
        self._started: list[int] = []

    def start(self, scenario: str, folder: Path, **more: Any) -> int:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"scenario": scenario, "folder": str(folder), **more}) + "\n")
        self._process.stdin.flush()
        self._started.append(self._answer()["pid"])
        return self._started[-1]

    def end_jobs(self) -> None:
        while self._started:
            session = self._started.pop()
            for pid in _of_session(session):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self.end_jobs()
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the process that starts jobs has ended"
        return json.loads(line)


def _of_session(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                    found.append(int(entry.name))
    return found


@pytest.fixture(scope="session")
def _plain() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.close()


@pytest.fixture(scope="session")
def _torch() -> Iterator[Starter]:
    pytest.importorskip("torch")
    starter = Starter("torch")
    yield starter
    starter.close()


@pytest.fixture
def plain(_plain: Starter) -> Iterator[Starter]:
    yield _plain
    _plain.end_jobs()


@pytest.fixture
def torch_jobs(_torch: Starter) -> Iterator[Starter]:
    yield _torch
    _torch.end_jobs()


@dataclass
class Seen:
    """What a watcher told, each with the seconds since it began."""

    until: Callable[[Status], bool]
    told: list[tuple[float, Told]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    is_over: bool = False
    busy: bool = False

    def tell(self, told: Told) -> None:
        self.told.append((time.monotonic() - self.began, told))
        self.is_over = self.is_over or self.until(told.status)

    def tick(self) -> None:
        """Nothing is collected here."""

    @property
    def states(self) -> list[str]:
        return list(dict.fromkeys(told.status.state for _, told in self.told))

    @property
    def hung(self) -> Status | None:
        return next((told.status for _, told in self.told if told.status.state == "hung"), None)

    @property
    def last(self) -> Status:
        return self.told[-1][1].status


def watch(
    pid: int | None,
    options: Options,
    seconds: float,
    logs: list[str] | None = None,
    until: Callable[[Status], bool] = lambda status: status.state == "hung",
) -> Seen:
    """Watches for real, until a state comes or the time is over."""
    seen = Seen(until)
    probe = LocalProbe(reach.local(), Whose((pid,))) if pid else None
    target = Target("the job", probe, Logs(logs or []), outputs=logs is None)
    Watcher(target, options, seen, lambda: seen.is_over or time.monotonic() - seen.began > seconds).run()
    return seen
