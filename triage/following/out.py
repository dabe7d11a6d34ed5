"""Where the stream is written: a pipe or terminal, or a file beside which a state says how far it is good."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from triage.domain import Compression, StreamEvent
from triage.errors import InputError, TriageError, UsageError
from triage.following.follow import file_key
from triage.report.stream import StreamText

SCHEMA = "triage.follow/1"


class Printed:
    """Text is printed as it comes; nothing is remembered."""

    def __init__(self, text: StreamText, write: Callable[[str], None]) -> None:
        self._text, self._write = text, write

    def write(self, events: Sequence[StreamEvent]) -> None:
        if events:
            self._write(self._text.events(events))

    def commit(self, state: Callable[[], dict[str, Any]]) -> None: ...

    def end(self, events: Sequence[StreamEvent], account: Compression) -> None:
        self._write(self._text.events(events) + self._text.account(account))


class Written:
    """Text is appended to a file. Beside it, FILE.state says up to where the file is good and how to go on from there.

    What stands behind that was written by a follower that was killed, or is what it said when it stopped: it is cut off,
    and what it was made of is read again. write: told the account at the end. files: those that are followed; a state
    that knows others is of another stream.
    """

    def __init__(self, path: Path, chosen: str, files: Sequence[str], write: Callable[[str], None]) -> None:
        self._path, self._state = path, path.with_name(path.name + ".state")
        self._print = write
        self._chosen, self._files = chosen, dict.fromkeys(files)
        self._file = self._opened()
        try:
            self.state = self._read()
            self._text = StreamText(chosen, len(self._files) > 1, self.state["shown"] if self.state else "")
            size = os.fstat(self._file).st_size
            if self.state is not None:
                size = min(size, int(self.state["output"]))
                os.ftruncate(self._file, size)
            self._at = size
        except BaseException:
            os.close(self._file)
            raise

    def write(self, events: Sequence[StreamEvent]) -> None:
        self._append(self._text.events(events))

    def commit(self, state: Callable[[], dict[str, Any]]) -> None:
        made = {
            "schema": SCHEMA, "format": self._chosen, "output": self._at, "shown": self._text.file, **state()
        }  # fmt: skip
        with self._explained():
            os.fsync(self._file)
            new = self._state.with_name(self._state.name + ".new")
            with new.open("w", encoding="utf-8") as stream:
                json.dump(made, stream)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(self._state)

    def end(self, events: Sequence[StreamEvent], account: Compression) -> None:
        said = self._text.account(account)
        self._append(self._text.events(events) + said)
        self._print(said.lstrip("\n"))

    def close(self) -> None:
        os.close(self._file)

    def _append(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "replace"))
        with self._explained():
            while data:
                done = os.write(self._file, data)
                self._at, data = self._at + done, data[done:]

    def _opened(self) -> int:
        import fcntl

        with self._explained():
            if not self._path.exists() and self._is_ours():
                self._state.unlink()  # who takes the stream away wants a new one
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise UsageError(
                f"{self._path}: another triage is writing it", "give another --out, or stop that one first"
            ) from None
        except OSError:  # a file system without locks
            pass
        return file

    def _is_ours(self) -> bool:
        """Errors: UsageError when another program's file stands where the state would."""
        try:
            ours = bool(json.loads(self._state.read_text("utf-8"))["schema"] == SCHEMA)
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError):
            ours = False
        if not ours:
            raise UsageError(f"{self._state} is in the way: it is no state of triage", "give another --out")
        return True

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._state.read_text("utf-8"))
            if found["schema"] != SCHEMA or not isinstance(found["shown"], str):
                raise ValueError("not a state of triage")
            known, _ = dict(found["files"]), int(found["output"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self.damaged(error) from None
        if found["format"] != self._chosen:
            raise UsageError(
                f"{self._path} is written in {found['format']}", f"give --format {found['format']}, or another --out"
            )
        given = {file_key(name) for name in self._files}
        if others := [name for name in known if name not in given]:
            raise UsageError(
                f"{self._path} is the stream of {_named(others)}, and {_named(list(self._files))} is to be followed",
                "give another --out, or the same files",
            )
        return dict(found)

    def damaged(self, error: Exception) -> TriageError:
        return InputError(f"{self._state}: {error}", "remove it and the stream beside it to start anew")

    @contextlib.contextmanager
    def _explained(self) -> Any:
        try:
            yield
        except OSError as error:
            raise TriageError(f"{self._path}: {error.strerror or error}", "what was committed stays good") from None


def _named(files: Sequence[str]) -> str:
    return files[0] + (f" (and {len(files) - 1} more)" if len(files) > 1 else "")
