"""The stream of a followed log, event by event: as text, and as one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from triage.domain import Compression, LeftOut, StreamEvent, StreamLine
from triage.report.as_json import compression_json, visible
from triage.report.folded import account_lines, lines_text

_RULES = 8  # named in an account; the rest is summed up


def event_json(event: StreamEvent) -> dict[str, Any]:
    """`file` and one of: `line` and `text`; `left_out`, the number of lines; `turn`."""
    if isinstance(event, StreamLine):
        marks = {name: True for name, value in (("serious", event.serious), ("open", event.open)) if value}
        return {"file": event.file, "line": event.number, "text": event.text, **marks}
    if isinstance(event, LeftOut):
        return {
            "file": event.file,
            "left_out": event.lines,
            "first": event.first,
            "last": event.last,
            "rules": dict(event.rules),
            "repeated": event.repeated,
        }
    return {"file": event.file, "turn": event.turn, "text": event.text}


class StreamText:
    """Renders the events of one stream in order.

    several: whether it is of several files, so that each change of file is told. file: the last one that was told.
    """

    def __init__(self, chosen: str, several: bool, file: str = "") -> None:
        self.file = file
        self._json, self._several = chosen == "json", several

    def events(self, events: Iterable[StreamEvent]) -> str:
        """Whole lines, each ended by a newline."""
        if self._json:
            return "".join(json.dumps(event_json(event), ensure_ascii=False) + "\n" for event in events)
        return "".join(f"{line}\n" for event in events for line in self._lines(event))

    def account(self, account: Compression) -> str:
        found = {**compression_json(account), "novel": account.novel}
        if self._json:
            return json.dumps({"compression": found}, ensure_ascii=False) + "\n"
        del found["cut"]  # there is no budget
        return "\n" + "".join(f"{line}\n" for line in account_lines({"compression": found, "cut": []}))

    def _lines(self, event: StreamEvent) -> Sequence[str]:
        said = [_text(event)]
        if self._several and event.file != self.file:
            said.insert(0, f"== {visible(event.file)}")
        self.file = event.file
        return said


def _text(event: StreamEvent) -> str:
    if isinstance(event, StreamLine):
        return f"{event.number:>9}{'~' if event.open else ' '} {event.text}"
    if isinstance(event, LeftOut):
        return f"{'':>9}  ... {lines_text(event.lines)} up to {event.last}: {_reasons(event)}"
    return f"== {visible(event.file)}: {event.turn}: {event.text}; line numbers start again"


def _reasons(event: LeftOut) -> str:
    rules = sorted(event.rules.items(), key=lambda item: -item[1])
    named = [f"{rule} {lines:,}" for rule, lines in rules[:_RULES]]
    if rest := rules[_RULES:]:
        named.append(f"{len(rest)} other rules {sum(lines for _, lines in rest):,}")
    return ", ".join(named + ([f"repeated {event.repeated:,}"] if event.repeated else []))
