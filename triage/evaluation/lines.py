"""Lines of input files as a reader would count them: decompressed, split on newlines alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from triage.ingest import streams

LONGEST = 1 << 20
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufffd]+")
_HIDDEN = re.compile(r"\[redacted:[a-z-]*\]?")


def count(path: Path) -> int:
    """How many lines the file has; a last one without a newline counts."""
    lines, rest = 0, False
    for piece in _pieces(path):
        lines += piece.count(b"\n")
        rest = not piece.endswith(b"\n")
    return lines + rest


def pick(path: Path, wanted: Collection[int]) -> dict[int, str]:
    """The lines of these numbers (1-based) that the file has, of each at most the first LONGEST bytes."""
    return {
        number: raw.decode("utf-8", "replace")
        for number, raw in enumerate(bounded(_pieces(path)), 1)
        if number in wanted
    }


def bounded(pieces: Iterable[bytes], longest: int = LONGEST) -> Iterator[bytes]:
    """The lines of a stream, of each at most the first so many bytes: in linear time and bounded memory however long one is."""
    start, some = b"", False  # of the line that is not over yet; some: it has begun
    for piece in pieces:
        first, *more = piece.split(b"\n")
        start, some = start + first[: longest - len(start)], some or bool(first)
        for line in more:
            yield start
            start, some = line[:longest], bool(line)
    if some:
        yield start


def shows(line: str, text: str) -> bool:
    """Whether the text is what the line says: the line itself or a piece of it.

    Colour codes, blanks and control characters do not count, and a secret that was replaced may have been anything.
    """
    bare, at = _bare(line), 0
    for piece in map(_bare, _HIDDEN.split(text)):
        at = bare.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return at > 0 or not bare


def _pieces(path: Path) -> Iterator[bytes]:
    return streams.chunks(streams.Input(path.name, path, 0), [])


def _bare(text: str) -> str:
    return _UNSEEN.sub("", _ESCAPE.sub("", text))
