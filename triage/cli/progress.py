"""How far a long command is: a bar on a terminal, a line every tenth of the way elsewhere. On stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from triage.cli import output


class Progress:
    """Used as `with Progress("evaluating", quiet) as tell: tell(done, total, name)`."""

    def __init__(self, what: str, quiet: bool) -> None:
        self._what, self._quiet = what, quiet
        self._bar: Any = None
        self._task: Any = None
        self._tenth = 0
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        if not self._quiet and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.fields[name]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._what, total=None, name="")
            self._bar.start()
        return self

    def __call__(self, done: int, total: int, name: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, name=name)
        elif total and done * 10 // total > self._tenth:
            self._tenth = done * 10 // total
            output.note(f"{self._what}: {done} of {total} in {time.monotonic() - self._started:.0f} s", self._quiet)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
