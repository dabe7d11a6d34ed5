"""Which log it is: tells the same file read again, and one that has grown, from another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from triage.domain import InputFile
from triage.ingest.streams import Input

ENDS = 512 << 10  # bytes at either end of a large file: logs are appended to, so more tells no more
HEAD = 4 << 10


def identify(inputs: Sequence[Input]) -> tuple[InputFile, ...]:
    """Of each input, size and digests as it lies on disk now; without digest what is no file or cannot be read again."""
    return tuple(map(_identity, inputs))


def digest(path: Path) -> tuple[int, str, str]:
    """Size, digest of the whole (of a large file: of its size and both ends), digest of its beginning. Errors: OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        begin = file.read(ENDS if size > 2 * ENDS else size)
        if size > 2 * ENDS:
            file.seek(-ENDS, os.SEEK_END)
        end = file.read(ENDS)
    whole = hashlib.sha256(b"%d\n" % size)
    for part in (begin, end):
        whole.update(part)
    return size, whole.hexdigest(), hashlib.sha256(begin[:HEAD]).hexdigest()


def _identity(item: Input) -> InputFile:
    if item.path is None:
        return InputFile(item.name)
    path = str(item.path.absolute())
    try:
        size, whole, head = digest(item.path) if item.path.is_file() else (item.size, "", "")
    except OSError:
        return InputFile(item.name, path, item.size)
    return InputFile(item.name, path, size, whole, head)
