"""The loop that follows files: reads what came, decides line by line, hands on what is shown."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from triage.compress.linekinds import LineKinds
from triage.compress.stream import Stream
from triage.compress.tally import PLAIN
from triage.compress.wording import wording
from triage.domain import Compression, FilterRule, LogLine, RawLine, StreamEvent, StreamLine, Turned
from triage.errors import InputError
from triage.ingest.lines import LineParser
from triage.ingest.tail import Lines, Mark, Tail, Turning

State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pace:
    """In seconds. busy, idle: between two looks at a file; silence: after which a line without its newline is shown;
    life: after which lines that are not shown are accounted for, doubled up to longest_life while none is shown."""

    busy: float = 0.2
    idle: float = 1.0
    silence: float = 5.0
    life: float = 60.0
    longest_life: float = 600.0
    commit: float = 1.0


class Output(Protocol):
    """Where the stream goes."""

    def write(self, events: Sequence[StreamEvent]) -> None: ...

    def commit(self, state: Callable[[], State]) -> None:
        """What was written so far belongs to this state."""
        ...

    def end(self, events: Sequence[StreamEvent], account: Compression) -> None:
        """What is said when following stops. Who goes on from the last commit says it anew."""
        ...


class Learned(NamedTuple):
    """What decides from now on, and the rules that are new in it."""

    kinds: LineKinds
    rules: Sequence[FilterRule]


class Learner(Protocol):
    """Learns filter rules while the stream flows; never waits."""

    def offer(self, unexplained: Callable[[], Sequence[LogLine]]) -> None:
        """Asks for lines that no rule takes, when it is time for more."""
        ...

    def learned(self) -> Learned | None:
        """What is new, if anything."""
        ...


_QUIET_ROUNDS = 3


@dataclass(slots=True)
class _File:
    name: str
    tail: Tail
    parser: LineParser
    number: int = 0  # of the last line taken
    previewed: str = ""  # the wording of the open line as it was shown last
    told: str = ""  # why it cannot be read
    there: bool = False  # it was, at least once
    grown: float = 0.0  # when something last came
    looked: int = -1  # bytes read when the open line was looked at
    due: float = 0.0  # when to look again
    wait: float = 0.0


class Follower:
    """Follows files. stopped: whether to end now; tell: notes for the user; clock: seconds that only grow."""

    def __init__(
        self,
        kinds: LineKinds,
        output: Output,
        tell: Callable[[str], None],
        stopped: Callable[[], bool],
        learner: Learner | None = None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream = Stream()
        self.learned: list[FilterRule] = []  # since it began
        self._kinds, self._output, self._tell, self._stopped = kinds, output, tell, stopped
        self._learner, self._pace, self._clock = learner, pace or Pace(), clock
        self._files: list[_File] = []
        self._changed = False  # since the last commit
        self._committed = self._said = clock()
        self._life = self._pace.life
        self._held = (0, 0.0)  # what the stream holds back, and since when

    def open(self, names: Sequence[str], state: Mapping[str, Any] | None = None) -> None:
        """names: of the files; state: of an earlier follower. Errors: KeyError, TypeError, ValueError: it is none."""
        known = {} if state is None else state["files"]
        if state is not None:
            self.stream = Stream.restored(state["stream"])
        for name in dict.fromkeys(names):
            earlier = known.get(file_key(name))
            file = _File(name, Tail(Path(name), Mark(*earlier["mark"]) if earlier else None), LineParser(name))
            if earlier:
                file.number, file.previewed = int(earlier["number"]), str(earlier["previewed"])
                file.parser.secrets.since = int(earlier["key_since"])
            self._files.append(file)

    def state(self) -> State:
        """What a follower needs to go on from here, as JSON."""
        files = {
            file_key(file.name): {
                "mark": list(file.tail.mark()),
                "number": file.number,
                "previewed": file.previewed,
                "key_since": file.parser.secrets.since,
            }
            for file in self._files
        }
        return {"files": files, "stream": self.stream.state()}

    # ------------------------------------------------------------------------------------------ the loop
    def run(self, until_idle: float | None = None) -> None:
        """Until it is stopped, or nothing came for so many seconds. Errors: InputError when no file ever was there."""
        grown, quiet = self._clock(), 0
        while not self._stopped():
            if self._round():
                grown, quiet = self._clock(), 0
                continue
            quiet += 1  # a log that was rotated is sure only at the second look
            if until_idle is not None and quiet >= _QUIET_ROUNDS and self._clock() - grown >= until_idle:
                break
            time.sleep(self._pace.busy)
        if not self._stopped() and not any(file.there for file in self._files):
            raise InputError("; ".join(f"{file.name}: {file.told}" for file in self._files[:3]), "give log files")
        self._end()

    def _round(self) -> bool:
        """Looks at each file that is due; whether anything came."""
        grew = False
        for file in self._files:
            now = self._clock()
            if now < file.due:
                continue
            before, came = file.tail.read, False
            for item in file.tail.poll():  # to its end: in between, tail and stream are not of one state
                came = True
                self._write(list(self._take(file, item)))
            self._note(file)
            if came or file.tail.read != before:
                grew, file.grown, file.wait = True, now, 0.0
            else:
                file.wait = min(max(2 * file.wait, self._pace.busy), self._pace.idle)
                if now - file.grown >= self._pace.silence and file.looked != file.tail.read:
                    self._write(list(self._preview(file)))
            file.due = now + file.wait
            self._commit()
            if self._stopped():
                break
        self._learn()
        self._live()
        self._commit()
        return grew

    def _end(self) -> None:
        self._commit(now=True)
        events: list[StreamEvent] = []
        for file in self._files:
            if rest := file.tail.rest():
                events += self._lines(file, rest)
        events += self.stream.flush()
        self._output.end(events, self.stream.account())
        for file in self._files:
            file.tail.close()

    # ------------------------------------------------------------------------------------------ what came
    def _take(self, file: _File, item: Lines | Turning) -> Iterator[StreamEvent]:
        self._changed = True
        if isinstance(item, Lines):
            yield from self._lines(file, item)
            return
        yield from self.stream.turn(file.name)
        file.number, file.parser, file.previewed = 0, LineParser(file.name), ""
        yield Turned(file.name, item.turn, item.text)

    def _lines(self, file: _File, item: Lines) -> Iterator[StreamEvent]:
        rules = self._kinds.rule_ids
        for lines, kinds in self._kinds.read(item.chunks):
            yield from self.stream.take(file.name, file.number + 1, lines, kinds, rules, file.parser.parse_raw)
            file.number += len(lines)
        self.stream.grown(item.size)
        file.previewed = ""

    def _preview(self, file: _File) -> Iterator[StreamEvent]:
        """The line whose newline is still to come: a prompt, a progress bar that stands still."""
        file.looked = file.tail.read
        rest = file.tail.rest()
        for lines, kinds in self._kinds.read(rest.chunks if rest else ()):
            said = wording(lines[0].decode("utf-8", "replace"))
            if kinds[0].rule < 0 and said != file.previewed:
                self._changed, file.previewed = True, said
                line = file.parser.parse_raw(RawLine(file.number + 1, lines[0]), False)
                if kinds[0] is not PLAIN:
                    yield from self.stream.before(file.name)
                yield StreamLine(file.name, line.number, line.text, kinds[0] is not PLAIN, open=True)

    # ------------------------------------------------------------------------------------------ beside it
    def _note(self, file: _File) -> None:
        """Tells once why a file cannot be read."""
        file.there = file.there or not file.tail.why
        if file.tail.why != file.told:
            file.told = file.tail.why
            if file.told:
                self._tell(f"{file.name}: {file.told}; waiting for it")

    def _write(self, events: list[StreamEvent]) -> None:
        if not events:
            return
        self._said = self._clock()
        if any(isinstance(event, StreamLine) for event in events):
            self._life = self._pace.life
        self._output.write(events)

    def _live(self) -> None:
        """A sign of life, where many lines come and none is shown, or where the last traceback of a loop is held back."""
        if self._held[0] != self.stream.held:
            self._held = (self.stream.held, self._clock())
        elif self.stream.held and self._clock() - self._held[1] >= self._pace.life:
            self._changed = True
            self._write(list(self.stream.release()))
        if self._clock() - self._said >= self._life and (events := list(self.stream.flush())):
            self._changed = True
            self._write(list(events))
            self._life = min(2 * self._life, self._pace.longest_life)

    def _commit(self, now: bool = False) -> None:
        if self._changed and (now or self._clock() - self._committed >= self._pace.commit):
            self._output.commit(self.state)
            self._committed, self._changed = self._clock(), False

    def _learn(self) -> None:
        if self._learner is not None:
            self._learner.offer(self.stream.unexplained)
            if learned := self._learner.learned():
                self._kinds = learned.kinds
                self.learned += learned.rules
                many, (first, *others) = len(learned.rules), self._files
                also = f" (and in {len(others)} other files)" if others else ""
                what = "1 rule" if many == 1 else f"{many} rules"
                self._tell(f"{what} learned, in force from line {first.number + 1} of {first.name}{also}")


def file_key(name: str) -> str:
    """How a state names a file."""
    return os.path.abspath(name)  # noqa: PTH100 - as it is spelled, links and all
