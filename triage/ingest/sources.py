"""Which inputs there are: files, folders, stdin. What cannot be read is said in words.

A name is the path as the user gave it, so that a cited line can be opened as it stands; `-` is stdin.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from triage.domain import FileKind
from triage.errors import InputError
from triage.ingest import kinds, links, streams
from triage.ingest.streams import Input, chunks, reason
from triage.text import printable

__all__ = ["Input", "chunks", "discover", "natural"]

_NOT_LOGS = frozenset(
    (
        ".py", ".pyc", ".pyi", ".ipynb", ".sh", ".bash", ".slurm", ".sbatch", ".c", ".cc", ".cpp", ".cu", ".h",
        ".hpp", ".rs", ".go", ".js", ".md", ".rst", ".tex", ".pdf", ".html", ".css", ".pt", ".pth", ".bin", ".ckpt",
        ".safetensors", ".npy", ".npz", ".h5", ".hdf5", ".onnx", ".pkl", ".parquet", ".arrow", ".feather", ".idx",
        ".so", ".o", ".a", ".whl", ".tar", ".tgz", ".zip", ".7z", ".rar", ".png", ".jpg", ".jpeg", ".gif", ".svg",
        ".mp4", ".wav", ".flac", ".model", ".distcp", ".tfrecord", ".tfrecords", ".lock", ".pid", ".sqlite", ".db",
        ".nsys-rep", ".qdrep", ".patch", ".diff",
    )
)  # fmt: skip
_NOT_LOG_NAMES = frozenset(("LICENSE", "NOTICE", "Makefile", "Dockerfile", "README", "requirements.txt"))
_WRITE_UPS = frozenset((".md", ".rst"))
_NO_LOG = "no log by its name, left out; name it to have it read"
_CONFIG = frozenset((".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".env"))
_ERROR_FILES = frozenset(("error.json", "torchelastic_error.json"))  # what @record writes of a failed rank
_COMPRESSED = frozenset((".gz", ".xz", ".bz2", ".zst", ".zstd", ".lzma"))


def discover(paths: Sequence[str]) -> tuple[tuple[Input, ...], tuple[str, ...]]:
    """The readable inputs in the order given (folders in natural order), and in words what was left out.

    Errors: InputError when nothing at all can be read.
    """
    notes = _Notes()
    found: dict[tuple[int, int] | str, Input] = {}
    for given in paths or ("-",):
        for item in _expand(given, notes):
            key: tuple[int, int] | str = "-" if item.path is None else _identity(item.path)
            found.setdefault(key, item)
    if not found:
        raise InputError(notes.nothing(paths), "give a log file, a folder that holds some, or - for stdin")
    return tuple(found.values()), notes.all()


def natural(name: str) -> list[tuple[int, int | str]]:
    """A sort key under which rank_2 stands before rank_10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"([0-9]{1,18})", name) if part]


class _Notes:
    """What was left out: one line a file for what the user named or what went wrong, one line a kind for the rest."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._skipped: dict[str, list[str]] = {}

    def add(self, name: str, why: str) -> None:
        self._lines.append(f"{name}: {why}")

    def skip(self, name: str, why: str) -> None:
        self._skipped.setdefault(why, []).append(name)

    def all(self) -> tuple[str, ...]:
        return (*self._lines, *(_listed(names) + ": " + why for why, names in self._skipped.items()))

    def nothing(self, paths: Sequence[str]) -> str:
        reasons = self.all()
        more = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""
        return "nothing to read: " + ("; ".join(reasons[:3]) + more if reasons else ", ".join(paths))


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


def _expand(given: str, notes: _Notes) -> Iterator[Input]:
    if given in ("-", "/dev/stdin"):
        yield Input("-", None, 0)
        return
    if not given.strip():
        notes.add(repr(given), "an empty name; is a variable of your script unset?")
        return
    path = Path(given)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        notes.add(given, reason(error))
        return
    if stat.S_ISDIR(mode):
        before = len(notes.all())
        empty = True
        for item in _walk(path, notes):
            empty = False
            yield item
        if empty and len(notes.all()) == before:
            notes.add(given, "the folder is empty")
    elif stat.S_ISREG(mode) or _is_substitution(given, mode):
        yield from _named(path, shown(path), notes)
    else:
        notes.add(given, f"is a {_sort_of_file(mode)}, not a file; pipe it in and give -")


def _is_substitution(given: str, mode: int) -> bool:
    return stat.S_ISFIFO(mode) and bool(re.fullmatch(r"/(?:dev|proc/(?:self|\d+))/fd/\d+", given))


def _named(path: Path, name: str, notes: _Notes) -> Iterator[Input]:
    """A file that the user named: whatever its ending, it is read if it is text."""
    if path.is_fifo():
        yield Input(name, path, 0)
        return
    sample = _sample(path, name, notes)
    if sample is None:
        return
    kind = kinds.classify(name, sample)
    # An empty log is an answer of its own: the job wrote nothing before it ended.
    if kind == "empty" or not _no_text(kind, sample, name, notes):
        status = path.stat()
        yield Input(name, path, status.st_size, kind, _modified(status))


def _walk(folder: Path, notes: _Notes) -> Iterator[Input]:
    seen: set[tuple[int, int]] = set()
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            identity = _identity(current)
            entries = sorted(os.scandir(current), key=lambda e: (_is_dir(e), natural(e.name)))
        except OSError as error:
            notes.add(shown(current), reason(error))
            continue
        if identity in seen:  # a symbolic link back up
            continue
        seen.add(identity)
        folders = []
        for entry in entries:
            path = current / entry.name
            if why := "hidden, left out" if entry.name.startswith(".") else links.why_not(path, folder):
                notes.skip(shown(path), why)
                continue
            if links.leads_out(path, folder):
                notes.skip(shown(path), "a link that leads out of the folder")
            if _is_dir(entry):
                folders.append(path)
            else:
                yield from _in_folder(path, notes)
        pending.extend(reversed(folders))


def _in_folder(path: Path, notes: _Notes) -> Iterator[Input]:
    name = shown(path)
    try:
        status = path.stat()
    except OSError as error:
        notes.add(name, reason(error))
        return
    if not stat.S_ISREG(status.st_mode):
        notes.skip(name, f"{_sort_of_file(status.st_mode)}, left out")
        return
    suffix = _suffix(path)
    other = suffix in _NOT_LOGS or path.name in _NOT_LOG_NAMES
    if other and suffix not in _WRITE_UPS:
        notes.skip(name, _NO_LOG)
        return
    sample = _sample(path, name, notes)
    if sample is None:
        return
    if other and not kinds.quotes_stacks(sample):
        notes.skip(name, _NO_LOG)
        return
    kind = kinds.classify(name, sample)
    if _no_text(kind, sample, name, notes):
        return
    if suffix in _CONFIG and kind == "job" and not kinds.is_json_lines(sample) and path.name not in _ERROR_FILES:
        notes.skip(name, "settings rather than a log, left out; name it to have it read")
        return
    yield Input(name, path, status.st_size, kind, _modified(status))


def _suffix(path: Path) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _sample(path: Path, name: str, notes: _Notes) -> bytes | None:
    """The start of the content; None when the file cannot be read."""
    problems: list[str] = []
    sample = streams.sample(Input(name, path, 0), problems)
    if problems and not sample:
        notes.add(name, problems[0])
        return None
    return sample


def _no_text(kind: FileKind, sample: bytes, name: str, notes: _Notes) -> bool:
    if kinds.is_archive(sample):
        notes.skip(name, "an archive; unpack it and give the folder")
    elif kind == "empty":
        notes.skip(name, "empty")
    elif kind == "binary":
        notes.skip(name, "binary, not a log")
    else:
        return False
    return True


def shown(path: Path) -> str:
    """The name as the user knows it, fit for a terminal and for JSON whatever bytes the file system holds."""
    return printable(os.fsencode(path).decode("utf-8", "replace"))


def _modified(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


_SORTS = ((stat.S_ISFIFO, "named pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))


def _sort_of_file(mode: int) -> str:
    return next((words for test, words in _SORTS if test(mode)), "special file")
