"""Looks at a job again and again, until it ends or is told to stop. All effects come in as functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from triage.probing.held import Held
from triage.probing.probe import Probe
from triage.probing.values import NodeView, ranks_of
from triage.watching.judge import Judge
from triage.watching.tails import Logs
from triage.watching.values import LogView, Options, Round, Scheduled, State, Status, Suspect

News = Literal["hung", "suspects changed", "suspended", "moving again", "ended", "failed"]

_SILENT = "its file system does not answer"
_LOGS = 64  # of each kind
_TICK = 0.25  # seconds: so long a signal may wait
_SLOW_TO_ASK = 30.0  # seconds between two questions to a scheduler
_READING = 20.0  # seconds that the file system of the logs has to answer
_ENDED: tuple[State, ...] = ("finished", "failed", "preempted")


@dataclass(frozen=True, slots=True)
class Target:
    """What is watched. probe: None: logs alone; scheduled: None: no scheduler is asked; outputs: whether the files that the processes
    write to are read as logs too; job: its id of Slurm."""

    name: str
    probe: Probe | None
    logs: Logs
    scheduled: Callable[[], Scheduled] | None = None
    outputs: bool = False
    job: str = ""


@dataclass(slots=True)
class Notices:
    """What of the states is news: once a hang, again when its suspects change, when it is over; a failure always."""

    hang_time: float
    _told: State | None = None
    _who: set[tuple[tuple[str, int | None], ...]] = field(
        default_factory=set
    )  # suspects that were told of in this hang

    @property
    def standing(self) -> bool:
        """Whether somebody was told of what still is: a hang, or a job that was suspended for as long."""
        return self._told is not None

    def due(self, status: Status) -> News | None:
        if status.state == "hung":
            return self._hung(status)
        if status.state == "suspended":
            if self._told != "suspended" and status.held >= self.hang_time:
                self._told = "suspended"
                return "suspended"
            return None
        told = self._told
        if status.state == "unseen":
            return None
        self._told = None
        if status.state == "failed":
            return "failed"
        if told is None:
            return None
        return "ended" if status.state in _ENDED else "moving again"

    def _hung(self, status: Status) -> News | None:
        who = tuple((suspect.cause, suspect.rank) for suspect in status.suspects)
        if self._told != "hung":
            self._told, self._who = "hung", {who}
            return "hung"
        is_new = bool(who) and who not in self._who
        self._who.add(who)
        return "suspects changed" if is_new else None


@dataclass(frozen=True, slots=True)
class Told:
    """What one look came to. changed: against the look before; news: of what somebody should be woken; at: when it was made."""

    status: Status
    changed: bool
    news: News | None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def later(self) -> Told:
        """The same hang, told now: it began when it began."""
        now = datetime.now(UTC)
        quiet = self.status.quiet + (now - self.at).total_seconds()
        return replace(self, status=replace(self.status, quiet=quiet), at=now)


class Teller(Protocol):
    """Is given each look, and a moment now and then between two."""

    @property
    def busy(self) -> bool:
        """Whether it still collects from the job, or makes something of it."""
        ...

    def tell(self, told: Told) -> None: ...

    def tick(self) -> None: ...


class Watcher:
    """stopped: whether to end now; clock: seconds that only grow."""

    def __init__(
        self,
        target: Target,
        options: Options,
        teller: Teller,
        stopped: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._options, self._teller, self._stopped, self._clock = target, options, teller, stopped, clock
        self._judge = Judge(options)
        self._notices = Notices(options.hang_time)
        self._before: tuple[State, bool] | None = None
        self._who: tuple[Suspect, ...] = ()
        self._scheduled = Scheduled()
        self._asked: float | None = None
        self._paths: tuple[str, ...] = ()
        self._reading = Held()
        self._log_before: LogView | None = None

    @property
    def standing(self) -> bool:
        """Whether it hangs, or was suspended for the hang time."""
        return self._notices.standing

    def run(self, looks: int | None = None, until_hung: bool = False) -> Status:
        """The last status. looks: at most so many; None: until the job ends, or with until_hung is hung and that was looked into."""
        done = 0
        due = self._clock()
        while True:
            status = self.look()
            done += 1
            if status.state in _ENDED or done == looks:
                break
            due = max(due + self._options.period, self._clock())
            ends = until_hung and self._notices.standing
            if not self._wait(due, while_busy=ends) or (ends and not self._teller.busy):
                break
        while looks is not None and self._teller.busy and not self._stopped():
            self._wait(self._clock() + self._options.period, while_busy=True)
        if not self._reading.busy:
            self._target.logs.close()
        return status

    def look(self) -> Status:
        now = self._clock()
        target = self._target
        nodes = target.probe.look(self._judge.wants_more, self._paths) if target.probe else ()
        log = self._log(now, *(_written(nodes) if target.outputs else ([], [])))
        self._paths = log.paths if log else ()
        seen = Round(self._clock(), tuple(nodes), self._ask(now), log, target.probe is not None, self._teller.busy)
        status = self._judge.take(seen)
        who = tuple(Suspect(s.cause, "", s.rank, s.node, s.pid) for s in status.suspects)
        shape = (status.state, status.moved)
        is_same = shape == self._before and who in ((), self._who)  # one that stands out no more is no change
        self._teller.tell(Told(status, not is_same, self._notices.due(status)))
        self._before, self._who = shape, who if who or shape != self._before else self._who
        return status

    def _log(self, now: float, outputs: Sequence[str], more: Sequence[str]) -> LogView | None:
        """outputs, more: logs that may be new, the latter read for steps alone. Where their file system does not answer, that is told, and nothing is known of progress."""
        logs = self._target.logs

        def read() -> LogView | None:
            logs.add(outputs)
            logs.add(more, steps_only=True)
            return logs.look(now) if logs else None

        if not logs and not outputs and not more:
            return None
        view = self._reading.within(_READING, read)
        if self._reading.busy:
            return (
                replace(self._log_before, grew=0, quiet=None, problems=(_SILENT,))
                if self._log_before
                else LogView(problems=(_SILENT,))
            )
        self._log_before = view
        return view

    def _ask(self, now: float) -> Scheduled:
        pause = max(self._options.period, _SLOW_TO_ASK)
        if self._target.scheduled and (self._asked is None or now - self._asked >= min(pause, self._options.hang_time)):
            self._scheduled, self._asked = self._target.scheduled(), now
        return self._scheduled

    def _wait(self, until: float, while_busy: bool = False) -> bool:
        """False: to be stopped. while_busy: no longer than the teller is."""
        while not self._stopped():
            self._teller.tick()
            left = until - self._clock()
            if left <= 0 or (while_busy and not self._teller.busy):
                return True
            time.sleep(min(left, _TICK))
        return False


def _written(nodes: Sequence[NodeView]) -> tuple[list[str], list[str]]:
    """Files that the ranks, or all processes, write their output to; and other logs of theirs."""
    processes = [process for view in nodes for process in view.processes]
    chosen = list(ranks_of(processes).values()) or processes
    outputs = dict.fromkeys(path for process in chosen for path in process.outputs)
    logs = dict.fromkeys(path for process in chosen for path in process.logs if path not in outputs)
    return list(outputs)[:_LOGS], list(logs)[:_LOGS]
