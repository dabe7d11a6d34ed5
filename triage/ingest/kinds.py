"""What a file is, told by its name and the first 64 KB of its content. Pure; nothing is unpickled."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from triage.domain import FileKind
from triage.ingest import content

if TYPE_CHECKING:
    from triage.ingest.streams import Input

SAMPLE = 65536
_TEXT_CONTROLS = frozenset(b"\t\n\r\x0b\x0c\x1b\x08\x07")
_CONTROLS = bytes(c for c in range(32) if c not in _TEXT_CONTROLS) + b"\x7f"
_MAGIC = (
    b"\x7fELF",
    b"\x89PNG",
    b"PK\x03\x04",
    b"\xff\xd8\xff",
    b"GIF8",
    b"%PDF",
    b"\x93NUMPY",
    b"\x89HDF",
    b"SQLite format 3\x00",
    b"PAR1",
    b"RIFF",
    b"OggS",
)
_QUOTED = re.compile(
    rb"^Thread (?:0x)?[0-9A-Fa-f]{1,16} \((?:active|idle)\b|^Error: Failed to suspend process", re.MULTILINE
)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")


# What PyTorch calls its dumps.
_TRACE = re.compile(r"(?:nccl|comm_lib)_trace_rank_?\d+(?:\.\w+)?$")


def detect(item: Input, chunks: Iterator[bytes]) -> tuple[FileKind, Iterator[bytes]]:
    """The kind of an input, and its chunks (none of them lost). Of a stream only the first chunk can tell."""
    if item.path is not None and not item.path.is_fifo():
        return item.kind, chunks
    first = next(chunks, b"")
    kind = classify(item.name, first[:SAMPLE])
    return kind, iter(()) if kind in ("binary", "flight-recorder", "empty") else itertools.chain((first,), chunks)


def classify(name: str, sample: bytes) -> FileKind:
    """The kind of a file from its name and the start of its (decompressed, UTF-8) content."""
    if not sample.strip(b"\x00 \t\r\n"):
        return "empty"
    if is_binary(sample):
        return "flight-recorder" if _is_flight_recorder(name, sample) else "binary"
    text = sample.replace(b"\x00", b"").decode("utf-8", "replace")
    if text.startswith("{") and '"pg_config"' in text and '"entries"' in text:
        return "flight-recorder"
    return content.kind_of(PurePath(name).name.lower(), text)


def quotes_stacks(sample: bytes) -> bool:
    """Whether a write-up quotes what was taken of hung processes, as people note it down beside the logs."""
    return bool(_QUOTED.search(sample))


def is_json_lines(sample: bytes) -> bool:
    """Whether each line is an object, as structured loggers write, rather than one document."""
    lines = [line for line in sample.split(b"\n")[:20] if line.strip()]
    return len(lines) > 1 and all(line.startswith(b"{") for line in lines)


def is_binary(sample: bytes) -> bool:
    """Whether the content is no text: a known magic, or many control bytes; a few NULs in a log are not enough."""
    if (sample.startswith(_MAGIC) and b"\x00" in sample[:4096]) or (_PICKLE.match(sample) and b"\x00" in sample[:64]):
        return True
    if is_archive(sample):
        return True
    rest = sample.translate(None, b"\x00")  # a rotated log starts with a hole, UTF-16 without a mark has one in two
    return len(rest) - len(rest.translate(None, _CONTROLS)) > len(rest) * 0.03


def is_archive(sample: bytes) -> bool:
    return sample[257:262] == b"ustar" or sample.startswith((b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c"))


def _is_flight_recorder(name: str, sample: bytes) -> bool:
    if _TRACE.search(name):
        return True  # one that was cut off as well
    marks = b"pg_config" in sample or b"nccl_version" in sample or "dump" in PurePath(name).name.lower()
    return bool(_PICKLE.match(sample)) and marks
