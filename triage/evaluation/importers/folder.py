"""Writes a case folder under neutral names: nothing in it tells the answer but case.yaml."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from triage.errors import InputError
from triage.evaluation import cases, inputs, lines, neutral

_PACKED = (".gz", ".xz", ".bz2", ".zst")


@dataclass(frozen=True, slots=True)
class Draft:
    """A case to write. files: name in the case -> where the file lies; doc: case.yaml without id and inputs."""

    files: Mapping[str, Path]
    doc: Mapping[str, Any]
    where: str  # for messages: the row or file it comes from


def write_all(drafts: Sequence[Draft], out: Path) -> list[Path]:
    """Writes the cases; all are checked before the first is written. Their folders, in order.

    The id comes of the files' content: the same log has the same id wherever it is imported. A folder that holds the
    very same case stays as it is.
    Errors: InputError for two drafts of one log, for a folder that has other labels, and for what cannot be written.
    """
    planned: dict[str, tuple[Draft, str]] = {}
    for draft in drafts:
        name = case_id(draft.files)
        if name in planned:
            raise InputError(f"{draft.where}: the same log as {planned[name][0].where}", "label each log once")
        planned[name] = (draft, _yaml(name, draft))
    for name, (draft, text) in planned.items():
        there = out / name / inputs.FILE
        if (out / name).exists() and (not there.is_file() or there.read_text("utf-8") != text):
            raise InputError(
                f"{draft.where}: {out / name} holds this log with other labels", "remove that folder to import it anew"
            )
    return [_write(out, name, draft, text) for name, (draft, text) in planned.items()]


def case_id(files: Mapping[str, Path]) -> str:
    """Digits only, for letters could spell a word."""
    whole = hashlib.sha256()
    for name in sorted(files):
        with files[name].open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest() + name.encode("utf-8", "surrogateescape"))
    return f"c{int(whole.hexdigest(), 16) % 10**15:015}"


def neutral_names(paths: Sequence[PurePosixPath]) -> dict[PurePosixPath, str]:
    """A name in the case for each file: a file alone is job.log; of several, each keeps its path below what all have in
    common, as names tell ranks and nodes, without the words that say something of the answer."""
    if len(paths) == 1:
        return {paths[0]: "job.log" + _packing(paths[0])}
    shared = 0
    while len({p.parts[:-1][: shared + 1] for p in paths}) == 1 and all(len(p.parts) - 1 > shared for p in paths):
        shared += 1
    found: dict[PurePosixPath, str] = {}
    for path in paths:
        *folders, name = path.parts[shared:]
        bare = "/".join([*(_without_telling(part) or "part" for part in folders), _file_name(name)])
        stem, dot, ending = bare.rpartition("/")[2].partition(".")
        at, again = 2, bare
        while again in found.values():
            again, at = "/".join([*bare.split("/")[:-1], f"{stem}_{at}{dot}{ending}"]), at + 1
        found[path] = again
    return found


def check_evidence(ranges: Sequence[tuple[str, int, int]], files: Mapping[str, Path], where: str) -> None:
    """Errors: InputError for a range that its file does not have."""
    sizes: dict[str, int] = {}
    for name, _first, last in ranges:
        if name not in sizes:
            sizes[name] = lines.count(files[name])
        if last > sizes[name]:
            raise InputError(f"{where}: evidence ends in line {last}, the log has {sizes[name]}", "lines count from 1")


def _file_name(name: str) -> str:
    stem, dot, ending = name.partition(".")
    if not stem or _tells(ending) or name == inputs.FILE:
        stem, dot, ending = stem or "part", ".", "log" + _packing(PurePosixPath(name))
    return (_without_telling(stem) or "part") + dot + ending


def _without_telling(part: str) -> str:
    """ "rank_3_oom" -> "rank_3"; "" when nothing is left."""
    if not _tells(part):
        return part
    left = "_".join(word for word in re.split(r"[-_. ]+", part) if word and not _tells(word))
    return "" if _tells(left) else left


def _tells(name: str) -> bool:
    return bool(neutral.warnings("", [name]))


def _packing(path: PurePosixPath) -> str:
    return path.suffix.lower() if path.suffix.lower() in _PACKED else ""


def _yaml(name: str, draft: Draft) -> str:
    inputs = list(dict.fromkeys(PurePosixPath(f).parts[0] for f in draft.files))
    doc = {"schema": cases.SCHEMA, "id": name, **draft.doc}
    expect = doc.pop("expect")
    return yaml.safe_dump({**doc, "inputs": inputs, "expect": expect}, sort_keys=False, allow_unicode=True, width=100)


def _write(out: Path, name: str, draft: Draft, text: str) -> Path:
    final = out / name
    if final.exists():
        return final
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".import-") as tmp:
            place = Path(tmp) / name
            for file, source in draft.files.items():
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, place / file)
            (place / inputs.FILE).write_text(text, "utf-8")
            cases.load_case(place)
            place.rename(final)
    except OSError as error:
        raise InputError(f"{final}: cannot be written: {error.strerror or error}", "give another folder") from None
    return final
