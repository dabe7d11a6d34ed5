"""Reads a folder of checkpoints without loading any: names, sizes, the directory of an archive, the head of a file."""

from __future__ import annotations

import io
import itertools
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from triage.errors import InputError
from triage.recover.checkpoints.tree import FileAt

MOST_FILES = 500_000
MOST_DEPTH = 8
MOST_TEXT = 64 << 20
MOST_PICKLE = 256 << 20
_SKIPPED = frozenset({".git", "__pycache__", "node_modules", "wandb"})


class Disk:
    """A folder and the files below it, or one file; names begin with the folder's own, which may be a checkpoint's. Errors: InputError."""

    def __init__(self, folder: Path) -> None:
        self._above = folder.resolve().parent
        if not folder.is_dir() and not folder.is_file():
            raise InputError(
                f"{folder} is no folder and no file", "name the folder that the job saves to, or one checkpoint"
            )
        self._root = folder.resolve()
        self._seen: set[tuple[int, int]] = set()

    def files(self) -> list[FileAt]:
        """Errors: InputError where the folder cannot be read, or holds too much to be one of checkpoints."""
        if self._root.is_file():
            status = self._root.stat()
            return [FileAt(self._root.name, status.st_size, status.st_mtime)]
        found = list(itertools.islice(self._walk(self._root, 0), MOST_FILES + 1))
        if len(found) > MOST_FILES:
            raise InputError(
                f"{self._root} holds more than {MOST_FILES:,} files", "name the folder of the checkpoints itself"
            )
        return found

    def _walk(self, folder: Path, depth: int) -> Iterator[FileAt]:
        try:
            known = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            if depth:
                return  # what it holds is missed by name
            raise InputError(f"{folder}: {error.strerror}", "it must be readable") from None
        if (known.st_dev, known.st_ino) in self._seen:
            return  # a link that leads back
        self._seen.add((known.st_dev, known.st_ino))
        for entry in entries:
            try:
                if entry.is_dir() and entry.name not in _SKIPPED and depth < MOST_DEPTH:
                    yield from self._walk(Path(entry.path), depth + 1)
                elif entry.is_file():
                    status = entry.stat()
                    name = Path(entry.path).relative_to(self._above).as_posix()
                    yield FileAt(name, status.st_size, status.st_mtime)
            except OSError:  # a save moves its files while we look
                continue

    def path(self, name: str) -> Path:
        return self._above / name

    def text(self, name: str) -> str:
        try:
            with self.path(name).open("rb") as file:
                return file.read(MOST_TEXT).decode("utf-8", "replace")
        except OSError:
            return ""

    def cut(self, name: str) -> str:
        path = self.path(name)
        try:
            with path.open("rb") as file:
                head = file.read(16)
                if name.endswith(".safetensors"):
                    return _safetensors(file, head, path.stat().st_size)
                if head[:2] == b"PK":
                    with zipfile.ZipFile(file):
                        return ""
                return "holds zeros where it should begin" if head and not any(head) else ""
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
            return "cut: the directory at the end of the archive is not there"
        except OSError as error:
            return f"cannot be read: {error.strerror}"

    def parts(self, name: str) -> Mapping[str, int] | None:
        try:
            with self.path(name).open("rb") as file:
                told = getattr(_plain(file.read(MOST_PICKLE)), "state", {}).get("storage_data")
        except (OSError, AttributeError):
            return None
        needed: dict[str, int] = {}
        for info in told.values() if isinstance(told, dict) else ():
            state = getattr(info, "state", {})
            place, at, size = (state.get(key) for key in ("relative_path", "offset", "length"))
            if isinstance(place, str) and isinstance(at, int) and isinstance(size, int):
                needed[place] = max(needed.get(place, 0), at + size)
        return needed or None

    def number(self, name: str, key: str) -> int | None:
        try:
            with zipfile.ZipFile(self.path(name)) as archive:
                entry = next((i for i in archive.infolist() if i.filename.endswith("/data.pkl")), None)
                if entry is None or entry.file_size > MOST_TEXT:
                    return None
                told = _plain(archive.read(entry))
        except (OSError, zipfile.BadZipFile, RuntimeError, EOFError, ValueError, zlib.error):
            return None
        value = told.get(key) if isinstance(told, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _safetensors(file: io.BufferedReader, head: bytes, size: int) -> str:
    """Its head is 8 bytes of length, then JSON that says where each tensor ends."""
    length = int.from_bytes(head[:8], "little")
    if len(head) < 8 or 8 + length > size or length > MOST_TEXT:
        return "cut: shorter than its own head"
    file.seek(8)
    try:
        told = json.loads(file.read(length))
        end = max((int(value["data_offsets"][1]) for key, value in told.items() if key != "__metadata__"), default=0)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError):
        return "its head cannot be read"
    return "cut: shorter than its head says" if 8 + length + end > size else ""


class _Inert(dict):  # type: ignore[type-arg]
    """Stands for whatever class a pickle names: it keeps what it is given and does nothing."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, *_args: object, **_named: object) -> None:
        super().__init__()
        self.state: dict[str, Any] = {}

    def __eq__(self, other: object) -> bool:
        return self is other

    def __setstate__(self, state: object) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        self.state = {key: value for part in parts if isinstance(part, dict) for key, value in part.items()}

    def append(self, _item: object) -> None:
        pass

    def extend(self, _items: object) -> None:
        pass


class _Plain(pickle.Unpickler):
    """Looks up no class and calls nothing: names of any kind give inert things, tensors give nothing."""

    def find_class(self, _module: str, _name: str) -> type[_Inert]:
        return _Inert

    def persistent_load(self, _pid: object) -> None:
        return None


def _plain(raw: bytes) -> Any:
    try:
        return _Plain(io.BytesIO(raw)).load()
    except Exception:  # noqa: BLE001 - a damaged pickle raises nearly anything; it tells nothing then
        return None
