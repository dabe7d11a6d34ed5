"""What `triage watch` does once a job is hung: collects, diagnoses. Each in a process of its own: the watcher stays small, lives, and
looks on meanwhile."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_COLLECT = 180.0  # seconds, of all nodes
_DIAGNOSE = 180.0
_TICK = 0.2
_GRACE = 5.0  # seconds that a child has to end what it began on nodes


@dataclass(frozen=True, slots=True)
class Findings:
    """folder: of what was collected; diagnosis: the object of the contract; problems: what did not work, in words."""

    folder: Path | None = None
    diagnosis: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()


class Investigation:
    """Begins at once, in a thread. found: options by which `triage hang collect` finds the job; under: where its folder goes;
    logs: of the job, beside what is collected; again: seconds until the second look at the stacks, 0 for none."""

    def __init__(self, found: Sequence[str], under: Path, logs: Sequence[str], again: float) -> None:
        self._found, self._logs, self._again = found, logs, again
        self.folder = under / f"hang-{_stem(found)}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        self._stop = threading.Event()
        self._problems: list[str] = []
        self._findings: Findings | None = None
        self._thread = threading.Thread(target=self._run, name="investigation", daemon=True)
        self._thread.start()

    @property
    def findings(self) -> Findings | None:
        """None: not yet, or it was stopped."""
        return None if self._stop.is_set() else self._findings

    def stop(self) -> None:
        """Ends what it began, and leaves no folder without a finding."""
        self._stop.set()
        self._thread.join(3 * _GRACE)  # a file system that hangs may hold it for ever

    def _run(self) -> None:
        collected = bool(self._found) and self._collect()
        inputs = [*([str(self.folder)] if collected else []), *(log for log in self._logs if Path(log).is_file())]
        diagnosis = self._diagnose(inputs) if inputs and not self._stop.is_set() else None
        self._findings = Findings(self.folder if collected else None, diagnosis, tuple(self._problems))

    def _collect(self) -> bool:
        folder = self.folder
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._problems.append(f"nothing was collected: {folder.parent}: {error.strerror}")
            return False
        again = ["--again", f"{self._again:g}"]
        code, _, err = self._child(
            ["hang", "collect", *self._found, *again, "--out", str(folder), "--quiet"], _COLLECT + 2 * self._again
        )
        if code not in (0, 1):
            self._problems.append(f"collecting failed: {err or f'code {code}'}")
        elif code == 1:
            self._problems.append("collecting: some nodes did not answer, or have no process of the job")
        if (folder / "manifest.json").is_file() and any(path.is_dir() for path in folder.glob("*")):
            return True
        with contextlib.suppress(OSError):  # of no use without its manifest
            shutil.rmtree(folder)
        return False

    def _diagnose(self, inputs: list[str]) -> dict[str, Any] | None:
        record = [] if self.folder.is_dir() else ["--no-record"]  # logs alone tell no hang
        _, out, err = self._child(["hang", *inputs, *record, "--format", "json", "--quiet"], _DIAGNOSE)
        try:
            document: dict[str, Any] = json.loads(out)
        except ValueError:
            self._problems.append(f"the diagnosis failed: {err or 'it printed nothing'}")
            return None
        if document["outcome"] == "healthy":  # what was collected shows none of the hang that is
            self._problems.append(
                "what was collected names no cause" if self.folder.is_dir() else "the log alone does not tell the cause"
            )
            return None
        return document

    def _child(self, words: list[str], most: float) -> tuple[int | None, str, str]:
        """Code, stdout and the last line of stderr; None: it was ended."""
        ends = time.monotonic() + most
        child = subprocess.Popen(
            [sys.executable, "-m", "triage", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        while True:
            try:
                out, err = child.communicate(timeout=_TICK)
                break
            except subprocess.TimeoutExpired:
                if self._stop.is_set() or time.monotonic() > ends:
                    _end(child)
                    return None, "", f"took more than {most:g} s"
        said = err.decode("utf-8", "replace").strip().splitlines()
        return child.returncode, out.decode("utf-8", "replace"), said[-1].removeprefix("triage: ")[:300] if said else ""


def _end(child: subprocess.Popen[bytes]) -> None:
    """Not even SIGKILL ends one that a file system holds: it is left behind."""
    for end in (child.terminate, child.kill):
        end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=_GRACE)
            return


def _stem(found: Sequence[str]) -> str:
    return "".join(c if c.isalnum() else "-" for c in (found[1] if len(found) > 1 else "job"))[:40]
