"""A log as it grows, line by line: what is shown, and from time to time an account of what is not. Pure.

Lines that a rule takes are counted. Of a wording that was shown a few times lately, further lines are counted too. What
is serious passes, unless the very same was shown many times lately; tracebacks pass always, for they are only worth
something whole. All of it depends on the lines alone, not on when they come, so a stream that is restored from its state
goes on as if it had never stopped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from triage import heads
from triage.compress import budget, clean, guard
from triage.compress.tally import HOT, PLAIN, Kind
from triage.compress.tracebacks import OpenTraceback, Tracebacks
from triage.compress.wording import wording
from triage.domain import Compression, LeftOut, LogLine, RawLine, StreamEvent, StreamLine

Parse = Callable[[RawLine, bool], LogLine]  # the second argument: whether a signature may know the line

_ALIKE = 3  # lines of one wording, and warnings that are the same, shown before the rest is counted
_FLOOD = 20  # the same for what is graver
_LATELY = 20_000  # lines; what was last shown longer ago is shown again
_REMEMBERED = 2048  # wordings
_LEFT_OUT = (1000, 128_000)  # lines not shown before an account of them; twice as many each time while nothing is shown
_UNEXPLAINED = 500  # wordings whose lines are kept for who learns from them
_COMPARED = 4000  # characters of a line
_KEY = "PRIVATE KEY"  # where one begins is never folded: what reads the lines must know of it


@dataclass(slots=True)
class _Pending:
    """The lines of a file that are not shown and not accounted for yet. wait: how many there may be."""

    first: int = 0
    last: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    lines: int = 0
    wait: int = _LEFT_OUT[0]

    def add(self, number: int, rule: str) -> bool:
        """Whether it is time for an account."""
        self.first = self.first or number
        self.last = number
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
        self._dropped: Counter[str] = Counter()
        self._pending: dict[str, _Pending] = {}
        self._tracebacks: dict[str, Tracebacks] = {}
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
            else:
                shown = self._show(file, number, raw, kind, parse)
                if shown is not None:
                    if pending.lines >= _LEFT_OUT[0]:
                        yield self._account(file, pending)
                    self._pending[file].wait = _LEFT_OUT[0]
                    yield shown
                    continue
                rule = ""
                self._folded += 1
            if pending.add(number, rule):
                yield self._account(file, pending)

    def grown(self, size: int) -> None:
        """So many bytes of the files were taken."""
        self._size += size

    def _show(self, file: str, number: int, raw: bytes, kind: Kind, parse: Parse) -> StreamLine | None:
        """The line to show, or None when it only repeats what was shown lately."""
        text = clean.text(raw)
        stream, body = heads.split(text)
        inside = self._tracebacks.setdefault(file, Tracebacks()).of(stream, number, body) is not None
        if kind is PLAIN and not inside and _KEY not in text:
            key = "o" + _digest(wording(body))
            if self._seen(key, _ALIKE):
                self._count_unexplained(key)
                return None
            line = parse(RawLine(number, raw), False)
            self._unexplained.setdefault(key, []).append(line)
            if len(self._unexplained) > _UNEXPLAINED:
                del self._unexplained[next(iter(self._unexplained))]
            return self._shown(replace(line, text=budget.short(line.text)), serious=False)
        most = _FLOOD if kind is HOT or guard.alarm(text) == "error" else _ALIKE
        if not inside and _KEY not in text and self._seen("s" + _digest(body.rstrip()[:_COMPARED]), most):
            return None
        return self._shown(parse(RawLine(number, raw), kind is HOT), serious=kind is not PLAIN or inside)

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
    def flush(self) -> Iterator[LeftOut]:
        """An account of all lines that are not shown and not accounted for yet."""
        for file, pending in list(self._pending.items()):
            if pending.first:
                yield self._account(file, pending)

    def _account(self, file: str, pending: _Pending) -> LeftOut:
        wait = min(2 * pending.wait, _LEFT_OUT[1])
        self._pending[file] = _Pending(wait=wait)
        return LeftOut(file, pending.first, pending.last, dict(pending.rules.most_common()), pending.repeated)

    def turn(self, file: str) -> Iterator[LeftOut]:
        """The file begins anew."""
        pending = self._pending.get(file)
        if pending is not None and pending.first:
            yield self._account(file, pending)
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
        )

    # ------------------------------------------------------------------------------------------ state
    def state(self) -> dict[str, Any]:
        """All that it must know to go on, as JSON; what is unexplained is found again."""
        return {
            "counts": [self._at, self._size, self._kept, self._kept_size, self._tokens, self._folded],
            "dropped": dict(self._dropped),
            "pending": {
                file: [p.first, p.last, dict(p.rules), p.repeated, p.lines, p.wait] for file, p in self._pending.items()
            },
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
        made._at, made._size, made._kept, made._kept_size, made._tokens, made._folded = map(int, state["counts"])
        made._dropped = Counter(state["dropped"])
        for file, (first, last, rules, repeated, lines, wait) in state["pending"].items():
            made._pending[file] = _Pending(first, last, Counter(rules), repeated, lines, wait)
        for file, known in state["tracebacks"].items():
            made._tracebacks[file] = Tracebacks()
            made._tracebacks[file].open = {stream: OpenTraceback(**found) for stream, found in known.items()}
        made._known = {key: (times, last) for key, times, last in state["known"]}
        return made


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
