"""Reads the lines of logs that measure or save, all of them: a diagnosis keeps only some of what repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from triage.domain import LogFile, LogLine, RawLine
from triage.ingest import sources, streams
from triage.ingest.lines import LineParser

MOST_LINES = 2_000_000  # of one file
_TOLD_EACH = 20_000  # records
_LONGEST = 1 << 20  # bytes of a line that is looked at
_WORDS = (
    b"loss",
    b"norm",
    b"heckpoint",
    b"ckpt",
    b"global_step",
    b"Unexpected result",
    b"Epoch ",
    b"it/s",
    b"s/it",
    b"save-checkpoint",
)


def read(paths: Sequence[str], tell: Callable[[str], None] | None = None) -> tuple[LogFile, ...]:
    """Files, folders or - as a diagnosis takes them. tell: of progress. Errors: InputError when nothing of them can be read."""
    inputs, _ = sources.discover(paths)
    return tuple(_file(item, tell) for item in inputs if item.kind in ("job", "slurm"))


def _file(item: streams.Input, tell: Callable[[str], None] | None) -> LogFile:
    parser = LineParser(item.name, reference=item.modified)
    lines = tuple(_told(_lines(parser, streams.chunks(item, [])), item.name, tell))
    last = lines[-1].number if lines else 0
    return LogFile(item.name, "job", lines, item.size, last, last_line=last)


def _told(lines: Iterable[LogLine], name: str, tell: Callable[[str], None] | None) -> Iterator[LogLine]:
    for count, line in enumerate(lines, 1):
        if tell and count % _TOLD_EACH == 0:
            tell(f"{name}: {count:,} records read")
        yield line


def _lines(parser: LineParser, pieces: Iterable[bytes]) -> Iterator[LogLine]:
    found = 0
    for number, raw in _split(pieces):
        if found < MOST_LINES and len(raw) < _LONGEST and any(word in raw for word in _WORDS):
            found += 1
            yield parser.parse(RawLine(number, raw))


def _split(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Records with the number of their line. A bar that is drawn over itself ends each with a carriage return: hours of it are one line."""
    number, rest = 1, b""
    for piece in pieces:
        text = rest + piece
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        rest = text[end : end + _LONGEST]  # more of one record is not looked at
        lines = text[:end].split(b"\n")
        for ahead, line in enumerate(lines):
            for record in line.split(b"\r"):
                yield number + ahead, record
        number += len(lines) - 1
    yield number, rest
