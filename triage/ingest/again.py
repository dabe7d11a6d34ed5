"""Lines of a file that was read before, by their numbers: what the scan did not keep is still on disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from triage.domain import RawLine
from triage.errors import InputError
from triage.ingest import streams
from triage.ingest.text import MAX_DECODED

PATIENCE = 10.0  # seconds to come to the first line that is wanted


def raw_lines(name: str, first: int = 1, patience: float = PATIENCE) -> Iterator[RawLine]:
    """The lines of a file from number `first` on, each cut where it is longer than what is ever decoded.

    name: as the scan called the file. Errors: InputError for stdin, for a file that has gone, and for a line too far in.
    """
    path = Path(name)
    if name == "-" or not path.is_file():
        raise InputError(f"{name} cannot be read a second time", "only the lines that were kept are there")
    ends_at = time.monotonic() + patience
    number, left = 1, b""
    for piece in streams.chunks(streams.Input(name, path, 0), []):
        ends = piece.count(b"\n")
        if number + ends < first:  # nothing of this piece is wanted but the start of its last line
            left = (piece if ends else left + piece)[piece.rfind(b"\n") + 1 if ends else 0 :][:MAX_DECODED]
            number += ends
            if time.monotonic() > ends_at:
                raise InputError(
                    f"line {first} of {name} is too far in to be read again", "lines that were kept are there"
                )
            continue
        begun, *rest = piece.split(b"\n")
        left += begun[: MAX_DECODED - len(left)]
        for part in rest:
            if number >= first:
                yield RawLine(number, left)
            number, left = number + 1, part[:MAX_DECODED]
    if left and number >= first:
        yield RawLine(number, left)
