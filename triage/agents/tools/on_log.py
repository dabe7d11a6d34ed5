"""Tools that look into the job's own log: lines around a place, a search, ranks beside each other, a window of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

from triage.agents.tools.kit import Found, Tool, ToolError, spec
from triage.domain import Diagnosis, JobLog, LogFile, LogLine, Moment, RawLine
from triage.errors import InputError, KnowledgeError
from triage.evidence.known import known_ranks
from triage.ingest.lines import LineParser
from triage.regex import compile_pattern
from triage.text import how_many, rank_ranges

MOST_LINES = 60
MOST_HITS = 40
MOST_RANKS = 32
MOST_PATTERN = 300
SEARCH_SECONDS = 5.0
_BEFORE = 130  # lines read before those wanted: a private key that began there is known as one
_AROUND = 10

_TEXT, _NUMBER = "string", "integer"
SPECS = (
    spec(
        "read_lines",
        "Lines of a file around a line, as they stand.",
        file=(_TEXT, "a file of the log", True),
        line=(_NUMBER, "line number", True),
        around=(_NUMBER, f"lines before and after, {_AROUND} if not given, at most {MOST_LINES // 2}", False),
    ),
    spec(
        "search_log",
        "Lines that hold a regular expression (RE2, not case-sensitive). All lines are searched, not only those shown.",
        pattern=(_TEXT, "such as xid|fallen off", True),
        file=(_TEXT, "only this file", False),
    ),
    spec(
        "compare_ranks",
        "What each rank said last; with a pattern, which ranks said something like it and which did not.",
        pattern=(_TEXT, "regular expression", False),
    ),
    spec(
        "timeline",
        "Events in order of time; with file and line, all lines of all files around the time of that line.",
        file=(_TEXT, "a file of the log", False),
        line=(_NUMBER, "line number in it", False),
        seconds=(_NUMBER, "before and after, 60 if not given", False),
    ),
)

RawLines = Callable[[str, int], Iterator[RawLine]]  # the lines of a file from a number on; Errors: InputError


@dataclass(frozen=True, slots=True)
class LogTools:
    """read: reads a file of the job again, for what the scan did not keep."""

    log: JobLog
    rules: Diagnosis
    read: RawLines

    def all(self) -> tuple[Tool, ...]:
        """As in SPECS."""
        return tuple(Tool(known, getattr(self, known.name)) for known in SPECS)

    def read_lines(self, asked: Mapping[str, Any]) -> Found:
        file = self._file(asked["file"])
        around = min(max(asked.get("around", _AROUND), 0), MOST_LINES // 2)
        first, last = max(1, asked["line"] - around), asked["line"] + around
        lines, note = self._between(file, first, last)
        if not lines:
            raise ToolError(f"{file.name} has {file.lines_in} lines, and none kept from {first} to {last}")
        return Found(note, lines)

    def _between(self, file: LogFile, first: int, last: int) -> tuple[list[LogLine], str]:
        try:
            start = max(1, first - _BEFORE)
            raws = list(islice(self.read(file.name, start), last - start + 1))
        except InputError as error:
            kept = (line for line in (*file.earlier, *file.lines) if first <= line.number <= last)
            return list(kept)[:MOST_LINES], f"{error}; of these lines those kept are:"
        return [line for line in _parsed(file, raws) if line.number >= first], ""

    def search_log(self, asked: Mapping[str, Any]) -> Found:
        pattern = _compiled(asked["pattern"])
        files = [self._file(asked["file"])] if "file" in asked else list(self.log.files)
        ends = time.monotonic() + SEARCH_SECONDS
        found: list[LogLine] = []
        notes: list[str] = []
        for file in files:
            hits, note = self._hits(file, pattern, MOST_HITS + 1 - len(found), ends)
            found += hits
            notes += [f"{file.name}: {note}"] if note else []
            if len(found) > MOST_HITS:
                notes.append(f"the first {MOST_HITS} lines that match; there are more")
                break
        if not found:
            notes.append("no line matches")
        return Found("\n".join(notes), found[:MOST_HITS])

    def _hits(self, file: LogFile, pattern: Any, most: int, ends: float) -> tuple[list[LogLine], str]:
        try:
            return self._hits_on_disk(file, pattern, most, ends)
        except InputError as error:
            kept = (line for line in (*file.earlier, *file.lines) if pattern.search(line.text))
            return list(islice(kept, most)), f"{error}; only the lines that were kept are searched"

    def _hits_on_disk(self, file: LogFile, pattern: Any, most: int, ends: float) -> tuple[list[LogLine], str]:
        """A line counts when it matches without its secrets too, so that a search cannot find one out."""
        parser = _parser(file)
        hits: list[LogLine] = []
        for raw in self.read(file.name, 1):
            matches = pattern.search(raw.raw.decode("utf-8", "replace"))
            if matches or b"PRIVATE KEY" in raw.raw:  # the parser must know where a key began
                line = parser.parse(raw)
                if matches and pattern.search(line.text):
                    hits.append(line)
                    if len(hits) >= most:
                        break
            if raw.number % 1000 == 0 and time.monotonic() > ends:
                return hits, f"searched up to line {raw.number} only"
        return hits, ""

    def compare_ranks(self, asked: Mapping[str, Any]) -> Found:
        pattern = _compiled(asked["pattern"]) if "pattern" in asked else None
        last: dict[int, LogLine] = {}
        for file in self.log.files:
            for line in file.lines:
                if pattern is not None and not pattern.search(line.text):
                    continue
                for rank in _ranks_of(line, file):
                    last[rank] = line
        silent = known_ranks(self.log) - set(last)
        if not last and not silent:
            raise ToolError("no line of the log says of which rank it is")
        what = "say the like" if pattern is not None else "speak"
        text = f"ranks that {what}: {rank_ranges(last) or 'none'}; that do not: {rank_ranges(silent) or 'none'}"
        order = sorted(last.items(), key=lambda item: (item[1].time is None, item[1].time, item[1].number))
        lines = list({(line.file, line.number): line for _, line in order}.values())
        cut = f"; of {how_many(len(lines), 'line')} the {MOST_RANKS} earliest" if len(lines) > MOST_RANKS else ""
        return Found(f"{text}. The last of each, the earliest first{cut}:", lines[:MOST_RANKS])

    def timeline(self, asked: Mapping[str, Any]) -> Found:
        clocks = [note.said for note in self.rules.timeline.clocks]
        if "file" not in asked or "line" not in asked:
            told = [_moment(m) for m in self.rules.timeline.moments]
            return Found("\n".join([*clocks, *told]) or "no line that matters carries a time", names=told)
        file = self._file(asked["file"])
        dated = [line for line in file.lines if line.time is not None]
        if not dated:
            raise ToolError(f"no line of {file.name} carries a time")
        centre = min(dated, key=lambda line: abs(line.number - asked["line"])).time
        assert centre is not None
        span = timedelta(seconds=min(max(asked.get("seconds", 60), 0), 86_400))
        within = [x for f in self.log.files for x in f.lines if x.time is not None and abs(x.time - centre) <= span]
        within.sort(key=lambda line: (line.time, line.file, line.number))
        text = f"from {centre - span:%Y-%m-%d %H:%M:%S} to {centre + span:%H:%M:%S}, of the lines that were kept"
        return Found("\n".join([*clocks, text]), _nearest(within, centre))

    def _file(self, name: str) -> LogFile:
        """By its name, or by a part of it that only one has."""
        fits = [f for f in self.log.files if f.name == name] or [f for f in self.log.files if f.name.endswith(name)]
        if len(fits) != 1 or not name:
            names = ", ".join(f.name for f in self.log.files[:20])
            raise ToolError(f"{'no' if not fits else 'more than one'} file is called {name[:100]!r}; there are {names}")
        return fits[0]


def _parser(file: LogFile) -> LineParser:
    return LineParser(file.name, file.kind, rank=file.rank, node=file.node)


def _parsed(file: LogFile, raws: Sequence[RawLine]) -> list[LogLine]:
    """As they were parsed the first time, where they were kept."""
    kept = {line.number: line for line in (*file.earlier, *file.lines)}
    parser = _parser(file)
    parser.learn(raw.raw for raw in raws)
    fresh = [parser.parse(raw) for raw in raws]
    return [kept.get(line.number, line) for line in fresh]


def _compiled(pattern: str) -> Any:
    """Errors: ToolError."""
    if len(pattern) > MOST_PATTERN:
        raise ToolError(f"the pattern is longer than {MOST_PATTERN} characters")
    try:
        return compile_pattern(f"(?i){pattern}", "search")
    except KnowledgeError as error:
        raise ToolError(str(error)) from None


def _ranks_of(line: LogLine, file: LogFile) -> Iterable[int]:
    if line.ranks:
        return line.ranks
    rank = line.rank if line.rank is not None else file.rank
    return () if rank is None else (rank,)


def _nearest(lines: list[LogLine], centre: Any) -> list[LogLine]:
    """Of more than there is room for, those nearest in time, in order."""
    if len(lines) <= MOST_LINES:
        return lines
    near = sorted(lines, key=lambda line: abs((line.time or centre) - centre))[:MOST_LINES]
    chosen = {(line.file, line.number) for line in near}
    return [line for line in lines if (line.file, line.number) in chosen]


def _moment(moment: Moment) -> str:
    place = f" ({moment.file}:{moment.line})" if moment.file else ""
    return f"{moment.time:%Y-%m-%d %H:%M:%S} {moment.source}: {moment.what}{place}"
