"""The bytes of an input: decompressed, UTF-16 turned into UTF-8, in pieces of bounded size."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from triage.domain import FileKind, Stamps
from triage.ingest import compressed, flight, kinds
from triage.ingest.names import Place

CHUNK = 1 << 20
_READ = 128 << 10  # a block of the scan
_HOLE = 1 << 26
_ENCODINGS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Input:
    """One readable source. path is None for stdin; size in bytes on disk, 0 for a stream.

    place: whose lines they are, stamps: when they were written, where a scheduler says so; else name and text may tell.
    """

    name: str
    path: Path | None
    size: int
    kind: FileKind = "job"
    modified: datetime | None = None
    place: Place | None = None
    stamps: Stamps | None = None


def chunks(item: Input, problems: list[str]) -> Iterator[bytes]:
    """The content of an input, decompressed, as UTF-8 or bytes near it, in pieces of about 128 KB.

    What cannot be read to its end yields what it holds and adds one line to `problems`, without the name.
    """
    try:
        if item.kind == "flight-recorder":
            yield from _flight(item, problems)
        else:
            yield from _text(_plain(item, problems, _READ))
    except OSError as error:
        problems.append(f"{reason(error)}; what came before was read")


def _flight(item: Input, problems: list[str]) -> Iterator[bytes]:
    """A dump as text, a line an entry."""
    raw, size = [], 0
    for piece in _plain(item, problems, CHUNK):
        raw.append(piece)
        size += len(piece)
        if size > flight.MOST_BYTES:
            problems.append(f"a flight-recorder dump of more than {flight.MOST_BYTES >> 20} MB, not read")
            return
    try:
        for line in flight.lines(b"".join(raw)):
            yield f"{line}\n".encode("utf-8", "replace")
    except flight.DumpError as error:
        problems.append(f"a flight-recorder dump that was not read: {error}")


def is_plain(item: Input) -> bool:
    """Whether the content is the bytes of a file as they stand on disk. Errors: OSError."""
    if item.path is None or item.kind == "flight-recorder" or not item.path.is_file():
        return False
    with item.path.open("rb", buffering=0) as stream:
        head = _head(stream, 6)
    return compressed.codec(head) is None and not any(head.startswith(mark) for mark, _ in _ENCODINGS)


def sample(item: Input, problems: list[str]) -> bytes:
    """The first 64 KB of an input's content, or less, behind the hole that a rotated log may start with."""
    found = b""
    seen = 0
    try:
        for piece in _text(_plain(item, problems, kinds.SAMPLE)):
            found = (found + piece).lstrip(b"\x00")
            seen += len(piece)
            if len(found) >= kinds.SAMPLE or seen > _HOLE:
                break
    except OSError as error:
        problems.append(reason(error))
    return found[: kinds.SAMPLE]


def _plain(item: Input, problems: list[str], size: int) -> Iterator[bytes]:
    """The bytes of an input, decompressed if its first bytes say so."""
    if item.path is None:
        yield from _decoded(sys.stdin.buffer, problems, size)
        return
    with item.path.open("rb", buffering=0) as stream:
        yield from _decoded(stream, problems, size)


def _decoded(stream: BinaryIO, problems: list[str], size: int) -> Iterator[bytes]:
    head = _head(stream, size)
    codec = compressed.codec(head)
    if codec is None:
        if head:
            yield head
        while piece := stream.read(size):
            yield piece
        return
    lines = 0
    try:
        for piece in compressed.decompress(codec, _blocks(head, stream)):
            lines += piece.count(b"\n")
            yield piece
    except compressed.StreamError as error:
        problems.append(f"the {codec} stream is cut or damaged after line {lines} ({error}); what came before was read")


def _head(stream: BinaryIO, size: int) -> bytes:
    head = b""
    while len(head) < 6 and (piece := stream.read(size)):
        head += piece
    return head


def _blocks(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    for at in range(0, len(head), compressed.BLOCK):
        yield head[at : at + compressed.BLOCK]
    while block := stream.read(compressed.BLOCK):
        yield block


def _text(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 with a byte order mark becomes UTF-8 with the same lines; the mark itself goes."""
    decoder: codecs.IncrementalDecoder | None = None
    first = True
    for piece in pieces:
        data = piece
        if first:
            first = False
            mark, encoding = next(((m, e) for m, e in _ENCODINGS if data.startswith(m)), (b"", ""))
            data = data[len(mark) :]
            if encoding.startswith("utf-16"):
                decoder = codecs.getincrementaldecoder(encoding)("replace")
        if decoder is not None:
            data = decoder.decode(data).encode("utf-8", "replace")
        if data:
            yield data
    if decoder is not None and (rest := decoder.decode(b"", True)):
        yield rest.encode("utf-8", "replace")


def is_utf16(head: bytes) -> bool:
    """Whether these first bytes say that the text is UTF-16."""
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def reason(error: Exception) -> str:
    """An error of the file system in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()
