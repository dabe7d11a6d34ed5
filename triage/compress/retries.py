"""A traceback that a retry loop prints again and again: after a few showings it is held back and counted, all but the
last, which is shown once the loop is over. Pure.

Held back is only what is equal line by line, object addresses aside, and comes from the same rank: the tracebacks of
many ranks are no loop, and a number in a message may be what matters.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from triage.domain import LogLine

Key = tuple[str, str]  # file, stream (triage.heads.split)

_SHOWN = 3
_WAIT = 1000  # lines without another one of its kind after which a loop is over
_KNOWN = 64  # tracebacks
_OPEN = 256  # streams
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class Verdict(NamedTuple):
    """Lines to show now, and lines that are only counted."""

    show: list[LogLine]
    folded: list[LogLine]


@dataclass(slots=True)
class _Open:
    """A traceback being read. text: the hashes of its lines; held: those held back, None when it is shown as it comes;
    at: lines of all files before it."""

    text: str
    held: list[LogLine] | None
    at: int


class Retries:
    """Asked in order of line; `at`, the lines so far, only grows."""

    def __init__(self) -> None:
        self._open: dict[Key, _Open] = {}
        self._known: dict[tuple[Key, str], tuple[int, int]] = {}  # times, when last; the last touched at the end
        self._last: dict[tuple[Key, str], tuple[int, list[LogLine]]] = {}  # when, the lines of the last one
        self.oldest = 0  # when the first of what is held back came; 0: nothing is

    def take(self, key: Key, begins: bool, body: str, line: LogLine, at: int) -> Verdict:
        """A line of a traceback. begins: it is the first one."""
        show, folded = self.end(key, at) if begins else Verdict([], [])
        now = self._open.get(key)
        if now is None:
            now = self._open[key] = _Open("", [] if begins and self._looping(key, at) else None, at)
            if len(self._open) > _OPEN:
                show += self._open.pop(next(iter(self._open))).held or []
        now.text += hashlib.blake2b(_ADDRESS.sub("0x", body.rstrip()).encode(), digest_size=6).hexdigest()
        if now.held is None:
            show.append(line)
        elif any(k == key and text.startswith(now.text) for k, text in self._known):
            now.held.append(line)
        else:  # another one: what came before it is no riddle any more
            show += [*self._lasts(lambda known: known == key), *now.held, line]
            now.held = None
        self._count()
        return Verdict(show, folded)

    def end(self, key: Key, at: int) -> Verdict:
        """The stream says something else."""
        now = self._open.pop(key, None)
        if now is None:
            return Verdict([], [])
        whole = (key, now.text)
        times, last = self._known.pop(whole, (0, 0))
        looping = times >= _SHOWN and now.at - last <= _WAIT
        self._known[whole] = (min(times + 1, _SHOWN) if at - last <= _WAIT else 1, at)
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        show: list[LogLine] = []
        folded: list[LogLine] = []
        if now.held is not None and looping:
            _, folded = self._last.pop(whole, (0, []))
            self._last[whole] = (now.at, now.held)
        elif now.held is not None:  # only the beginning of one that is known
            show = now.held
        self._count()
        return Verdict(show, folded)

    def overdue(self, at: int) -> Verdict:
        """All that is held back, once some of it was for so many lines that its loop is over."""
        return self.release(at) if self.oldest and at - self.oldest > _WAIT else Verdict([], [])

    def release(self, at: int, file: str | None = None) -> Verdict:
        """All that is held back, of one file or of all."""
        found = Verdict([], [])
        for key in [key for key, now in self._open.items() if now.held and file in (None, key[0])]:
            show, folded = self.end(key, at)
            found.show.extend(show)
            found.folded.extend(folded)
        found.show.extend(self._lasts(lambda key: file in (None, key[0])))
        self._count()
        return found

    def forget(self, file: str) -> None:
        """The file begins anew; what is held back of it was released."""
        self._open = {key: now for key, now in self._open.items() if key[0] != file}

    def _looping(self, key: Key, at: int) -> bool:
        return any(
            known == key and times >= _SHOWN and at - last <= _WAIT for (known, _), (times, last) in self._known.items()
        )

    def _lasts(self, chosen: Callable[[Key], bool]) -> list[LogLine]:
        found = [whole for whole in self._last if chosen(whole[0])]
        return [line for whole in found for line in self._last.pop(whole)[1]]

    def _count(self) -> None:
        since = [when for when, _ in self._last.values()] + [now.at for now in self._open.values() if now.held]
        self.oldest = min(since, default=0)

    # ------------------------------------------------------------------------------------------ state
    def state(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "open": [
                [*key, now.text, None if now.held is None else _plain(now.held), now.at]
                for key, now in self._open.items()
            ],
            "known": [[*key, text, *seen] for (key, text), seen in self._known.items()],
            "last": [[*key, text, at, _plain(lines)] for (key, text), (at, lines) in self._last.items()],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Retries:
        """Errors: KeyError, TypeError, ValueError for what is no state."""
        made = cls()
        for file, stream, text, held, at in state["open"]:
            made._open[file, stream] = _Open(text, None if held is None else _lines(file, held), at)
        made._known = {((file, stream), text): (times, last) for file, stream, text, times, last in state["known"]}
        made._last = {((file, stream), text): (at, _lines(file, x)) for file, stream, text, at, x in state["last"]}
        made._count()
        return made


def _plain(lines: Iterable[LogLine]) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in lines]


def _lines(file: str, plain: Iterable[tuple[int, str]]) -> list[LogLine]:
    return [LogLine(file, number, text) for number, text in plain]
