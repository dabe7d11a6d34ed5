"""Looks at a job again and again, until it ends or is told to stop. All effects come in as functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from triage.probing.probe import Probe
from triage.probing.values import NodeView, ranks_of
from triage.watching.judge import Judge
from triage.watching.tails import Logs
from triage.watching.values import LogView, Options, Round, Scheduled, State, Status, Suspect

News = Literal["hung", "suspects changed", "suspended", "moving again", "ended"]

_TICK = 0.25  # seconds: so long a signal may wait
_SLOW_TO_ASK = 30.0  # seconds between two questions to a scheduler
_ENDED: tuple[State, ...] = ("finished", "preempted")


@dataclass(frozen=True, slots=True)
class Target:
    """What is watched. probe: None: logs alone; scheduled: None: no scheduler is asked; outputs: whether the files that the processes
    write to are read as logs too."""

    name: str
    probe: Probe | None
    logs: Logs
    scheduled: Callable[[], Scheduled] | None = None
    outputs: bool = False


@dataclass(slots=True)
class Notices:
    """What of the states is news: once a hang, again when its suspects change, when it is over."""

    hang_time: float
    _told: State | None = None
    _who: tuple[tuple[str, int | None], ...] = ()
    _held: float | None = None

    def due(self, status: Status, now: float) -> News | None:
        if status.state == "hung":
            return self._hung(status)
        if status.state == "suspended":
            self._held = now if self._held is None else self._held
            if self._told is None and now - self._held >= self.hang_time:
                self._told = "suspended"
                return "suspended"
            return None
        self._held = None
        if self._told is None or status.state == "unseen":
            return None
        self._told, self._who = None, ()
        return "ended" if status.state in _ENDED else "moving again"

    def _hung(self, status: Status) -> News | None:
        who = tuple((suspect.cause, suspect.rank) for suspect in status.suspects)
        first = self._told != "hung"
        changed = bool(who) and who != self._who
        self._told, self._who = "hung", who or self._who
        return "hung" if first else "suspects changed" if changed else None


@dataclass(frozen=True, slots=True)
class Told:
    """What one look came to. changed: against the look before; news: of what somebody should be woken."""

    status: Status
    changed: bool
    news: News | None


class Watcher:
    """tell: is given each look; stopped: whether to end now; clock: seconds that only grow."""

    def __init__(
        self,
        target: Target,
        options: Options,
        tell: Callable[[Told], None],
        stopped: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._options, self._tell, self._stopped, self._clock = target, options, tell, stopped, clock
        self._judge = Judge(options)
        self._notices = Notices(options.hang_time)
        self._before: tuple[State, tuple[Suspect, ...]] | None = None
        self._scheduled = Scheduled()
        self._asked: float | None = None
        self._paths: tuple[str, ...] = ()

    def run(self, looks: int | None = None, until_hung: bool = False) -> Status:
        """The last status. looks: at most so many; None: until the job ends, or with until_hung is hung."""
        done = 0
        due = self._clock()
        while True:
            status = self.look()
            done += 1
            if status.state in _ENDED or (until_hung and status.state == "hung") or done == looks:
                break
            due = max(due + self._options.period, self._clock())
            if not self._wait(due):
                break
        self._target.logs.close()
        return status

    def look(self) -> Status:
        now = self._clock()
        target = self._target
        nodes = target.probe.look(self._judge.wants_devices, self._paths) if target.probe else ()
        if target.outputs:
            target.logs.add(_outputs(nodes))
        log = self._log(now)
        self._paths = log.paths if log else ()
        seen = Round(self._clock(), tuple(nodes), self._ask(now), log, target.probe is not None)
        status = self._judge.take(seen)
        shape = (status.state, tuple(Suspect(s.cause, "", s.rank, s.node, s.pid) for s in status.suspects))
        self._tell(Told(status, shape != self._before, self._notices.due(status, now)))
        self._before = shape
        return status

    def _log(self, now: float) -> LogView | None:
        return self._target.logs.look(now) if self._target.logs else None

    def _ask(self, now: float) -> Scheduled:
        pause = max(self._options.period, _SLOW_TO_ASK)
        if self._target.scheduled and (self._asked is None or now - self._asked >= min(pause, self._options.hang_time)):
            self._scheduled, self._asked = self._target.scheduled(), now
        return self._scheduled

    def _wait(self, until: float) -> bool:
        """False: to be stopped."""
        while not self._stopped():
            left = until - self._clock()
            if left <= 0:
                return True
            time.sleep(min(left, _TICK))
        return False


def _outputs(nodes: Sequence[NodeView]) -> list[str]:
    """Files that the ranks, or all processes, write to."""
    processes = [process for view in nodes for process in view.processes]
    ranks = ranks_of(processes)
    chosen = list(ranks.values()) or processes
    return list(dict.fromkeys(path for process in chosen for path in process.outputs))[:64]
