"""What one diagnosis is made of: files, or a job that a scheduler was asked for."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from triage.parts import AskedJob


@dataclass(frozen=True, slots=True)
class Case:
    """One diagnosis to make. asked: None where no job was asked for; live: it still runs.

    state: in the word of its scheduler, "" where that knows nothing of it; gpu_hours: all that it used, as far as is told; by: who has it
    diagnosed, where that is not the user of this process.
    """

    asked: AskedJob | None
    paths: tuple[str, ...]
    notes: tuple[str, ...] = ()
    live: bool = False
    state: str = ""
    gpu_hours: float | None = None
    scheduler: str = ""
    by: str = ""


@contextmanager
def folder(home: Path | None, name: str) -> Iterator[Path]:
    """One under the home, where the record can find the texts again; else one that goes at the end."""
    if home is not None:
        try:
            place = home / name
            place.mkdir(parents=True, exist_ok=True)
            (probe := place / ".writable").write_bytes(b"")
            probe.unlink(missing_ok=True)
        except OSError:
            pass
        else:
            yield place
            return
    place = Path(tempfile.mkdtemp(prefix="triage-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
