"""Bytes cut anywhere, made into blocks of whole lines. Lines of any length pass in bounded memory.

A block's borders depend on the bytes alone, not on how they were cut into chunks, so a scan has one result.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from triage.compress import clean
from triage.compress.limits import ScanLimits
from triage.compress.outline import outline

Loud = Callable[[Sequence[bytes]], Iterable[bytes]]

_FEW = 4  # lines that are searched for one by one
MAX_HIDDEN = 20  # overwritten states of one line that are kept, the first and the last


class Block:
    """Whole lines and the outline of each. piece: which piece of the file they end in.

    text: the lines as they are shown, each ended by a newline; raw: as they are in the file, b"" for one long line.
    """

    def __init__(self, text: bytes, size: int, raw: bytes = b"", piece: int = 0) -> None:
        self.text, self.size, self.raw, self.piece = text, size, raw, piece
        self.outlines = outline(text).split(b"\n")
        self.outlines.pop()
        # Where each line ends in the text, the newlines before it not counted; found when more than a few are asked for.
        self._ends: list[int] | None = None
        self._few: dict[int, bytes] = {}  # until then, those asked for

    def __len__(self) -> int:
        return len(self.outlines)

    @functools.cached_property
    def counts(self) -> Mapping[bytes, int]:
        """How many lines each outline has, in order of their first."""
        return Counter(self.outlines)

    @functools.cached_property
    def lines(self) -> list[bytes]:
        return self.text.split(b"\n")[: len(self.outlines)]

    def line(self, at: int) -> bytes:
        if self._ends is None:
            known = self._few.get(at)
            if known is not None:
                return known
            if len(self._few) < _FEW:
                start = sum(map(len, self.outlines[:at])) + at
                return self._few.setdefault(at, self.text[start : start + len(self.outlines[at])])
            self._ends = list(itertools.accumulate(map(len, self.outlines)))
        end = self._ends[at] + at
        return self.text[end - len(self.outlines[at]) : end]

    def last(self, count: int) -> list[bytes]:
        """The last lines, at most so many."""
        ends = self.outlines[-count:] if count else []
        return self.text[len(self.text) - sum(map(len, ends)) - len(ends) : -1].split(b"\n") if ends else []

    def places(self, wanted: Collection[bytes]) -> Iterable[int]:
        """The places of the lines of these outlines, ascending."""
        if len(wanted) <= _FEW and sum(self.counts[outline] for outline in wanted) <= _FEW:
            return sorted(at for outline in wanted for at in self.first(outline))
        return itertools.compress(range(len(self.outlines)), map(wanted.__contains__, self.outlines))

    def first(self, wanted: bytes, count: int | None = None) -> list[int]:
        """The places of the first lines of an outline, at most so many."""
        found: list[int] = []
        at = -1
        for _ in range(self.counts[wanted] if count is None else min(count, self.counts[wanted])):
            at = self.outlines.index(wanted, at + 1)
            found.append(at)
        return found

    def sizes(self) -> list[int]:
        """Bytes of each line in the file, its newline included; the sum is `size`."""
        if len(self) == 1:
            return [self.size]
        found = [len(line) + 1 for line in self.raw.split(b"\n")[: len(self)]]
        found[-1] += self.size - sum(found)  # the last line of a file may lack its newline
        return found

    def cut(self, places: Sequence[int]) -> Iterator[Block]:
        """The block in parts, one from each of these places on, the first from 0."""
        sizes = self.sizes()
        for start, end in itertools.pairwise([*places, len(self)]):
            yield Block(b"\n".join(self.lines[start:end]) + b"\n", sum(sizes[start:end]), piece=self.piece)


class Blocks:
    """Iterates over the blocks of a file, or of a part of it. loud: which of some overwritten states must be kept.

    Of a part, the chunks start at piece number `piece`, with a line that began with the bytes `pending`; and when it
    is not the last, what follows its last newline is left to the next part.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        limits: ScanLimits,
        loud: Loud,
        piece: int = 0,
        pending: bytes = b"",
        last: bool = True,
    ) -> None:
        self._chunks = chunks
        self._begin, self._pending, self._last = piece, pending, last
        self._block = limits.block
        self._limit, self._keep = limits.line_cut
        self._loud = loud
        self._piece = 0

    def __iter__(self) -> Iterator[Block]:
        pending = self._pending
        long: _LongLine | None = None
        for index, piece in enumerate(_pieces(self._chunks, self._block), self._begin):
            self._piece = index
            start = 0
            if long is not None:
                end = piece.find(b"\n")
                long.feed(piece if end < 0 else piece[:end])
                if end < 0:
                    continue
                yield long.block(1, self._piece)
                long, start = None, end + 1
            end = piece.rfind(b"\n", start) + 1
            if end:
                whole = b"".join((pending, memoryview(piece)[start:end]))
                pending = piece[end:]
                yield from self._whole(whole)
            else:
                pending += piece[start:]
            if len(pending) > self._limit:
                long = self._long()
                long.feed(pending)
                pending = b""
        if not self._last:
            return
        if long is not None:
            yield long.block(0, self._piece)
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
                yield long.block(int(ended), self._piece)
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
        return Block(text if raw.endswith(b"\n") else text + b"\n", len(raw), raw, self._piece)

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

    def block(self, newline: int, piece: int) -> Block:
        return Block(self._states.line() + b"\n", self._size + newline, piece=piece)


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
