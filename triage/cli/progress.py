"""How far a long command is: a bar on a terminal, a line every tenth of the way elsewhere. On stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from triage.cli import output


class Progress:
    """Used as `with Progress("evaluating", quiet) as tell: tell(done, total, name, wrong)`.

    The first call says how much was there before; wrong: how many of those done now are wrong.
    """

    def __init__(self, what: str, quiet: bool) -> None:
        self._what, self._quiet = what, quiet
        self._bar: Any = None
        self._task: Any = None
        self._tenth = -1
        self._before = 0
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
                progress.TextColumn("{task.fields[name]}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._what, total=None, name="")
            self._bar.start()
        return self

    def __call__(self, done: int, total: int, name: str, wrong: int = 0) -> None:
        bad = f"{wrong} wrong" if wrong else ""
        name = "".join(c if c.isprintable() else "?" for c in name)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, name=", ".join(filter(None, (bad, name))))
        elif self._tenth < 0:
            self._before, self._tenth = done, done * 10 // max(total, 1)
        elif done * 10 // total > self._tenth:
            self._tenth = done * 10 // total
            spent = time.monotonic() - self._started
            left = spent / (done - self._before) * (total - done)
            parts = (f"{done} of {total} in {spent:.0f} s", bad, f"about {left:.0f} s to go" if done < total else "")
            output.note(f"{self._what}: {', '.join(filter(None, parts))}", self._quiet)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
