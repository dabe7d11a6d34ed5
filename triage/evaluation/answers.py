"""What was said of one case beside what should have been said. Tolerant: an answer may come from any program or model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
_PACKED = re.compile(r"\.(?:gz|xz|bz2|zst)$")


@dataclass(frozen=True, slots=True)
class Answer:
    """One record of a run seen as question and answer; got is empty when there was no answer."""

    record: Record
    want: Mapping[str, Any]
    got: Mapping[str, Any]

    @property
    def case(self) -> str:
        return str(self.record["case"])

    @property
    def repeat(self) -> int:
        return int(self.record.get("repeat") or 0)

    @property
    def answered(self) -> bool:
        return bool(self.got)

    @property
    def healthy(self) -> bool:
        """The label says that nothing failed."""
        return self.want.get("outcome") == "healthy"

    @property
    def want_type(self) -> str:
        return text(self.want.get("failure_type"))

    @property
    def accepted_types(self) -> list[str]:
        return [self.want_type, *texts(self.want.get("also_accept"))]

    @property
    def accepted_outcomes(self) -> list[str]:
        return [text(self.want.get("outcome")), *texts(self.want.get("also_outcome"))]

    @property
    def failure_type(self) -> str:
        return text(self.got.get("failure_type"))

    @property
    def outcome(self) -> str:
        return text(self.got.get("outcome"))

    @property
    def status(self) -> str:
        return text(self.got.get("status"))

    @property
    def action(self) -> str:
        return text(self.got.get("action"))

    @property
    def words(self) -> str:
        """The root cause and the remediation, as one lower-case text."""
        found = [text(self.got.get("root_cause"))]
        for step in items(self.got.get("remediation")):
            found += (
                [text(step.get(k)) for k in ("step", "command", "why")] if isinstance(step, Mapping) else [text(step)]
            )
        return "\n".join(found).lower()

    @property
    def nodes(self) -> list[str]:
        return [host(x) for x in items(self._suspects().get("nodes"))]

    @property
    def ranks(self) -> list[int]:
        return numbers(self._suspects().get("ranks"))

    def _suspects(self) -> Mapping[str, Any]:
        found = self.got.get("suspects")
        return found if isinstance(found, Mapping) else {}


def of_tool(record: Record) -> Answer:
    """The record as the tool answered. A crash, an error and a timeout are no answer."""
    result = record.get("result")
    good = isinstance(result, Mapping) and not record.get("problem")
    return Answer(record, _expect(record), result if isinstance(result, Mapping) and good else {})


def of_baseline(record: Record, name: str) -> Answer | None:
    """The record as a baseline answered; None where it was not asked."""
    result = (record.get("baselines") or {}).get(name)
    return Answer(record, _expect(record), result) if isinstance(result, Mapping) else None


def latest(records: Iterable[Record]) -> list[Record]:
    """One record a case and repeat, the last one written."""
    return list({(str(r["case"]), int(r.get("repeat") or 0)): r for r in records}.values())


def _expect(record: Record) -> Mapping[str, Any]:
    found = record.get("expect")
    return found if isinstance(found, Mapping) else {}


# ------------------------------------------------------------------------------------------------ cited lines
@dataclass(frozen=True, slots=True)
class Cited:
    file: str
    line: int
    role: str


def cited(answer: Answer) -> list[Cited]:
    """The lines that the answer cites, each once; the file by its name in the case, where it is plain which is meant."""
    known = list(answer.record.get("files") or {})
    found: dict[Cited, None] = {}
    for item in items(answer.got.get("evidence")):
        line = item.get("line") if isinstance(item, Mapping) else None
        if isinstance(line, int) and not isinstance(line, bool):
            found[Cited(in_case(text(item.get("file")), known), line, text(item.get("role")))] = None
    return list(found)


def in_case(name: str, known: Sequence[str]) -> str:
    """A name as an answer gives it -> the case's file of this name, if exactly one fits; else the bare name."""
    name = _bare(name)
    for fits in (name.__eq__, lambda k: name.endswith("/" + k), lambda k: k.endswith("/" + name)):
        hits = [k for k in map(_bare, known) if fits(k)]
        if len(hits) == 1:
            return hits[0]
    return name


def decisive(answer: Answer) -> list[tuple[str, int, int]]:
    """The labelled ranges: file ("" where the label names none), first and last line."""
    return [(_bare(f), a, z) for f, a, z in items(answer.want.get("evidence"))]


def decisive_groups(answer: Answer) -> list[list[tuple[str, int, int]]]:
    """The labelled ranges, those that say the same in one group (the record's `alike`: a group number for each range)."""
    ranges, alike = decisive(answer), items(answer.record.get("alike"))
    numbered = zip(alike if len(alike) == len(ranges) else range(len(ranges)), ranges, strict=True)
    found: dict[int, list[tuple[str, int, int]]] = {}
    for number, where in numbered:
        found.setdefault(number, []).append(where)
    return list(found.values())


def shows(where: tuple[str, int, int], line: Cited) -> bool:
    """The cited line is one of the range."""
    name, first, last = where
    return name in ("", line.file) and first <= line.line <= last


def _bare(name: str) -> str:
    name = "".join(c if c.isprintable() else "\ufffd" for c in name.replace("\\", "/"))
    while name.startswith("./"):
        name = name[2:]
    return _PACKED.sub("", name)


# ------------------------------------------------------------------------------------------------ loose values
def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def items(value: Any) -> list[Any]:
    """A list as it is; a single value as a list of one; nothing as an empty list."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [] if value is None else [value]


def texts(value: Any) -> list[str]:
    return [str(x) for x in items(value)]


def numbers(value: Any) -> list[int]:
    """The whole numbers of a list; "rank 3" counts as 3."""
    found = (re.search(r"\d{1,9}", str(x)) for x in items(value))
    return [int(m.group()) for m in found if m]


def host(value: Any) -> str:
    """A host name in lower case without its domain; an address stays whole."""
    name = str(value).strip().lower()
    return name if re.fullmatch(r"[\d.]+", name) or ":" in name else name.split(".")[0]
