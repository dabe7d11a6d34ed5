"""What a run says of itself, in brief: settings, versions, nodes, and the kinds of line that it prints. Pure.

A kind of line is its plain words: numbers, dates, ranks, hosts, paths and what is quoted do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, get_args

from triage import heads
from triage.domain import JobLog, LogFile, LogLine, Place
from triage.evidence import settings
from triage.evidence.settings import How, Said
from triage.regex import skeleton

MAX_KINDS = 1000  # of a stored profile
MAX_NAMES = 500
MAX_TEXT = 240
_MAX_NODES = 512
_MAX_VALUES = 4  # of one name; what has more is measured, or is of single ranks
_MAX_READ = 30_000  # lines in all, some seconds of work
_READ = 4  # lines of one skeleton that are read
WORDS = 14  # of a kind of line
_LEAST_WORDS = 2
_SCHEMA = 1

_QUOTED = re.compile(r"(?<!\w)'[^']{1,200}'|\"[^\"]{1,200}\"")
_EDGE = "[](){}<>:;,.!?'\"`*-|#"
_WORD = re.compile(r"[A-Za-z][A-Za-z_.:'/-]{0,60}[A-Za-z]")
_CALENDAR = frozenset((
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    "mon", "tue", "wed", "thu", "fri", "sat", "sun", "am", "pm", "utc", "gmt", "cet", "cest", "pst", "est",
))  # fmt: skip
_FRAME = re.compile(r"\s+(?:File \"|\S)|[~^ ]*\^")


@dataclass(frozen=True, slots=True)
class Seen:
    """A kind of line: how often it came, and where first. order: its place among the kinds of the run."""

    kind: str
    count: int
    text: str
    at: Place
    order: int = 0
    serious: int = 0  # 2 an error, 1 a warning, 0 neither
    routine: bool = False
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Value:
    how: How
    value: str
    shown: str
    at: Place


@dataclass(frozen=True, slots=True)
class Profile:
    """said: by name as compared, its distinct values; many: names of more than a few; partial: not all kinds are here."""

    files: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    kinds: Mapping[str, Seen] = field(default_factory=dict)
    said: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    many: frozenset[str] = frozenset()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class GoodRun:
    """A run that went well. words: which one; note: what speaks against it, in words."""

    profile: Profile
    words: str
    note: str = ""


def profile(log: JobLog) -> Profile:
    """Of the last run of each file."""
    builder = _Builder(frozenset(nodes_of(log)))
    for file in log.files:
        builder.take(file)
    nodes = tuple(sorted(builder.nodes))[:_MAX_NODES]
    return Profile(
        tuple(f.name for f in log.files),
        nodes,
        {kind: replace(seen, count=builder.counts[kind]) for kind, seen in builder.kinds.items()},
        {name: tuple(found) for name, found in builder.said.items() if name not in builder.many},
        frozenset(builder.many),
        builder.read > _MAX_READ,
    )


def kind_of(body: str, nodes: Collection[str] = ()) -> str:
    """The plain words of a line without labels and stamps; "" for one that says too little."""
    words: list[str] = []
    for raw in _QUOTED.sub(" ", body[:400]).split():
        token = raw.partition("=")[0].strip(_EDGE)
        if token in nodes or token.count("/") > 1 or not _WORD.fullmatch(token):
            continue
        word = token.lower()
        if word not in _CALENDAR:
            words.append(word)
    return " ".join(words[:WORDS]) if len(words) >= _LEAST_WORDS else ""


def nodes_of(log: JobLog) -> Iterator[str]:
    """The nodes that its lines name as their own, as often as they do."""
    for file in log.files:
        if file.node:
            yield file.node
        yield from (line.node for line in file.lines if line.node)


class _Builder:
    """Reads lines until enough of each skeleton were read; the rest are counted."""

    def __init__(self, nodes: frozenset[str]) -> None:
        self.nodes = nodes
        self.kinds: dict[str, Seen] = {}
        self.counts: Counter[str] = Counter()
        self.said: dict[str, list[Value]] = {}
        self.many: set[str] = set()
        self.read = 0
        self._skeletons: dict[bytes, tuple[int, str]] = {}

    def take(self, file: LogFile) -> None:
        inside = False  # a traceback
        for line in file.lines:
            key = skeleton(line.text.encode("utf-8", "replace"))
            times, kind = self._skeletons.get(key, (0, ""))
            if times < _READ or inside:
                body = heads.split(line.text)[1]
                begins = "Traceback (most recent call last)" in body
                frame = inside and bool(_FRAME.match(body))
                inside = begins or frame
                kind = "" if inside else self._read(line, body)
                self._skeletons[key] = (times + 1, kind)
            elif "Traceback (most" in line.text:
                inside = True
            if kind:
                self.counts[kind] += line.repeats

    def _read(self, line: LogLine, body: str) -> str:
        self.read += 1
        if self.read > _MAX_READ:
            return ""
        told = list(settings.said(body))
        for one in told:
            self._keep(one, line)
        if any(one.how in ("environment", "flag", "config") for one in told):
            return ""
        kind = kind_of(body, self.nodes)
        if kind and kind not in self.kinds:
            self.kinds[kind] = Seen(
                kind,
                0,
                line.text[:MAX_TEXT],
                Place(line.file, line.number),
                len(self.kinds),
                _serious(line),
                line.rule is not None,
                line.time,
            )
        return kind

    def _keep(self, one: Said, line: LogLine) -> None:
        found = self.said.setdefault(one.name, [])
        mine = settings.comparable(one.value, one.how, self.nodes)
        if any(settings.comparable(v.value, v.how, self.nodes) == mine for v in found):
            return
        if len(found) >= _MAX_VALUES or (one.how == "config" and found):
            self.many.add(one.name)
        else:
            found.append(Value(one.how, one.value, one.shown, Place(line.file, line.number)))


def _serious(line: LogLine) -> int:
    return {"error": 2, "fatal": 2, "warning": 1}.get(line.level or "", 0)


# ------------------------------------------------------------------------------------ as it is stored
def to_json(run: Profile) -> dict[str, Any]:
    """A JSON object of bounded size, for `from_json`."""
    return {
        "schema": _SCHEMA,
        "files": list(run.files[:64]),
        "nodes": list(run.nodes),
        "kinds": [
            [s.kind, s.count, s.text, s.at.file, s.at.line, s.serious, s.routine]
            for s in list(run.kinds.values())[:MAX_KINDS]
        ],
        "said": [
            [name, v.how, v.value, v.shown, v.at.file, v.at.line]
            for name, values in list(run.said.items())[:MAX_NAMES]
            for v in values
        ],
        "many": sorted(run.many)[:MAX_NAMES],
        "partial": run.partial or len(run.kinds) > MAX_KINDS,
    }


def from_json(stored: Mapping[str, Any]) -> Profile:
    """Errors: ValueError for what is no profile, or one of another version."""
    if stored.get("schema") != _SCHEMA:
        raise ValueError("a summary of a run that this version does not know")
    said: dict[str, list[Value]] = {}
    for name, how, value, shown, file, line in stored["said"]:
        if how not in get_args(How):
            raise ValueError(f"a setting of kind {how}")
        said.setdefault(name, []).append(Value(how, value, shown, Place(file, line)))
    kinds = {
        kind: Seen(kind, count, text, Place(file, line), order, serious, routine)
        for order, (kind, count, text, file, line, serious, routine) in enumerate(stored["kinds"])
    }
    return Profile(
        tuple(stored["files"]),
        tuple(stored["nodes"]),
        kinds,
        {name: tuple(values) for name, values in said.items()},
        frozenset(stored["many"]),
        bool(stored["partial"]),
    )
