"""What `triage watch` does once a job is hung: collects, diagnoses. Each in a process of its own: the watcher stays small, and lives."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_COLLECT = 180.0  # seconds, of all nodes
_AGAIN = 10  # seconds between two looks at the stacks: those of a job that hangs stay the same
_DIAGNOSE = 180.0
_TICK = 0.2
_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Findings:
    """folder: of what was collected; diagnosis: the object of the contract; problems: what did not work, in words."""

    folder: Path | None = None
    diagnosis: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Investigation:
    """found: options by which `triage hang collect` finds the job; under: where folders go; alive: called while it works."""

    found: Sequence[str]
    under: Path
    logs: Callable[[], Sequence[str]]
    stopped: Callable[[], bool]
    alive: Callable[[], None]
    _problems: list[str] = field(default_factory=list)

    def run(self) -> Findings:
        self._problems = []
        folder = self.under / f"hang-{_stem(self.found)}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        collected = bool(self.found) and self._collect(folder)
        inputs = [*([str(folder)] if collected else []), *(log for log in self.logs() if Path(log).is_file())]
        diagnosis = self._diagnose(inputs) if inputs else None
        return Findings(folder if collected else None, diagnosis, tuple(self._problems))

    def _collect(self, folder: Path) -> bool:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._problems.append(f"nothing was collected: {folder.parent}: {error.strerror}")
            return False
        code, _, err = self._child(
            ["hang", "collect", *self.found, "--again", str(_AGAIN), "--out", str(folder), "--quiet"], _COLLECT
        )
        if code not in (0, 1) or not folder.is_dir():
            self._problems.append(f"collecting failed: {err or f'code {code}'}")
        elif code == 1:
            self._problems.append("collecting: some nodes did not answer")
        return folder.is_dir()

    def _diagnose(self, inputs: list[str]) -> dict[str, Any] | None:
        _, out, err = self._child(["hang", *inputs, "--format", "json", "--quiet"], _DIAGNOSE)
        try:
            document: dict[str, Any] = json.loads(out)
        except ValueError:
            self._problems.append(f"the diagnosis failed: {err or 'it printed nothing'}")
            return None
        return document

    def _child(self, words: list[str], most: float) -> tuple[int | None, str, str]:
        """Code, stdout and the last line of stderr; None: it was ended."""
        ends = time.monotonic() + most
        with subprocess.Popen(
            [sys.executable, "-m", "triage", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            while True:
                try:
                    out, err = child.communicate(timeout=_TICK)
                    break
                except subprocess.TimeoutExpired:
                    self.alive()
                    if self.stopped() or time.monotonic() > ends:
                        child.terminate()
                        _gone(child)
                        return None, "", "was interrupted" if self.stopped() else f"took more than {most:g} s"
        said = err.decode("utf-8", "replace").strip().splitlines()
        return child.returncode, out.decode("utf-8", "replace"), said[-1][:300] if said else ""


def _gone(child: subprocess.Popen[bytes]) -> None:
    try:
        child.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _stem(found: Sequence[str]) -> str:
    return "".join(c if c.isalnum() else "-" for c in (found[1] if len(found) > 1 else "job"))[:40]
