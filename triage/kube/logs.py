"""Logs of containers as files: streamed, without secrets, and within bounds, of which the beginning and the end are kept."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from triage.domain import Stamps
from triage.kube.client import Cluster, Refused
from triage.kube.values import Container, Pod
from triage.redact import LineRedactor
from triage.text import how_many

MOST_BYTES = 64 << 20  # of one log
ALL_BYTES = 2 << 30  # of all logs of a job
_LEAST = 1 << 20
_AT_ONCE = 8
_LONGEST = 1 << 20  # a line without an end is cut here
# What kubelets answer, with 200, where the file is gone from the node.
_GONE = re.compile(
    rb"(?:unable to retrieve container logs for |failed to try resolving symlinks in path )[^\n]{0,500}\n?"
)
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d) ")
_ODD = re.compile(r"[^\w.-]")  # in names that a server gives, and none that it may give
_APART = 0.01  # seconds by which the times of lines differ, to be kept apart
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Look:
    """A log to fetch. previous: of the container's run before the one that is there now."""

    pod: Pod
    container: Container
    previous: bool = False

    @property
    def name(self) -> str:
        """Of its file."""
        name = f"{self.pod.name}_{self.container.name}{'.previous' if self.previous else ''}.log"
        return _ODD.sub("_", name)


@dataclass(frozen=True, slots=True)
class Fetched:
    """path: None where there is none to read; note: what to say of it, "" for nothing; stamps: when its lines were written."""

    look: Look
    path: Path | None = None
    note: str = ""
    stamps: Stamps | None = None


def fetch(cluster: Cluster, looks: Sequence[Look], place: Path, tell: Tell) -> list[Fetched]:
    """The logs, several at a time, in the order they are asked for. What is there already stays where the server has none now."""
    most = min(MOST_BYTES, max(_LEAST, ALL_BYTES // max(1, len(looks))))
    done: dict[int, Fetched] = {}
    with ThreadPoolExecutor(_AT_ONCE, "logs") as pool:
        begun = {pool.submit(_fetch, cluster, look, place, most): n for n, look in enumerate(looks)}
        try:
            for at, future in enumerate(as_completed(begun), 1):
                done[begun[future]] = future.result()
                tell(f"reading logs of pods ({at}/{len(looks)})")
        finally:
            pool.shutdown(cancel_futures=True)
    return [done[n] for n in range(len(looks))]


def _fetch(cluster: Cluster, look: Look, place: Path, most: int) -> Fetched:
    path = place / look.name
    part = path.with_name(f"{path.name}.part")
    which = " of its run before" if look.previous else ""
    whose = f"{look.pod.name}/{look.container.name}"
    try:
        with cluster.log(look.pod.namespace, look.pod.name, look.container.name, look.previous) as pieces:
            written, broke = _write(pieces, part, most)
    except (Refused, OSError) as error:
        for file in place.glob(f"{part.name}*"):  # of a long one there are several
            with suppress(OSError):
                file.unlink()
        kept = path if path.is_file() else None
        again = "; what was read of it before is used" if kept else ""
        why = error.words if isinstance(error, Refused) else f"it cannot be written: {error.strerror}"
        return Fetched(look, kept, f"the log of {whose}{which} was not read: {why}{again}")
    if part.stat().st_size < 1000 and (gone := _GONE.fullmatch(part.read_bytes())):
        part.unlink()
        return Fetched(
            look, None, f"the log of {whose}{which} is gone from its node: {gone[0].decode('utf-8', 'replace').strip()}"
        )
    part.replace(path)
    notes = [
        f"{how_many(left_out, 'byte')} in the middle of the log of {whose}{which} were left out"
        if (left_out := written.left_out)
        else "",
        f"the log of {whose}{which} broke off: {broke}" if broke else "",
    ]
    return Fetched(look, path, "; ".join(filter(None, notes)), written.stamps)


def _write(pieces: Iterable[bytes], path: Path, most: int) -> tuple[_Bounded, str]:
    """What was kept, and why it broke off or ""; what came before stands. Errors: Refused if nothing had come."""
    kept = _Bounded(path, most)
    broke = ""
    secrets = LineRedactor()
    try:
        for number, line in enumerate(_lines(pieces), 1):
            at, own = _split(line)
            coding = _coding(own)
            kept.add(secrets.redact(own.decode(coding), number).encode(coding) + b"\n", at)
    except Refused as error:
        if not kept.size:
            raise
        broke = error.words
    finally:
        kept.close()
    return kept, broke


def _split(line: bytes) -> tuple[float | None, bytes]:
    """(when it was written, in seconds since 1970, and the line without that)."""
    stamp = _STAMP.match(line)
    if stamp is None:
        return None, line
    try:
        whole = datetime.fromisoformat((stamp[1] + stamp[3]).decode())
    except ValueError:
        return None, line
    return whole.timestamp() + float(b"0" + (stamp[2] or b"")), line[stamp.end() :]


def _coding(line: bytes) -> str:
    """One that keeps all bytes of it."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > _LONGEST:
            yield rest
            rest = b""
    if rest:
        yield rest


class _Part:
    """Lines in a row in a file of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("wb")
        self.size = self.lines = 0
        self.stamps = Stamps()

    def add(self, line: bytes, at: float | None) -> None:
        self.file.write(line)
        self.size += len(line)
        self.lines += 1
        if at is not None and (not self.stamps.times or abs(at - self.stamps.times[-1]) >= _APART):
            self.stamps.lines.append(self.lines)
            self.stamps.times.append(at)


class _Bounded:
    """A file of at most `most` bytes: its beginning, and the last lines in two parts that take turns.

    left_out: bytes between them; stamps: when the lines were written, by their number in the file.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._most = most // 3
        self._parts = [_Part(path)]
        self.size = self.left_out = 0
        self.stamps = Stamps()

    def add(self, line: bytes, at: float | None) -> None:
        if self._parts[-1].size + len(line) > self._most and self._parts[-1].size:
            self._turn()
        self._parts[-1].add(line, at)
        self.size += len(line)

    def _turn(self) -> None:
        self._parts[-1].file.close()
        if len(self._parts) == 3:
            dropped = self._parts.pop(1)
            self.left_out += dropped.size
            dropped.path.unlink()
        first = self._parts[0].path
        self._parts.append(_Part(first.with_name(f"{first.name}.{self.size}")))

    def close(self) -> None:
        """The parts become one file."""
        first, *tails = self._parts
        self._parts[-1].file.close()
        self._count(first, 0)
        before = first.lines
        with first.path.open("ab") as whole:
            if self.left_out:
                whole.write(f"[triage: {self.left_out} bytes left out]\n".encode())
                before += 1
            for tail in tails:
                with tail.path.open("rb") as part:
                    shutil.copyfileobj(part, whole)
                tail.path.unlink()
                self._count(tail, before)
                before += tail.lines

    def _count(self, part: _Part, before: int) -> None:
        self.stamps.lines.extend(number + before for number in part.stamps.lines)
        self.stamps.times.extend(part.stamps.times)
