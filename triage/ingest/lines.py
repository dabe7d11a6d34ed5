"""A kept line into a LogLine. Pure; the state is that of one file: its last date, task labels, an open key block."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from triage.domain import FileKind, LogLine, RawLine, Stamps, Template
from triage.ingest import facts, prefix
from triage.ingest.text import OVERWRITTEN, cut_middle, readable
from triage.ingest.times import Clock
from triage.redact import LineRedactor

_BAR_END = re.compile(r"\[\d{1,4}:\d\d[^\]]{0,80}(?:/s|/it|/ ?[a-z]{1,12})\]")
_NAMED_TIME = re.compile(r"(?:\bAT |^\s*time +: )(?=20\d\d-)")
_JSON_TIME = re.compile(r'"(time_ms|ts|time|timestamp|@timestamp|asctime|datetime|created)": ?"?([^",}]{8,40})')
_DATED = re.compile(
    rb"(?:19|20)\d\d-\d\d-\d\d[T _]\d\d:\d\d:\d\d"
    rb"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d 20\d\d"
)
_LABELLED = re.compile(rb" {0,6}(\d{1,6}):(?: |$)")
_HOST_LABELLED = re.compile(rb"[A-Za-z][A-Za-z_.-]{0,40}\d[\w.-]{0,40}: ")
_PROGRAM: dict[str, str] = {"kernel": "kernel", "slurm": "slurm"}


class LineParser:
    """Parses the kept lines of one file in order of line number.

    file: its name; kind: of the file; reference: its modification time, which dates stamps without a year;
    rank, node: what its name says, for lines that say nothing themselves; stamps: what counts more than the clocks of lines.
    """

    def __init__(
        self,
        file: str,
        kind: FileKind = "job",
        *,
        reference: datetime | None = None,
        rank: int | None = None,
        node: str | None = None,
        stamps: Stamps | None = None,
    ) -> None:
        self.file = file
        self._kind = kind
        self._rank, self._node, self._stamps = rank, node, stamps
        self._clock = Clock(reference)
        self._labelled = self._host_labelled = False
        self.secrets = LineRedactor()

    def learn(self, lines: Iterable[bytes]) -> None:
        """Looks over the lines before the first is parsed: does each carry a task or host label, when did it run."""
        total = hosts = 0
        labels: list[int] = []
        for raw in lines:
            if self._clock.anchor is None and (match := _DATED.search(raw)):
                self._clock.anchor = Clock().read(match[0].decode())[0]
            if raw.strip():
                total += 1
                if match := _LABELLED.match(raw):
                    labels.append(int(match[1]))
                hosts += bool(_HOST_LABELLED.match(raw))
        counted = all(a < b for a, b in pairwise(labels))  # numbered lines, not tasks
        self._labelled = total >= 5 and len(labels) >= 0.5 * total and not counted
        self._host_labelled = total >= 5 and hosts >= 0.9 * total

    def parse(
        self, raw: RawLine, template: Template | None = None, repeats: int = 1, ranks: tuple[int, ...] = ()
    ) -> LogLine:
        """Never raises, whatever the bytes."""
        text = cut_middle(self.secrets.redact(readable(raw.raw), raw.number))
        fields = prefix.Fields()
        at = self._prefixes(text, fields)
        facts.complete(text, at, fields)
        return LogLine(
            file=self.file,
            number=raw.number,
            text=text,
            time=self._stamps.at(raw.number) if self._stamps else fields.time,
            rank=self._rank if fields.rank is None else fields.rank,
            local_rank=fields.local_rank,
            node=fields.node or self._node,
            gpu=fields.gpu,
            level=fields.level,
            program=fields.program or _PROGRAM.get(self._kind),
            template=template.id if template else -1,
            repeats=repeats,
            ranks=ranks,
            rule=template.rule if template else None,
            hot=template.hot if template else False,
        )

    def parse_raw(self, raw: RawLine, hot: bool) -> LogLine:
        """A line without its template."""
        return replace(self.parse(raw), hot=hot)

    def _prefixes(self, text: str, fields: prefix.Fields) -> int:
        at = 0
        if self._labelled:
            at = prefix.label(text, fields)
        elif self._host_labelled:
            at = prefix.host_label(text, fields)
        at = prefix.peel(text, at, fields, self._clock)
        if fields.time is None and ("/s]" in text or "/it]" in text or OVERWRITTEN in text):
            at = self._behind_bar(text, at, fields)
        if fields.time is None:
            fields.time = self._time_within(text, at)
        return at

    def _time_within(self, text: str, at: int) -> datetime | None:
        """A stamp that a word in front of it, or a name in a JSON object, says to be that of the line."""
        if ("AT 20" in text or "time " in text) and (match := _NAMED_TIME.search(text, 0, 300)):
            return self._clock.read(text, match.end())[0]
        if text.startswith(("{", "MLLOG {"), at) and (match := _JSON_TIME.search(text)):
            return self._json_time(match[1], match[2])
        return None

    def _behind_bar(self, text: str, at: int, fields: prefix.Fields) -> int:
        start = text.rfind(OVERWRITTEN) + len(OVERWRITTEN) if OVERWRITTEN in text else 0
        for match in _BAR_END.finditer(text, start, start + 2000):
            start = match.end()
        return prefix.peel(text, start, fields, self._clock) if start > at else at

    def _json_time(self, key: str, value: str) -> datetime | None:
        if key == "time_ms" or value.replace(".", "").isdecimal():
            try:
                number = float(value)
                return self._clock.from_epoch(number / 1000 if number > 1e11 else number)
            except (ValueError, OverflowError, OSError):
                return None
        return self._clock.read(value)[0]
