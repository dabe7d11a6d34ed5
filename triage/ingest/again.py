"""Lines of a file that was read before, by their numbers: what the scan did not keep is still on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from triage.domain import RawLine
from triage.errors import InputError
from triage.ingest import streams
from triage.ingest.text import MAX_DECODED


def raw_lines(name: str, first: int = 1) -> Iterator[RawLine]:
    """The lines of a file from number `first` on, each cut where it is longer than what is ever decoded.

    name: as the scan called the file. Errors: InputError for stdin and for a file that has gone.
    """
    path = Path(name)
    if name == "-" or not path.is_file():
        raise InputError(f"{name} cannot be read a second time", "only the lines that were kept are there")
    number, left = 1, b""
    for piece in streams.chunks(streams.Input(name, path, 0), []):
        ends = piece.count(b"\n")
        if number + ends < first:  # nothing of this piece is wanted but the start of its last line
            left = (piece if ends else left + piece)[piece.rfind(b"\n") + 1 if ends else 0 :][:MAX_DECODED]
            number += ends
            continue
        begun, *rest = piece.split(b"\n")
        left += begun[: MAX_DECODED - len(left)]
        for part in rest:
            if number >= first:
                yield RawLine(number, left)
            number, left = number + 1, part[:MAX_DECODED]
    if left and number >= first:
        yield RawLine(number, left)
