"""What only the files of a job together tell: the year of stamps that name none, ranks and hosts that their names mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from triage.domain import LogFile, LogLine
from triage.ingest import named

_YEAR = timedelta(days=365.25)
_NEAR = timedelta(days=3)  # leap days, and a node's log that goes on
_SAYS_YEAR = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:[-/]\d\d[-/]\d\d|\d{4})(?!\d)|\d\d:\d\d(?: [A-Z]{2,4})? 20\d\d\b|[A-Z][a-z][a-z] +\d{1,2},? +20\d\d\b|\b\d\d?/\d\d?/(?:20)?\d\d\b"
)
_ASKED = 20  # lines of a file that are asked whether their stamps name a year
_GRID = re.compile(r"(?:^|[_.-])(?:worker|rank|task|proc|node)[_.-](\d{1,4})[_.-](\d{1,3})(?:\.\w{1,8})*$")
_SMALLEST_GRID = 4


def together(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """The files of one job, with what they tell of each other."""
    return named.with_hosts(named.of_collected(named.without_false_ranks(_grid(_same_year(files)))))


def _same_year(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """Stamps without a year were dated by when the file was written, which is later for a copy: the job's own lines know."""
    dated = [line.time for f in files if f.kind == "job" and _names_year(f) for line in f.lines if line.time]
    if not dated:
        return tuple(files)
    return tuple(f if _names_year(f) else _shifted(f, min(dated), max(dated)) for f in files)


def _names_year(file: LogFile) -> bool:
    timed = [line for line in file.lines if line.time]
    return any(_SAYS_YEAR.search(line.text[:80]) for line in timed[:_ASKED])


def _shifted(file: LogFile, first: datetime, last: datetime) -> LogFile:
    timed = [line.time for line in file.lines if line.time]
    if not timed or (max(timed) >= first - _NEAR and min(timed) <= last + _NEAR):
        return file
    years = round((max(timed) - last) / _YEAR)
    moved = [_moved(at, years) for at in timed]
    if not years or max(moved) < first - _NEAR or min(moved) > last + _NEAR:
        return file
    return replace(file, lines=tuple(_line_moved(line, years) for line in file.lines))


def _moved(at: datetime, years: int) -> datetime:
    try:
        return at.replace(year=at.year - years)
    except ValueError:  # 29 February
        return at - _YEAR * years


def _line_moved(line: LogLine, years: int) -> LogLine:
    return replace(line, time=_moved(line.time, years)) if line.time else line


def _grid(files: Sequence[LogFile]) -> tuple[LogFile, ...]:
    """worker_0_0 to worker_1_7 are 2 nodes of 8 processes each, and the last is rank 15."""
    places = {f.name: (int(m[1]), int(m[2])) for f in files if (m := _GRID.search(PurePosixPath(f.name).name))}
    width = max((local for _, local in places.values()), default=-1) + 1
    nodes = len({node for node, _ in places.values()})
    if len(places) < _SMALLEST_GRID or nodes < 2 or len(set(places.values())) != nodes * width:
        return tuple(files)
    return tuple(_ranked(f, *places[f.name], width) if f.name in places else f for f in files)


def _ranked(file: LogFile, node: int, local: int, width: int) -> LogFile:
    rank = node * width + local
    said = file.rank  # what the name alone seemed to say
    lines = tuple(replace(line, rank=rank) if line.rank in (said, None) else line for line in file.lines)
    return replace(file, rank=rank, lines=lines)
