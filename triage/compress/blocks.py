"""Bytes cut anywhere, made into blocks of whole lines. Lines of any length pass in bounded memory.

A block's borders depend on the bytes alone, not on how they were cut into chunks, so a scan has one result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from triage.compress import clean
from triage.compress.limits import ScanLimits
from triage.regex import ERASED, skeleton

Loud = Callable[[Sequence[bytes]], Iterable[bytes]]

MAX_HIDDEN = 20  # overwritten states of one line that are kept, the first and the last


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines without their ends, the skeleton of each, and the bytes each had in the file."""

    lines: list[bytes]
    keys: list[bytes]
    size: int
    raw: bytes  # b"" for a block of one long line

    def sizes(self) -> list[int]:
        """Bytes of each line in the file, its newline included; the sum is `size`."""
        if len(self.lines) == 1:
            return [self.size]
        found = [len(line) + 1 for line in self.raw.split(b"\n")[: len(self.lines)]]
        found[-1] += self.size - sum(found)  # the last line of a file may lack its newline
        return found


class Blocks:
    """Iterates over the blocks of a file. loud: which of some overwritten states must be kept."""

    def __init__(self, chunks: Iterable[bytes], limits: ScanLimits, loud: Loud) -> None:
        self._chunks = chunks
        self._block = limits.block
        self._limit, self._keep = limits.line_cut
        self._loud = loud

    def __iter__(self) -> Iterator[Block]:
        pending = b""
        long: _LongLine | None = None
        for piece in _pieces(self._chunks, self._block):
            data = piece
            if long is not None:
                end = data.find(b"\n")
                long.feed(data if end < 0 else data[:end])
                if end < 0:
                    continue
                yield long.block(1)
                long, data = None, data[end + 1 :]
            else:
                data = pending + data
            end = data.rfind(b"\n") + 1
            pending = data[end:]
            if end:
                yield from self._whole(data[:end])
            if len(pending) > self._limit:
                long = self._long()
                long.feed(pending)
                pending = b""
        if long is not None:
            yield long.block(0)
        elif pending:
            yield from self._whole(pending)

    def _long(self) -> _LongLine:
        return _LongLine(self._limit, self._keep, self._loud)

    def _whole(self, raw: bytes) -> Iterator[Block]:
        """The block of these lines; lines that are too long become blocks of their own."""
        if len(raw) <= self._limit:
            yield self._short(raw)
            return
        start = at = 0
        while at < len(raw):
            end = raw.find(b"\n", at) + 1 or len(raw)
            if end - at > self._limit + 1:
                if at > start:
                    yield self._short(raw[start:at])
                ended = raw[end - 1 : end] == b"\n"
                long = self._long()
                long.feed(raw[at : end - ended])
                yield long.block(int(ended))
                start = end
            at = end
        if at > start:
            yield self._short(raw[start:at])

    def _short(self, raw: bytes) -> Block:
        text = raw
        if b"\r" in raw:
            text = raw.replace(b"\r\n", b"\n")
            if b"\r" in text:
                text = b"\n".join([self._shown(line) if b"\r" in line else line for line in text.split(b"\n")])
        lines = text.split(b"\n")
        keys = text.translate(None, ERASED).split(b"\n")
        if not lines[-1] and raw.endswith(b"\n"):
            lines.pop()
            keys.pop()
        return Block(lines, keys, len(raw), raw)

    def _shown(self, line: bytes) -> bytes:
        states = _States(self._limit, self._keep, self._loud)
        states.feed(line)
        return states.line()


def _pieces(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of exactly `size`, but for the last."""
    held: list[bytes] = []
    length = 0
    for chunk in chunks:
        held.append(chunk)
        length += len(chunk)
        if length < size:
            continue
        data = b"".join(held) if len(held) > 1 else chunk
        for at in range(0, length - size + 1, size):
            yield data[at : at + size]
        held = [data[length - length % size :]]
        length %= size
    if length:
        yield b"".join(held)


class _States:
    """A line made of states that carriage returns overwrote one by one, fed piece by piece.

    What remains is the last state that shows anything, after the earlier ones that are loud: an error text that a
    progress bar has painted over is still an error.
    """

    def __init__(self, limit: int, keep: int, loud: Loud) -> None:
        self._limit, self._keep, self._loud = limit, keep, loud
        self._open = _Middle(limit, keep)
        self._last = b""
        self._hidden: dict[bytes, None] = {}  # a set in order

    def feed(self, data: bytes) -> None:
        first, *rest = data.split(b"\r")
        self._open.feed(first)
        if rest:
            self._end([self._open.bytes(), *map(self._cut, rest[:-1])])
            self._open = _Middle(self._limit, self._keep)
            self._open.feed(rest[-1])

    def _cut(self, state: bytes) -> bytes:
        if len(state) <= self._limit:
            return state
        middle = _Middle(self._limit, self._keep)
        middle.feed(state)
        return middle.bytes()

    def _end(self, states: Sequence[bytes]) -> None:
        """These states are whole."""
        self._last = next((state for state in reversed(states) if clean.plain(state).strip()), self._last)
        for state in self._loud(states):
            self._hidden[state] = None
            if len(self._hidden) > MAX_HIDDEN:
                del self._hidden[next(itertools.islice(self._hidden, MAX_HIDDEN // 2, None))]

    def line(self) -> bytes:
        self._end([self._open.bytes()])
        self._hidden.pop(self._last, None)
        return self._cut(clean.OVERWRITTEN.join([*self._hidden, self._last]))


class _LongLine:
    """A line that is never held whole."""

    def __init__(self, limit: int, keep: int, loud: Loud) -> None:
        self._states = _States(limit, keep, loud)
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        self._states.feed(data)

    def block(self, newline: int) -> Block:
        line = self._states.line()
        return Block([line], [skeleton(line)], self._size + newline, b"")


class _Middle:
    """Bytes fed piece by piece; of more than `limit`, only `keep` at either end are kept."""

    def __init__(self, limit: int, keep: int) -> None:
        self._limit, self._keep = limit, keep
        self._held = bytearray()
        self._head: bytes | None = None
        self._cut = 0

    def feed(self, data: bytes) -> None:
        self._held += data
        if self._head is None:
            if len(self._held) <= self._limit:
                return
            self._head = bytes(self._held[: self._keep])
            del self._held[: self._keep]
        if len(self._held) > self._keep:
            self._cut += len(self._held) - self._keep
            del self._held[: -self._keep]

    def bytes(self) -> bytes:
        if self._head is None:
            return bytes(self._held)
        return self._head + b" ...[%d bytes cut]... " % self._cut + bytes(self._held)
