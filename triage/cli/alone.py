"""One process of a kind for one home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from triage.errors import StoreError, UsageError


@contextmanager
def alone(folder: Path, command: str) -> Iterator[None]:
    """folder: of the command below TRIAGE_HOME, made where it is not there. Errors: UsageError, StoreError."""
    lock = FileLock(folder / "lock", timeout=0)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise UsageError(f"another {command} runs with this TRIAGE_HOME", "end it, or give this one its own") from None
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}", "set TRIAGE_HOME to a folder that can be written") from None
    try:
        yield
    finally:
        lock.release()
