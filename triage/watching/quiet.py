"""How long nothing was seen that is progress. Pure but for what it remembers."""

from __future__ import annotations

from dataclasses import dataclass

from triage.watching.activity import LARGE, Activity
from triage.watching.values import LogView

_GAP = 3.0  # periods: who looks after a longer one was not there, and the job may not have been either


@dataclass(slots=True)
class Quiet:
    """Seconds since progress of each kind. strong: bytes in bulk or steadily by a rank itself, compilers, a GPU that works, a file that grows;
    any: a few bytes too; log: None while the logs never showed progress. why: the last of it, in words."""

    period: float
    strong: float = 0.0
    any: float = 0.0
    log: float | None = None
    why: str = ""
    _now: float | None = None

    def pass_time(self, now: float, seen: bool) -> None:
        """seen: all nodes; what was not seen was not silent."""
        since = 0.0 if self._now is None else now - self._now
        credited = max(0.0, min(since, _GAP * self.period))
        self._now = now
        self.strong += credited if seen else 0.0
        self.any += credited if seen else 0.0
        if self.log is not None:
            self.log += credited

    def activity(self, activity: Activity) -> None:
        if activity.steady or max(activity.moved, sum(one.stored for one in activity.done)) >= LARGE * activity.seconds:
            self.progress(activity.words)
        elif activity.words:
            self.any, self.why = 0.0, activity.words
        if activity.compiling:
            self.progress(f"{activity.compiling} at work")

    def logs(self, view: LogView | None) -> None:
        if view is None or view.quiet is None:
            return
        if self.log is None or view.quiet < self.log:
            self.log = view.quiet
            self.why = (
                f"{'the log said' if view.shows else 'a new line in the log'}: {view.said}" if view.said else self.why
            )

    def progress(self, why: str) -> None:
        self.strong, self.any, self.why = 0.0, 0.0, why

    def seconds(self, log: LogView | None, processes: bool) -> float:
        """Without progress. Where the job's own history tells how often its log shows a step, a few bytes count no more."""
        if not processes:
            return self.any if self.log is None else self.log
        if self.log is None or log is None:
            return self.any
        return min(self.log, self.strong if log.trained and log.limit else self.any)
