"""Streams of decompressed bytes: memory bounded at any ratio, joined members, a cut stream yields what it holds."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

CHUNK = 1 << 20
BLOCK = 1 << 16  # compressed bytes read at a time
_WINDOW = 1 << 27  # zstd and xz streams that ask for more memory than this are refused
MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


class StreamError(Exception):
    """The compressed stream is cut or damaged; what came before it was yielded."""


class _Decoder(Protocol):
    """One member: feed bytes, get at most CHUNK; `eof` at its end, `unused_data` behind it."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes) -> bytes: ...
    def more(self) -> bool: ...


class _Zlib:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self.eof, self.unused_data = False, b""

    def decompress(self, data: bytes) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, CHUNK)
        self.eof, self.unused_data = self._inner.eof, self._inner.unused_data
        return out

    def more(self) -> bool:
        return bool(self._inner.unconsumed_tail)


class _Bounded:
    def __init__(self, inner: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._inner = inner
        self.eof, self.unused_data = False, b""

    def decompress(self, data: bytes) -> bytes:
        out = self._inner.decompress(data, CHUNK)
        self.eof = self._inner.eof
        self.unused_data = self._inner.unused_data if self.eof else b""
        return out

    def more(self) -> bool:
        return not self.eof and not self._inner.needs_input


def _xz() -> _Decoder:
    return _Bounded(lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=2 * _WINDOW))


class _Zstd:
    """The library cannot bound its output, so the input is fed in pieces: 1 KB holds at most 256 blocks of 128 KB."""

    PIECE = 1024

    def __init__(self) -> None:
        import zstandard

        self._inner = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        self._error = zstandard.ZstdError
        self._rest = b""
        self.eof, self.unused_data = False, b""

    def decompress(self, data: bytes) -> bytes:
        data = self._rest + data
        piece, self._rest = data[: self.PIECE], data[self.PIECE :]
        try:
            out = self._inner.decompress(piece)
        except self._error as error:
            raise StreamError(str(error)) from None
        self.eof = self._inner.eof
        if self.eof:
            self.unused_data, self._rest = self._inner.unused_data + self._rest, b""
        return out

    def more(self) -> bool:
        return bool(self._rest)


_MEMBERS: dict[str, Callable[[], _Decoder]] = {
    "gzip": _Zlib,
    "xz": _xz,
    "bzip2": lambda: _Bounded(bz2.BZ2Decompressor()),
    "zstd": _Zstd,
}


def codec(head: bytes) -> str | None:
    """The name of the compression that these first bytes show, or None."""
    return next(
        (name for magic, name in MAGIC if head.startswith(magic) and (name != "bzip2" or head[3:4] in b"123456789")),
        None,
    )


def decompress(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The content of a stream of compressed blocks, in pieces of bounded size.

    Errors: StreamError after the last good piece.
    """
    try:
        yield from _members(_MEMBERS[name], next(m for m, n in MAGIC if n == name), blocks)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        raise StreamError(str(error)) from None


def _skippable(head: bytes) -> bool:
    """A zstd frame without content, as pzstd and the seekable format write them."""
    return head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5


def _members(new: Callable[[], _Decoder], magic: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    decoder, fresh, pending = new(), True, b""
    for block in blocks:
        pending += block
        while pending or decoder.more():
            if fresh and len(pending) < len(magic):
                break
            if fresh and not pending.startswith(magic) and not _skippable(pending):
                if pending.strip(b"\x00"):
                    raise StreamError("bytes behind the end of the stream are no further member")
                pending = b""
                break
            piece, pending, fresh = decoder.decompress(pending), b"", False
            if piece:
                yield piece
            if decoder.eof:
                decoder, fresh, pending = new(), True, decoder.unused_data
    if not fresh or pending.strip(b"\x00"):
        raise StreamError("the stream ends early")
