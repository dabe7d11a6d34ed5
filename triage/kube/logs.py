"""Logs of containers as files: streamed, without secrets, and within bounds, of which the beginning and the end are kept."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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
_NANO = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\d{0,6}(Z|[+-]\d\d:\d\d) ")
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
        return f"{self.pod.name}_{self.container.name}{'.previous' if self.previous else ''}.log"


@dataclass(frozen=True, slots=True)
class Fetched:
    """path: None where there is none to read; note: what to say of it, "" for nothing; lines: without those left out."""

    look: Look
    path: Path | None = None
    note: str = ""


def fetch(cluster: Cluster, looks: Sequence[Look], place: Path, tell: Tell) -> list[Fetched]:
    """The logs, several at a time, in the order they are asked for. What is there already stays where the server has none now."""
    most = min(MOST_BYTES, max(_LEAST, ALL_BYTES // max(1, len(looks))))
    stamped = len({(look.pod.name, look.container.name) for look in looks}) > 1  # puts lines of several in one order
    done: dict[int, Fetched] = {}
    with ThreadPoolExecutor(_AT_ONCE, "logs") as pool:
        begun = {pool.submit(_fetch, cluster, look, place, most, stamped): n for n, look in enumerate(looks)}
        try:
            for at, future in enumerate(as_completed(begun), 1):
                done[begun[future]] = future.result()
                tell(f"reading logs of pods ({at}/{len(looks)})")
        finally:
            pool.shutdown(cancel_futures=True)
    return [done[n] for n in range(len(looks))]


def _fetch(cluster: Cluster, look: Look, place: Path, most: int, stamped: bool) -> Fetched:
    path = place / look.name
    part = path.with_name(f"{path.name}.part")
    which = " of its run before" if look.previous else ""
    whose = f"{look.pod.name}/{look.container.name}"
    try:
        with cluster.log(look.pod.namespace, look.pod.name, look.container.name, look.previous, stamped) as pieces:
            left_out, broke = _write(pieces, part, most)
    except Refused as error:
        part.unlink(missing_ok=True)
        kept = path if path.is_file() else None
        again = "; what was read of it before is used" if kept else ""
        return Fetched(look, kept, f"the log of {whose}{which} was not read: {error.words}{again}")
    if part.stat().st_size < 1000 and (gone := _GONE.fullmatch(part.read_bytes())):
        part.unlink()
        return Fetched(
            look, None, f"the log of {whose}{which} is gone from its node: {gone[0].decode('utf-8', 'replace').strip()}"
        )
    part.replace(path)
    notes = [
        f"{how_many(left_out, 'byte')} in the middle of the log of {whose}{which} were left out" if left_out else "",
        f"the log of {whose}{which} broke off: {broke}" if broke else "",
    ]
    return Fetched(look, path, "; ".join(filter(None, notes)))


def _write(pieces: Iterable[bytes], path: Path, most: int) -> tuple[int, str]:
    """(bytes left out, why it broke off or ""); what came before stands. Errors: Refused if nothing had come."""
    kept = _Bounded(path, most)
    broke = ""
    try:
        for line in _clean(pieces):
            kept.add(line)
    except Refused as error:
        if not kept.size:
            raise
        broke = error.words
    finally:
        kept.close()
    return kept.left_out, broke


def _clean(pieces: Iterable[bytes]) -> Iterator[bytes]:
    secrets = LineRedactor()
    for number, line in enumerate(_lines(pieces), 1):
        shorter = _NANO.sub(rb"\1\2 ", line, count=1) if line[:4].isdigit() else line
        coding = _coding(shorter)
        yield secrets.redact(shorter.decode(coding), number).encode(coding) + b"\n"


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


class _Bounded:
    """A file of at most `most` bytes and a half: its beginning, and the last lines in two parts that take turns."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._part = most // 3
        self._tails: list[Path] = []
        self._within = 0
        self.size = 0
        self.left_out = 0

    def add(self, line: bytes) -> None:
        if self._within + len(line) > self._part and self._within:
            self._turn()
        self._file.write(line)
        self._within += len(line)
        self.size += len(line)

    def _turn(self) -> None:
        self._file.close()
        if len(self._tails) == 2:
            self.left_out += self._tails[0].stat().st_size
            self._tails.pop(0).unlink()
        following = self._path.with_name(f"{self._path.name}.{self.size}")
        self._tails.append(following)
        self._file, self._within = following.open("wb"), 0

    def close(self) -> None:
        self._file.close()
        with contextlib.suppress(FileNotFoundError), self._path.open("ab") as whole:
            if self.left_out:
                whole.write(f"[triage: {self.left_out} bytes left out]\n".encode())
            for tail in self._tails:
                with tail.open("rb") as part:
                    while block := part.read(1 << 20):
                        whole.write(block)
                tail.unlink()
