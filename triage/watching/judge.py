"""From what was seen of a job to its state. Pure but for what it remembers; all effects are in loop.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from triage.probing.values import NodeView, Process
from triage.text import how_many, rank_ranges
from triage.watching import suspended
from triage.watching.activity import Activity, Moves
from triage.watching.ends import Ends
from triage.watching.gpus import Readings, Window
from triage.watching.idle import waits_for_work
from triage.watching.quiet import Quiet
from triage.watching.suspects import Ranks
from triage.watching.values import LogView, Options, Round, Scheduled, State, Status, Suspect
from triage.watching.words import span

_EXCUSED = 4.0  # times the limit: so long may a phase that computes go on without any other sign
_COMPUTING = ("compile", "evaluation", "dataset", "first step")
_LONG = 0.5  # of the hang time, after which a phase is told as long
_SLOW = 2.0  # times the usual time of a step
_RESUMED = 5  # rounds after it was suspended
_NAMED = 4  # processes
_ASK = 30  # rounds between two readings of GPUs while all is well


@dataclass(slots=True)
class Judge:
    """Is given one round after the other and says what state the job is in."""

    options: Options
    _moves: Moves = field(default_factory=Moves)
    _ranks: Ranks = field(default_factory=Ranks)
    _ends: Ends = field(default_factory=Ends)
    _readings: Readings = field(default_factory=Readings)
    _quiet: Quiet = field(init=False)
    _sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    _rounds: int = 0
    _limit: float = 0.0
    _last: Activity | None = None
    _moved: bool = False
    _stood: int = 0  # the round in which it was suspended last: its steps took longer for that
    _held_since: float | None = None

    def __post_init__(self) -> None:
        self._quiet = Quiet(self.options.period)

    @property
    def wants_more(self) -> bool:
        return self._rounds % _ASK == 0 or self._quiet.any >= self.options.hang_time / 2

    def take(self, seen: Round) -> Status:
        self._rounds += 1
        hidden = [view.node for view in seen.nodes if view.problem]
        log = seen.log
        self._quiet.pass_time(seen.now, not hidden)
        self._limit = max(self.options.hang_time, log.limit if log else 0.0)
        beats = log.grew if log and log.only_beats else 0
        activity = self._moves.compare(seen.nodes, seen.now, beats) if seen.processes else None
        self._readings.take(seen.nodes, seen.now)
        self._ends.take(seen.nodes, self._ranks.known)
        if activity is not None:
            self._ranks.take(activity, hidden, seen.touched)
            self._quiet.activity(activity)
        elif seen.processes:  # at the first look nothing moved yet, but who is there, and stopped, is seen
            self._ranks.take(Activity(new=tuple(p for view in seen.nodes for p in view.processes)), hidden)
        self._last = activity
        self._grown(seen.nodes)
        self._quiet.logs(log)
        window = self._readings.window(seen.now - self._quiet.any)
        if window.working and self._quiet.any >= self.options.hang_time / 2:
            self._quiet.progress(window.working)
        self._moved = self._moved or bool(self._quiet.why)
        status = self._state(seen, [p for view in seen.nodes for p in view.processes if p.state not in "ZX"], window)
        if status.state != "suspended":
            self._held_since = None
        step = max(log.steps.values(), default=None) if log else None
        quiet = self._quiet.seconds(log, seen.processes)
        phase = log.phase if log else ""
        return replace(status, phase=phase, step=step, quiet=quiet, limit=self._limit, moved=self._moved)

    def _grown(self, nodes: tuple[NodeView, ...]) -> None:
        """A checkpoint that is being written grows."""
        for view in nodes:
            for path, size in view.sizes.items():
                before = self._sizes.get((view.node, path))
                self._sizes[view.node, path] = size
                if before is not None and size > before:
                    self._quiet.progress(f"{path} grew by {size - before} bytes")

    # ------------------------------------------------------------------------------------------ the states, the surest first
    def _state(self, seen: Round, living: list[Process], window: Window) -> Status:
        told = seen.scheduled
        if told.state == "suspended":
            return self._suspended((told.words,), seen)
        if told.state in ("queued", "preempted", "finished"):
            failed = told.state == "finished" and told.failed
            state: State = "failed" if failed else told.state
            return Status(state, (told.words, *(_failure(seen.log) if failed else ())))
        hidden = tuple(f"{view.node} is not seen: {view.problem}" for view in seen.nodes if view.problem)
        if seen.processes and not living and not hidden:
            return self._without_processes(told, seen.log)
        if held := self._held(living):
            self._stood = self._rounds
            return self._suspended(held, seen, living)
        log = seen.log
        if log and not seen.processes and log.phase == "end" and (log.quiet or 0) >= 2 * self.options.period:
            return Status("finished", (f"the log ends with: {log.said}",))
        quiet = self._quiet.seconds(log, seen.processes)
        if quiet >= self._limit:
            return self._silent(seen, living, window, hidden, quiet)
        if hidden and len(hidden) == len(seen.nodes) and (log is None or log.quiet is None):
            return Status("unseen", hidden)
        return self._moving(log, window, hidden, len(living) if seen.processes else 0)

    def _without_processes(self, told: Scheduled, log: LogView | None) -> Status:
        """Where no scheduler is asked, a job without processes has ended; Slurm's may be between two steps."""
        if told.state == "running":
            return Status("unseen", ("the scheduler says that the job runs, but no process of it is seen",))
        if told.words:
            return Status("unseen", (told.words, "no process of it is seen"))
        are_ranks = any(isinstance(who, int) for who in self._ranks.known)
        if bad := self._ends.bad(counts=are_ranks or bool(log and log.failure)):
            return Status("failed", (bad, *_failure(log)))
        if log and log.failure and not self._ends.well():
            return Status("failed", ("no process of it is there any more", *_failure(log)))
        return Status("finished", (self._ends.well() or "no process of it is there any more", *_failure(log)))

    def _held(self, living: list[Process]) -> tuple[str, ...]:
        """Stopped ranks, or processes where no rank is known; what is frozen. Until they go on, however long that is."""
        frozen = [process for process in living if process.frozen]
        if frozen and len(frozen) * 2 > len(living):
            return (f"{how_many(len(frozen), 'process', 'processes')} frozen by the control group's freezer",)
        if living and all(map(self._ranks.is_stopped, living)):
            who = f"all of its {len(living)} processes" if len(living) > 1 else f"its one process, {living[0].told},"
            return (f"{who} stopped by SIGSTOP (state T)",)
        rests = self._quiet.any >= 2 * self.options.period
        stopped, alive = self._ranks.stopped(above=rests), self._ranks.alive
        if not stopped:
            return ()
        if len(stopped) == len(alive) > 1 and self._ranks.numbered:
            return (f"all of its {how_many(len(stopped), 'rank')} stopped by SIGSTOP (state T)",)
        if self._ranks.numbered:
            ranks = [who for who in stopped if isinstance(who, int)]
            return (f"stopped by SIGSTOP (state T): rank {rank_ranges(ranks)} of {len(alive)}",)
        names = ", ".join(process.told for process in list(stopped.values())[:_NAMED])
        return (f"stopped by SIGSTOP (state T): {names}, of {how_many(len(living), 'process', 'processes')}",)

    def _suspended(self, words: tuple[str, ...], seen: Round, living: Sequence[Process] = ()) -> Status:
        """living: where they were looked at. After the hang time also for how long, and who waits."""
        self._held_since = seen.now if self._held_since is None else self._held_since
        held = seen.now - self._held_since
        stopped = [process for process in living if self._ranks.is_stopped(process)]
        frozen = [process for process in living if process.frozen]
        if held >= self.options.hang_time:
            first, *more = words
            quiet = self._quiet.seconds(seen.log, seen.processes)
            others = self._ranks.besides((*stopped, *frozen)) if living and quiet >= held / 2 else ()
            words = (f"{first}, for {span(held)}", *more, *suspended.waiting(others, quiet))
        suspects = self._ranks.suspects({}) if len(stopped) < len(living) else ()
        return Status("suspended", words, suspects, held=held, resume=suspended.resume(stopped, frozen))

    def _silent(
        self, seen: Round, living: list[Process], window: Window, hidden: tuple[str, ...], quiet: float
    ) -> Status:
        log = seen.log
        decided_by_log = bool(log and log.trained and log.limit)
        readable = self._last is not None and self._last.readable
        if seen.processes and not decided_by_log and (hidden or not readable):
            why = hidden or ("/proc/PID/io of its processes is not readable: watch as the job's user or as root",)
            return Status("unseen", (f"no sign of progress for {span(quiet)}, but not all is seen", *why))
        if excuse := self._excuse(log, window, quiet):
            return Status("phase", excuse)
        if not self._ranks.numbered and not window.loaded and (waits := waits_for_work(seen)):
            return Status("idle", (waits, f"nothing moved for {span(quiet)}"))
        suspects = self._ranks.suspects(log.steps if log else {})
        words = [
            f"no progress for {span(quiet)} (limit {span(self._limit)})",
            *self._seen(seen, living, window),
            *hidden,
        ]
        blamed = {suspect.why for suspect in suspects}
        return Status("hung", tuple(word for word in words if word not in blamed), suspects)

    def _excuse(self, log: LogView | None, window: Window, quiet: float) -> tuple[str, ...]:
        """CPU time is none by itself, but in a phase that computes without a word it is what is to be seen."""
        if log is None or log.phase not in _COMPUTING or window.enough or quiet >= _EXCUSED * self._limit:
            return ()
        busy = self._computing()
        return (f"{log.phase} for {span(log.phase_age)}", f"{busy}: it computes") if busy else ()

    def _computing(self) -> str:
        busy = self._ranks.working()
        more = f" and {len(busy) - _NAMED} more" if len(busy) > _NAMED else ""
        return f"on a CPU: {', '.join(busy[:_NAMED])}{more}" if busy else ""

    def _moving(self, log: LogView | None, window: Window, hidden: tuple[str, ...], there: int) -> Status:
        if window.slowed:
            return Status(
                "slow", (*window.slowed, *hidden), (*self._ranks.dead(), Suspect("throttled", window.slowed[0]))
            )
        resumed = self._stood and self._rounds - self._stood <= _RESUMED
        if (
            not resumed
            and log
            and log.step_time
            and log.usual
            and _is_slow(log.step_time, log.usual, self.options.period)
        ):
            words = f"a step takes {span(log.step_time)}, {log.step_time / log.usual:.1f} times as long as before ({span(log.usual)})"
            return Status("slow", (words, *hidden), self._ranks.suspects(log.steps))
        if log and log.phase not in ("", "train", "end") and log.phase_age >= _LONG * self.options.hang_time:
            busy = self._computing()
            return Status(
                "phase", (f"{log.phase} for {span(log.phase_age)}", *filter(None, (self._quiet.why, busy)), *hidden)
            )
        if self._last is not None and self._last.compiling:
            return Status("phase", (f"compile: {self._last.compiling} at work", *hidden))
        first = self._first(there) if self._rounds == 1 else ""
        return Status("running", (*filter(None, (self._quiet.why or first,)), *hidden))

    def _first(self, there: int) -> str:
        """At the first look nothing can have moved. there: processes."""
        seen = f"{how_many(there, 'process', 'processes')}, " if there else ""
        limit = f"hung after {span(self._limit)} without progress"
        return f"{seen}looked at each {span(self.options.period)}; {limit}"

    def _seen(self, seen: Round, living: list[Process], window: Window) -> list[str]:
        """What stood still, and what did not but is no progress."""
        words = []
        if seen.processes:
            small = self._last.small if self._last else 0
            moved = f"but {small} bytes in the last period, too few to be work" if small else "none"
            words.append(f"input and output of its {how_many(len(living), 'process', 'processes')}: {moved}")
            if busy := self._computing():
                words.append(
                    f"{busy}, which is no progress by itself: what waits may spin, and a computation without output looks the same"
                )
            words += [
                *window.words,
                *filter(None, (self._ranks.alike(),)),
                *self._ranks.above()[:_NAMED],
                *self._ranks.defunct()[:_NAMED],
            ]
        log = seen.log
        if log is not None:
            words += _said(log)
        if self._ranks.unreadable:
            words.append("the environment of some processes is not readable, so their ranks are not known")
        return words


def _failure(log: LogView | None) -> tuple[str, ...]:
    return (f"the log says: {log.failure}",) if log and log.failure else ()


def _said(log: LogView) -> list[str]:
    last = "the last line of progress" if log.shows else "the last line of the log that was new"
    words = [f"{last}: {log.said}"] if log.said else ["the logs never showed a step"]
    if log.phase and log.phase != "train":
        words.append(f"phase by the log: {log.phase}")
    if log.only_beats:
        words.append("what the log prints since is no progress: signs of life, warnings, errors")
    words += [f"log not read: {problem}" for problem in log.problems]
    words += _failure(log)
    return [*words, *_spread(log.steps)]


def _spread(steps: Mapping[int, int]) -> list[str]:
    told = {rank: step for rank, step in steps.items() if rank >= 0}
    if len(told) < 2 or min(told.values()) == max(told.values()):
        return []
    by_step: dict[int, list[int]] = {}
    for rank, step in told.items():
        by_step.setdefault(step, []).append(rank)
    return [
        "last steps: "
        + "; ".join(f"{step} on rank {rank_ranges(ranks)}" for step, ranks in sorted(by_step.items())[:4])
    ]


def _is_slow(now: float, usual: float, period: float) -> bool:
    """What is read once a period is known no better than that."""
    return now > _SLOW * usual and now - usual > 2 * min(period, usual)
