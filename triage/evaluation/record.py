"""The run folder: run.json, records.jsonl, metrics.json. Written line by line, so that an interrupted run loses one case at most.

A record is one (case, repeat). Where a case was run again, its last record counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from triage.errors import InputError, UsageError
from triage.evaluation import made, shapes, unfinished

SCHEMA = "triage.run/1"
RUN, RECORDS, METRICS = "run.json", "records.jsonl", "metrics.json"
_FOLDER = "give a folder made by triage eval run"


def read_run(path: Path) -> dict[str, Any]:
    """run.json of a run folder. Errors: InputError."""
    found = _read_json(path / RUN)
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{path / RUN}: is no {SCHEMA}", _FOLDER)
    if wrong := shapes.of_run(found):
        raise InputError(f"{path / RUN}: {wrong}", _FOLDER)
    return found


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a run folder, one a (case, repeat), in the order of case and repeat.

    A last line that was cut by an interruption is dropped. Errors: InputError with the number of a line that cannot be read.
    """
    if not (path / RECORDS).exists() and (path / RUN).exists():
        return []  # interrupted before the first
    latest = {(r["case"], r["repeat"]): r for r in _records(path / RECORDS)}
    return [latest[key] for key in sorted(latest)]


def read_metrics(path: Path) -> dict[str, Any]:
    """metrics.json of a run folder. Errors: InputError, which says of an interrupted run how to go on with it."""
    if not (path / METRICS).exists() and (path / RUN).exists():
        run, records = read_run(path), read_records(path)
        lacks = unfinished.missing(run, records) or "its figures are not made"
        hint = f"go on with `{unfinished.go_on(str(run.get('command') or 'triage eval run CASES'), path)}`"
        raise InputError(
            f"{path} is not finished: {lacks}", f"{hint}, or score what is there: triage eval rescore {path}"
        )
    found = _read_json(path / METRICS)
    if wrong := shapes.of_metrics(found):
        raise InputError(f"{path / METRICS}: {wrong}", f"make it anew: triage eval rescore {path}")
    return dict(found)


def write_metrics(path: Path, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """With the hash of the records that they were made from, records_sha256; what was written. Errors: UsageError."""
    found = {**metrics, "records_sha256": records_sha256(path)}
    _write_json(path / METRICS, found)
    return found


def records_sha256(path: Path) -> str:
    """Tells whether metrics.json is of the records as they are now; "" where there are none."""
    try:
        with (path / RECORDS).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def open_run(path: Path) -> Recorder:
    """The run folder to write to, made where it is missing; one evaluation at a time. Errors: UsageError, InputError."""
    return Recorder(path)


class Recorder:
    """Appends to a run folder. `done`: problem of each record that is there, by (case sha256, repeat)."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout

        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / ".lock")
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UsageError(f"{path}: another evaluation writes here", "wait for it, or give another --out") from None
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}", "give another --out") from None
        try:
            self._before = self._open()
        except OSError as error:
            self._lock.release()
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}", "give another --out") from None
        except BaseException:
            self._lock.release()
            raise
        records = [] if self._before is None else read_records(path)
        self.done = {(r["sha256"], r["repeat"]): str(r["problem"]) for r in records}
        self._stream: TextIO | None = None

    def _open(self) -> dict[str, Any] | None:
        if (self.path / RUN).exists():
            (self.path / RECORDS).touch()
            _mend(self.path / RECORDS)
            return read_run(self.path)
        if any(entry.name not in (".lock", f"{RUN}.part") for entry in self.path.iterdir()):
            raise UsageError(f"{self.path}: holds something else than a run", "give an empty or new folder as --out")
        return None

    def begin(self, run: Mapping[str, Any]) -> None:
        """Writes run.json; of a run that is resumed, its start and its cases stay. Errors: UsageError if it was made otherwise."""
        self.run = dict(run)
        if self._before is not None:
            if other := made.differences(self._before, run, made.DECIDING):
                why, hint = made.refusal(other)
                raise UsageError(f"{self.path}: cannot be resumed: {why}", hint)
            cases = {c["id"]: c for c in (*self._before["cases"], *run["cases"])}
            self.run["cases"] = [cases[name] for name in sorted(cases)]
            self.run["started"] = self._before["started"]
            self.run["repeats"] = max(self._before["repeats"], run["repeats"])
        self.run["finished"] = None
        _write_json(self.path / RUN, self.run)
        try:
            self._stream = (self.path / RECORDS).open("a", encoding="ascii")
        except OSError as error:
            raise UsageError(f"{self.path / RECORDS}: {error.strerror or error}", "give another --out") from None

    def append(self, record: Mapping[str, Any]) -> None:
        """At once on disk; after begin. Errors: UsageError."""
        assert self._stream is not None
        try:
            self._stream.write(_line(record))
            self._stream.flush()
        except OSError as error:
            raise UsageError(f"{self.path / RECORDS}: {error.strerror or error}", "what is written is kept") from None

    def finish(self) -> None:
        """Puts the records in order, without those that a later one replaced, and marks the run as finished."""
        self._close()
        write_text(self.path / RECORDS, (_line(record) for record in read_records(self.path)))
        self.run["finished"] = now()
        _write_json(self.path / RUN, self.run)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self._lock.release()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", _FOLDER) from None
    lines.pop()  # what stands behind the last newline is nothing, or was cut
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            wrong = shapes.of_record(found)
        except (ValueError, RecursionError) as error:
            wrong = str(error)
        if wrong:
            raise InputError(f"{path}:{number}: is no record: {wrong}")
        yield found


def _mend(path: Path) -> None:
    """Cuts off a last line that was not written to its end."""
    whole = path.read_bytes()
    if whole and not whole.endswith(b"\n"):
        os.truncate(path, whole.rfind(b"\n") + 1)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", _FOLDER) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no JSON: {error}") from None


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_text(path, [json.dumps(value, indent=1) + "\n"])


def write_text(path: Path, pieces: Iterable[str]) -> None:
    """All or nothing: a reader or an interruption never sees half a file."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as stream:
            stream.writelines(pieces)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise UsageError(
            f"{path}: cannot be written: {error.strerror or error}", "is the disk full, or the folder read-only?"
        ) from None
