"""The input files of a case: readable, inside its folder wherever links lead, and none that holds the labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from triage.evaluation.schema import Check

FILE = "case.yaml"  # holds the labels


def check(folder: Path, doc: Check) -> tuple[str, ...]:
    """The names under `inputs`; what is wrong with them goes to the problems of the document."""
    names = doc.texts("inputs", required=True) or ()
    for name in names:
        if why := _wrong_name(folder, name):
            doc.wrong("inputs", why)
    if not names and not doc.problems.found:
        doc.wrong("inputs", "is empty")
    if not doc.problems.found:
        there = list(files(folder, names))
        for why in filter(None, (_wrong_file(folder, name, path) for name, path in there)):
            doc.wrong("inputs", why)
        if not there:
            doc.wrong("inputs", "hold no file")
    return names


def files(folder: Path, inputs: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Name relative to the case folder, and where the file lies. What is no regular file is left out."""
    seen: set[str] = set()
    for name in inputs:
        start = folder / name
        for path in sorted(p for p in start.rglob("*") if p.is_file()) if start.is_dir() else [start]:
            relative = path.relative_to(folder).as_posix()
            if relative != FILE and relative not in seen:
                seen.add(relative)
                yield relative, path


def _wrong_name(folder: Path, name: str) -> str:
    path, place = PurePosixPath(name), folder / name
    if path.is_absolute() or ".." in path.parts:
        return f"{name!r} must lie inside the case folder"
    if str(path) == FILE:
        return f"{FILE} holds the labels and cannot be an input"
    try:
        if place.is_file() or place.is_dir():
            return ""
        return f"{name!r} is {'neither file nor folder' if place.exists() else 'not in the case folder'}"
    except (OSError, ValueError) as error:  # a name too long, or with a NUL in it
        return f"{name[:60]!r} cannot be looked up: {getattr(error, 'strerror', None) or error}"


def _wrong_file(folder: Path, name: str, path: Path) -> str:
    """A link or a copy would show the labels to the diagnosis, or show it files that are not of the case."""
    labels = folder / FILE
    if not path.resolve().is_relative_to(folder.resolve()):
        return f"{name!r} leads out of the case folder"
    if path.name == FILE:
        return f"{name!r} is called as a file of labels is"
    same_size = path.stat().st_size == labels.stat().st_size
    if path.samefile(labels) or (same_size and path.read_bytes() == labels.read_bytes()):
        return f"{name!r} is {FILE} under another name"
    return ""
