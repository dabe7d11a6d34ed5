"""Labelled cases from a folder of logs and a CSV that says what each is."""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from triage import kb
from triage.errors import InputError
from triage.evaluation import cases
from triage.evaluation.importers import folder
from triage.evaluation.importers.folder import Draft
from triage.evaluation.schema import unlike

NEEDED = ("file", "failure_type", "outcome")
_RENAMED = {"node": "nodes", "rank": "ranks", "actions": "action", "lines": "evidence", "tag": "tags"}
_LISTS = ("also_accept", "also_outcome", "action", "must_not", "nodes", "ranks", "tags")
_ONE = ("root_cause_class", "split", "source", "license", "why", "gpu_hours", "synthetic")
_IGNORED = ("notes", "comment")  # and whatever begins with "_"
_KNOWN = (*NEEDED, "evidence", *_LISTS, *_ONE)
_RANGE = re.compile(r"(?:(?P<file>.+):)?\s*(?P<first>\d{1,12})\s*(?:-\s*(?P<last>\d{1,12}))?")
_QUOTED = re.compile(r'"[^"]*"')
_TOLD = 20  # bad rows that a message names
Row = Mapping[str, str]


def import_labels(table: Path, logs: Path, out: Path) -> list[Path]:
    """A case folder under `out` for each row of the CSV; their paths, in the order of the rows.

    Columns: file (a log, or a folder of one job's logs, below `logs`), failure_type, outcome; optional evidence ("12-14;30",
    with several files "rank_3.log:12-14"), node(s), rank(s), action, also_accept, also_outcome, must_not, tags (lists with ;),
    root_cause_class, split (dev), gpu_hours, source, license, synthetic, why. An empty cell is not labelled; nodes or
    ranks "-" are labelled as none. `notes`, `comment` and columns that begin with _ are left out.
    Every row is checked before anything is written. Errors: InputError with the line of the table, for each bad row.
    """
    if not logs.is_dir():
        raise InputError(f"{logs}: is no folder", "give the folder that the column file counts from")
    drafts, wrong = [], []
    for line, row in _rows(table):
        try:
            drafts.append(_draft(row, line, table, logs))
        except InputError as error:
            wrong.append(str(error))
    if wrong:
        more = [f"and {len(wrong) - _TOLD} more"] if len(wrong) > _TOLD else []
        raise InputError("\n  ".join([*wrong[:_TOLD], *more]))
    return folder.write_all(drafts, out)


def _rows(table: Path) -> Iterator[tuple[int, Row]]:
    """Rows with the line they end in; cells stripped."""
    try:
        text = table.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"{table}: cannot be read: {reason}", "give a CSV with a header") from None
    if not text.strip():
        raise InputError(f"{table}: is empty", f"begin it with a line of columns: {', '.join(NEEDED)}")
    first = _QUOTED.sub("", text.split("\n", 1)[0])
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        yield from _checked(reader, table)
    except csv.Error as error:
        raise InputError(f"{table}:{reader.line_num}: is no CSV: {error}", "is a quote not closed?") from None


def _checked(reader: csv.DictReader[str], table: Path) -> Iterator[tuple[int, Row]]:
    names = [_column(name, table) for name in reader.fieldnames or ()]
    if lacking := [name for name in NEEDED if name not in names]:
        raise InputError(
            f"{table}: lacks the column{'s' if len(lacking) > 1 else ''} {' and '.join(lacking)}",
            f"needed: {', '.join(NEEDED)}",
        )
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise InputError(f"{table}: the column {twice[0]} stands twice", "keep one")
    reader.fieldnames = names
    found = False
    for raw in reader:
        if None in raw:
            raise InputError(f"{table}:{reader.line_num}: more cells than columns", "quote cells that hold a comma")
        row = {name: (value or "").strip() for name, value in raw.items() if name}
        if any(row.values()):
            found = True
            yield reader.line_num, row
    if not found:
        raise InputError(f"{table}: no rows", "give one row a job")


def _column(name: str, table: Path) -> str:
    """The name of a column as cases call it; "" for one that is left out."""
    plain = name.strip().lower()
    if plain.startswith("_") or plain in _IGNORED or not plain:
        return ""
    plain = _RENAMED.get(plain, plain)
    if plain not in _KNOWN:
        near = difflib.get_close_matches(plain, _KNOWN, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_KNOWN)}; begin it with _ to leave it out"
        raise InputError(f"{table}: unknown column {name.strip()!r}", hint)
    return plain


def _draft(row: Row, line: int, table: Path, logs: Path) -> Draft:
    where = f"{table}:{line}"
    places = _files(row["file"], logs, where)
    names = folder.neutral_names(list(places))
    files = {names[path]: places[path] for path in places}
    expect = _expect(row, where)
    if row.get("evidence"):
        ranges = _evidence(row["evidence"], {str(path): name for path, name in names.items()}, where)
        folder.check_evidence(ranges, files, where)
        expect["evidence"] = [list(r) for r in ranges]
    if row.get("why"):
        expect["why"] = row["why"]
    doc: dict[str, Any] = {
        "source": row.get("source") or f"imported from {table.name}",
        "license": row.get("license", ""),
        "split": _one_of(row.get("split") or "dev", cases.SPLITS, "split", where),
        "synthetic": _one_of(row.get("synthetic") or "no", ("yes", "no", "true", "false"), "synthetic", where) in ("yes", "true"),
        "tags": _several(row, "tags", cases.TAGS, where),
        "expect": expect,
    }  # fmt: skip
    if row.get("gpu_hours"):
        doc["gpu_hours"] = _positive(row["gpu_hours"], where)
    return Draft(files, doc, where)


def _files(name: str, logs: Path, where: str) -> dict[PurePosixPath, Path]:
    """The files that a row means, by their path below `logs` (of a folder: below that folder)."""
    if not name:
        raise InputError(f"{where}: file is empty", "name a log below the folder")
    place = logs / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InputError(f"{where}: file {name!r} lies outside {logs}", "name a log below the folder")
    try:
        if place.is_file():
            return {PurePosixPath(place.name): place}
    except OSError as error:  # a name that no file can have
        raise InputError(f"{where}: file {name[:60]!r} cannot be looked up: {error.strerror}", "") from None
    if not place.is_dir():
        raise InputError(f"{where}: there is no {place}", "name a log below the folder")
    found = sorted(p for p in place.rglob("*") if p.is_file() and not p.name.startswith("."))
    if not found:
        raise InputError(f"{where}: {place} holds no file", "name a log, or a folder of one job's logs")
    return {PurePosixPath(p.relative_to(place).as_posix()): p for p in found}


def _expect(row: Row, where: str) -> dict[str, Any]:
    labels = kb.taxonomy()
    allowed: dict[str, Collection[str]] = {
        "also_accept": labels.types,
        "must_not": labels.types,
        "also_outcome": labels.outcomes,
        "action": labels.actions,
    }
    found: dict[str, Any] = {
        "outcome": _one_of(row["outcome"], labels.outcomes, "outcome", where),
        "failure_type": _one_of(row["failure_type"], labels.types, "failure_type", where),
    }
    if row.get("root_cause_class"):
        found["root_cause_class"] = _one_of(
            row["root_cause_class"], labels.root_cause_classes, "root_cause_class", where
        )
    for name, values in allowed.items():
        if row.get(name):
            found[name] = _several(row, name, values, where)
    if row.get("nodes"):
        found["nodes"] = [] if row["nodes"] == "-" else _split(row["nodes"])
    if row.get("ranks"):
        found["ranks"] = [] if row["ranks"] == "-" else [_rank(x, where) for x in _split(row["ranks"])]
    return found


def _evidence(text: str, names: Mapping[str, str], where: str) -> list[tuple[str, int, int]]:
    """Ranges with the file's name in the case."""
    found = []
    for part in _split(text):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise InputError(f"{where}: evidence {part!r} is no range of lines", "write 12-14 or 30, several with ;")
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if not 1 <= first <= last:
            raise InputError(f"{where}: evidence {part!r} is no range of lines", "lines count from 1, the first before the last")  # fmt: skip
        found.append((_which(match["file"], names, where), first, last))
    return found


def _which(file: str | None, names: Mapping[str, str], where: str) -> str:
    if file is None:
        if len(names) > 1:
            raise InputError(f"{where}: evidence does not say in which file", "write rank_3.log:12-14")
        return next(iter(names.values()))
    hits = [name for own, name in names.items() if own == file or own.endswith(f"/{file}")]
    if len(hits) != 1:
        raise InputError(f"{where}: evidence names {file!r}, which is {'no file' if not hits else 'not one file'} of this job", "")  # fmt: skip
    return hits[0]


def _several(row: Row, name: str, allowed: Collection[str], where: str) -> list[str]:
    return [_one_of(value, allowed, name, where) for value in _split(row.get(name, ""))]


def _one_of(value: str, allowed: Collection[str], name: str, where: str) -> str:
    if value in allowed:
        return value
    raise InputError(f"{where}: {name}: {unlike(value, allowed)}" if value else f"{where}: {name} is empty")


def _split(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[;|]", text) if part.strip()]


def _rank(value: str, where: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise InputError(f"{where}: rank {value!r} is no whole number", "write 3, several with ;")
    return int(value)


def _positive(value: str, where: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise InputError(f"{where}: gpu_hours {value!r} is no number that is not negative", "write 12.5")
    return found
