"""How far the logs say that the job is: steps by rank, phases and how long they take. Pure but for what it remembers."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from triage.domain import LogLine
from triage.watching.limits import learned
from triage.watching.phases import Told, kind, raised
from triage.watching.speeds import Speeds
from triage.watching.values import LogView, Phase

NO_RANK = -1
_KEPT = 64  # values of each kind
_TICKS = 2.5  # seconds: three ticks of a clock of whole seconds
_KINDS = 2000  # kinds of line that are known; more are no news


@dataclass(slots=True)
class _Last:
    step: int
    at: float


@dataclass(slots=True)
class LogProgress:
    """Is given lines as they come. Times are seconds of one clock that only grows."""

    steps: dict[int, _Last] = field(default_factory=dict)
    phase: Phase = ""
    _since: float = 0.0
    _at: float | None = None  # of the last progress
    _said: str = ""
    _shows: bool = False  # whether that shows work, and is not only a line that is new
    _failure: str = ""
    _gaps: dict[str, deque[float]] = field(default_factory=dict)  # silences by phase
    _speeds: Speeds = field(default_factory=Speeds)
    _from: dict[int, _Last] = field(default_factory=dict)  # where the time of the next steps is measured from
    _known: set[str] = field(default_factory=set)
    _grew: int = 0
    _news: bool = False
    _beats: bool = False
    _trained: bool = False
    _opened_by: int | None = None  # the rank whose line opened the phase
    _reached: int = 0  # the highest step of any rank by then
    _paths: tuple[str, ...] = ()
    _problems: dict[str, str] = field(default_factory=dict)

    def take(
        self, lines: Sequence[LogLine], size: int, now: float, history: bool = False, steps_only: bool = False
    ) -> None:
        """steps_only: a line that is only new is no progress. history: lines that were there before we looked: their own stamps tell the time, and they are no progress of now."""
        times = [line.time.timestamp() for line in lines if line.time] if history else []
        offset = now - times[-1] if times else 0.0
        least = _least(times)
        at = times[0] + offset if times else now
        for line in lines:
            if history and line.time:
                at = max(at, min(now, line.time.timestamp() + offset))
            self._line(line, at, not history or bool(times), steps_only)
            if history and times:
                self._measure(least)
        self._measure(least)
        if history:
            self._from.clear()  # from here on the clock is ours
        self._grew += 0 if history else size

    def earlier(self, lines: Sequence[LogLine]) -> None:
        """A piece of the log from long before: what its stamps tell of the usual time of a step."""
        first: dict[int, _Last] = {}
        least = _least([line.time.timestamp() for line in lines if line.time])
        for line in lines:
            number = Told(line).step if line.time else None
            if line.time is None or number is None:
                continue
            rank, at = NO_RANK if line.rank is None else line.rank, line.time.timestamp()
            start = first.setdefault(rank, _Last(number, at))
            if number < start.step:
                first[rank] = _Last(number, at)
            elif number > start.step and at - start.at > least:
                self._speeds.take_earlier((at - start.at) / (number - start.step), number - start.step)
                first[rank] = _Last(number, at)

    def begun(self, at: float) -> None:
        """When the last of what was there before was written, as far as is known."""
        if self._at is not None:
            self._at = min(self._at, at)
        self._since = min(self._since, at)

    def started_again(self, now: float) -> None:
        """Another run writes: its first step may come at a lower number."""
        self.steps.clear()
        self._enter("launch", now, measured=False)
        self._progress(now, "the log begins anew", measured=False, shows=True)

    def problem(self, file: str, why: str) -> None:
        if why:
            self._problems[file] = f"{file}: {why}"
        else:
            self._problems.pop(file, None)

    def look(self, now: float) -> LogView:
        """Where it stands; what came since is forgotten."""
        view = LogView(
            phase=self.phase,
            phase_age=max(0.0, now - self._since),
            steps={rank: last.step for rank, last in sorted(self.steps.items())},
            quiet=None if self._at is None else max(0.0, now - self._at),
            said=self._said,
            shows=self._shows,
            failure=self._failure,
            limit=learned(self._gaps.get(self.phase, ())),
            step_time=self._speeds.now,
            usual=self._speeds.usual,
            trained=self._trained,
            grew=self._grew,
            only_beats=self._beats and not self._news,
            problems=tuple(self._problems.values()),
            paths=self._paths if self.phase == "checkpoint" else (),
        )
        self._grew, self._news, self._beats = 0, False, False
        return view

    # ------------------------------------------------------------------------------------------ one line
    def _line(self, line: LogLine, at: float, measured: bool, steps_only: bool) -> None:
        if not line.text.strip():
            return
        told = Told(line)
        self._failure = self._failure or raised(line)
        if told.worked:
            self._step(line, told.step, at, measured)
        elif told.done:
            self._leave(told.done, at, measured)
            self._progress(at, line.text, measured, shows=True)
        elif told.phase:
            if told.phase != self.phase:
                self._enter(told.phase, at, measured)
                self._opened_by, self._reached = line.rank, self._highest()
                self._progress(at, line.text, measured, shows=True)
            elif not steps_only and self._is_news(line):
                self._progress(at, line.text, measured)
            else:
                self._beats = True
            self._paths = told.paths or self._paths
        elif told.beat or steps_only or not self._is_news(line):
            self._beats = True
        else:
            self._progress(at, line.text, measured)

    def _is_news(self, line: LogLine) -> bool:
        """A kind of line that was not seen before; before any step, a line that is not word for word one of before."""
        seen = kind(line.text) if self._trained else line.text[:200]
        if seen in self._known:
            return False
        if len(self._known) < _KINDS:
            self._known.add(seen)
        elif self._trained:
            return False
        return True

    def _step(self, line: LogLine, number: int | None, at: float, measured: bool) -> None:
        rank = NO_RANK if line.rank is None else line.rank
        last = self.steps.get(rank)
        if number is not None and last is not None and number == last.step:
            self._beats = True  # the same step again
            return
        self.steps[rank] = _Last((last.step if last else 0) if number is None else number, at)
        if self.phase != "train" and not self._is_of_before(line, last, number):
            self._enter("train", at, measured)
        self._trained = True
        self._progress(at, line.text, measured, shows=True)

    def _highest(self) -> int:
        return max((last.step for last in self.steps.values()), default=0)

    def _is_of_before(self, line: LogLine, last: _Last | None, number: int | None) -> bool:
        """Did another rank make this step before the phase was opened? Files are read one after the other, and ranks write apart. One that goes back is of another run."""
        other = line.rank is not None and self._opened_by is not None and line.rank != self._opened_by
        return other and last is not None and number is not None and last.step < number <= self._reached

    def _measure(self, least: float = 0.0) -> None:
        """The time of a step since the last look, of all ranks; what lay between two phases is none. least: seconds to measure over."""
        times, steps = [], []
        for rank, last in self.steps.items():
            start = self._from.setdefault(rank, _Last(last.step, max(last.at, self._since)))
            if last.step > start.step and last.at - start.at > least:
                steps.append(last.step - start.step)
                times.append((last.at - start.at) / steps[-1])
                self._from[rank] = _Last(last.step, last.at)
            elif last.step < start.step:
                self._from[rank] = _Last(last.step, last.at)
        if times:
            self._speeds.take(median(times), max(steps))

    def _enter(self, phase: Phase, at: float, measured: bool) -> None:
        self._from.clear()
        if measured and self.phase not in ("", "train"):
            self._keep(self.phase, at - self._since)
        self.phase, self._since = phase, at

    def _leave(self, phase: Phase, at: float, measured: bool) -> None:
        """A phase says that it is over; what comes is training, if it was before."""
        if self.phase == phase:
            self._enter("train" if self._trained else "", at, measured)

    def _progress(self, at: float, text: str, measured: bool, shows: bool = False) -> None:
        """shows: it shows work; a line that is only new is progress while nothing better is known."""
        if measured and self._at is not None and self.phase == "train" and self._since <= self._at:
            self._keep("train", at - self._at)
        self._at, self._said, self._shows, self._news = at, text.strip()[:200], shows, True
        self._failure = "" if shows else self._failure

    def _keep(self, phase: str, seconds: float) -> None:
        self._gaps.setdefault(phase, deque(maxlen=_KEPT)).append(max(0.0, seconds))


def _least(stamps: Sequence[float]) -> float:
    """Seconds over which such stamps tell a speed: where they are of whole seconds, many steps may fall into one."""
    return _TICKS if stamps and all(stamp.is_integer() for stamp in stamps) else 0.0
