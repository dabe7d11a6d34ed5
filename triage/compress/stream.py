"""A log as it grows, line by line: what is shown, and from time to time an account of what is not. Pure.

Lines that a rule takes are counted. Of a wording that was shown a few times lately, further lines are counted too. What
is serious passes, unless the very same was shown many times lately; tracebacks pass, for they are only worth something
whole, unless a retry loop prints the same again and again. All of it depends on the lines alone, not on when they come, so a stream that is restored from its state
goes on as if it had never stopped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from triage import heads
from triage.compress import budget, clean, guard
from triage.compress.retries import Retries, Verdict
from triage.compress.tally import HOT, PLAIN, Kind
from triage.compress.tracebacks import OpenTraceback, Tracebacks
from triage.compress.wording import wording
from triage.domain import Compression, LeftOut, LogLine, RawLine, StreamEvent, StreamLine

Parse = Callable[[RawLine, bool], LogLine]  # the second argument: whether a signature may know the line
_At = tuple[str, int]  # file, line

_ALIKE = 3  # lines of one wording, and warnings that are the same, shown before the rest is counted
_FLOOD = 20  # the same for what is graver
_LATELY = 20_000  # lines; what was last shown longer ago is shown again
_REMEMBERED = 2048  # wordings
_LEFT_OUT = (1000, 128_000)  # lines not shown before an account of them; twice as many each time while nothing is shown
_AFRESH = 20  # lines after an account that was told before something serious, until the next such
_UNEXPLAINED = 500  # wordings whose lines are kept for who learns from them
_COMPARED = 4000  # characters of a line
_KEY = "PRIVATE KEY"  # where one begins is never folded: what reads the lines must know of it


@dataclass(slots=True)
class _Pending:
    """The lines of a file that are not shown and not accounted for yet. wait: how many there may be; fresh: the line
    from which on they are told of before something serious."""

    first: int = 0
    last: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    lines: int = 0
    wait: int = _LEFT_OUT[0]
    fresh: int = 0

    def add(self, number: int, rule: str) -> bool:
        """Whether it is time for an account."""
        self.first = min(self.first or number, number)
        self.last = max(self.last, number)
        if rule:
            self.rules[rule] += 1
        else:
            self.repeated += 1
        self.lines += 1
        return self.lines >= self.wait


class Stream:
    """What is shown of some growing files together."""

    def __init__(self) -> None:
        self._at = 0  # lines so far, of all files
        self._size = self._kept = self._kept_size = self._tokens = self._folded = 0
        self._novel = 0  # lines shown whose wording did not come again
        self._dropped: Counter[str] = Counter()
        self._pending: dict[str, _Pending] = {}
        self._tracebacks: dict[str, Tracebacks] = {}
        self._retries = Retries()
        self._known: dict[str, tuple[int, int]] = {}  # wording -> times shown, when last; the last touched at the end
        self._unexplained: dict[str, list[LogLine]] = {}  # by wording, those that were shown

    # ------------------------------------------------------------------------------------------ lines
    def take(
        self, file: str, first: int, lines: Sequence[bytes], kinds: Sequence[Kind], rules: Sequence[str], parse: Parse
    ) -> Iterator[StreamEvent]:
        """Lines that follow in a file, numbered from `first`. rules: ids by index, as in the kinds."""
        for number, (raw, kind) in enumerate(zip(lines, kinds, strict=True), first):
            self._at += 1
            pending = self._pending.setdefault(file, _Pending())
            if kind.rule >= 0:
                rule = rules[kind.rule]
                self._dropped[rule] += 1
                if pending.add(number, rule):
                    yield self._account(file, pending)
            else:
                yield from self._told(file, number, *self._decide(file, number, raw, kind, parse))
            if self._retries.oldest:
                yield from self._late(self._retries.overdue(self._at))

    def _told(self, file: str, number: int, show: Sequence[StreamLine], folded: Sequence[_At]) -> Iterator[StreamEvent]:
        """What was decided at a line. folded: lines that are only counted."""
        yield from self._fold(folded)
        if show:
            pending = self._pending[file]
            serious = number >= pending.fresh and any(line.serious for line in show)
            if pending.lines >= _LEFT_OUT[0] or (serious and pending.lines):
                yield self._account(file, pending)
                if serious:
                    self._pending[file].fresh = number + _AFRESH
            self._pending[file].wait = _LEFT_OUT[0]
            yield from show

    def _fold(self, lines: Iterable[_At]) -> Iterator[LeftOut]:
        for file, number in lines:
            self._folded += 1
            pending = self._pending[file]
            if pending.add(number, ""):
                yield self._account(file, pending)

    def _late(self, verdict: Verdict) -> Iterator[StreamEvent]:
        """Of tracebacks that were held back."""
        yield from self._fold(_places(verdict.folded))
        yield from self._frames(verdict.show)

    def grown(self, size: int) -> None:
        """So many bytes of the files were taken."""
        self._size += size

    def _decide(
        self, file: str, number: int, raw: bytes, kind: Kind, parse: Parse
    ) -> tuple[Sequence[StreamLine], Sequence[_At]]:
        """The lines to show, and those that only repeat what was shown lately; of earlier ones too."""
        text = clean.text(raw)
        stream, body = heads.split(text)
        traceback = self._tracebacks.setdefault(file, Tracebacks()).of(stream, number, body)
        if traceback is not None:
            line = parse(RawLine(number, raw), kind is HOT)
            verdict = self._retries.take((file, stream), traceback.size == 1, body, line, self._at)
            return self._frames(verdict.show), _places(verdict.folded)
        before = self._retries.end((file, stream), self._at)
        shown = self._show(number, raw, text, body, kind, parse)
        late, folded = self._frames(before.show), _places(before.folded)
        return ([*late, shown], folded) if shown is not None else (late, [*folded, (file, number)])

    def _show(self, number: int, raw: bytes, text: str, body: str, kind: Kind, parse: Parse) -> StreamLine | None:
        """The line to show, or None when it only repeats what was shown lately."""
        if kind is PLAIN and _KEY not in text:
            key = "o" + _digest(wording(body))
            times = self._known.get(key, (0, 0))[0]
            if self._seen(key, _ALIKE):
                self._count_unexplained(key)
                return None
            self._novel += (1, -1)[times] if times < 2 else 0
            line = parse(RawLine(number, raw), False)
            self._unexplained.setdefault(key, []).append(line)
            if len(self._unexplained) > _UNEXPLAINED:
                del self._unexplained[next(iter(self._unexplained))]
            return self._shown(replace(line, text=budget.short(line.text)), serious=False)
        most = _FLOOD if kind is HOT or guard.alarm(text) == "error" else _ALIKE
        if _KEY not in text and self._seen("s" + _digest(body.rstrip()[:_COMPARED]), most):
            return None
        return self._shown(parse(RawLine(number, raw), kind is HOT), serious=kind is not PLAIN)

    def _frames(self, lines: Sequence[LogLine]) -> list[StreamLine]:
        """Lines of tracebacks, maybe of some that were held back."""
        return [self._shown(line, serious=True) for line in lines]

    def _shown(self, line: LogLine, serious: bool) -> StreamLine:
        self._kept += 1
        self._kept_size += len(line.text.encode()) + 1
        self._tokens += budget.tokens(line)
        return StreamLine(line.file, line.number, line.text, serious)

    def _seen(self, key: str, most: int) -> bool:
        """Whether so many of this were shown lately; if not, one more now is."""
        times, last = self._known.pop(key, (0, 0))
        lately = self._at - last <= _LATELY
        if times >= most and lately:
            self._known[key] = (times, last)
            return True
        self._known[key] = (min(times + 1, most), self._at)
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return False

    # ------------------------------------------------------------------------------------------ learning
    def _count_unexplained(self, key: str) -> None:
        if lines := self._unexplained.get(key):
            lines[-1] = replace(lines[-1], repeats=lines[-1].repeats + 1)

    def unexplained(self) -> list[LogLine]:
        """Lines that no rule takes, of wordings that come again and again and were not told before. The last of a
        wording stands for the others."""
        found = {key: lines for key, lines in self._unexplained.items() if lines[-1].repeats > 1}
        self._unexplained = {key: lines for key, lines in self._unexplained.items() if key not in found}
        return [line for lines in found.values() for line in lines]

    # ------------------------------------------------------------------------------------------ accounts
    @property
    def held(self) -> int:
        """The lines before the first that is held back, as another like it may come; 0: none is."""
        return self._retries.oldest

    def release(self) -> Iterator[StreamEvent]:
        """What is held back."""
        yield from self._late(self._retries.release(self._at))

    def flush(self) -> Iterator[StreamEvent]:
        """What is held back, and an account of all lines that are not shown and not accounted for yet."""
        yield from self.release()
        for file in list(self._pending):
            yield from self.before(file)

    def before(self, file: str) -> Iterator[LeftOut]:
        """An account of the lines of a file, before something that is told of it out of turn."""
        pending = self._pending.get(file)
        if pending is not None and pending.first:
            yield self._account(file, pending)

    def _account(self, file: str, pending: _Pending) -> LeftOut:
        wait = min(2 * pending.wait, _LEFT_OUT[1])
        self._pending[file] = _Pending(wait=wait, fresh=pending.fresh)
        return LeftOut(file, pending.first, pending.last, dict(pending.rules.most_common()), pending.repeated)

    def turn(self, file: str) -> Iterator[StreamEvent]:
        """The file begins anew."""
        yield from self._late(self._retries.release(self._at, file))
        yield from self.before(file)
        self._retries.forget(file)
        self._pending.pop(file, None)
        self._tracebacks.pop(file, None)

    def account(self) -> Compression:
        """Of all lines so far."""
        return Compression(
            self._size,
            self._at,
            self._kept,
            self._kept_size,
            self._tokens,
            dict(self._dropped.most_common()),
            self._folded,
            novel=self._novel,
        )

    # ------------------------------------------------------------------------------------------ state
    def state(self) -> dict[str, Any]:
        """All that it must know to go on, as JSON; what is unexplained is found again."""
        return {
            "counts": [self._at, self._size, self._kept, self._kept_size, self._tokens, self._folded, self._novel],
            "dropped": dict(self._dropped),
            "pending": {
                file: [p.first, p.last, dict(p.rules), p.repeated, p.lines, p.wait, p.fresh]
                for file, p in self._pending.items()
            },
            "retries": self._retries.state(),
            "tracebacks": {
                file: {stream: asdict(found) for stream, found in known.open.items()}
                for file, known in self._tracebacks.items()
            },
            "known": [[key, *seen] for key, seen in self._known.items()],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Stream:
        """Errors: KeyError, TypeError, ValueError for what is no state."""
        made = cls()
        made._at, made._size, made._kept, made._kept_size, made._tokens, *others = map(int, state["counts"])
        made._folded, made._novel = others
        made._dropped = Counter(state["dropped"])
        made._retries = Retries.restored(state["retries"])
        for file, (first, last, rules, *more) in state["pending"].items():
            made._pending[file] = _Pending(first, last, Counter(rules), *more)
        for file, known in state["tracebacks"].items():
            made._tracebacks[file] = Tracebacks()
            made._tracebacks[file].open = {stream: OpenTraceback(**found) for stream, found in known.items()}
        made._known = {key: (times, last) for key, times, last in state["known"]}
        return made


def _places(lines: Iterable[LogLine]) -> list[_At]:
    return [(line.file, line.number) for line in lines]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
