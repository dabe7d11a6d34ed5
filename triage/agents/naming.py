"""Names, numbers and addresses of a sentence, and whether what is known of a job holds them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# What a sentence may only say if the input says it: numbers, paths, names of hosts and files, what is quoted.
_NAMED = re.compile(
    r"(?P<name>\w{2,12}://[^\s`\"'<>)\]]+"
    r"|(?<![\w/.])(?:/[\w.@%+=:-]+){2,}"
    r"|(?<![\w.:-])\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?(?!\w)"
    r"|(?<![\w.:-])(?=[\w.:]{0,40}\d)(?:[0-9a-fA-F]{1,8}[:.]){2,7}[0-9a-fA-F]{1,8}(?!\w)"  # IP, PCI, version, time of day
    r"|(?<![\w.:-])\d{1,2}:\d\d(?![\w:])"
    r"|(?<![\w.-])[A-Za-z][A-Za-z_.-]*\d[\w.-]*"
    r"|(?<![\w.-])[A-Za-z0-9_-]+\.(?:py|sh|cc|cpp|cu|yaml|json|log|out|err|bin|pt|so)\b)"
    r"|(?<![\w.])(?P<number>\d+(?:\.\d+)?)(?: ?(?P<unit>[KMGTP]i?B|[KMGT]bps|Gb/s|GB/s|[CWV]|MHz|GHz|%)(?!\w)|[A-Za-z]{1,8}\b)?"
    r"(?!\w)"
)
_QUOTE = re.compile(r"`([^`]{2,400})`")
REFERENCE = re.compile(r"([^\s:()\[\],;'\"`]{1,300}):(\d{1,9})\b")
_LINE = re.compile(r"\blines? (\d{1,9})\b(?:(?:-| and | to )(\d{1,9})\b)?")
# Where a number of these stands in a text, whatever it is called there.
_SEVERAL = r"\d{1,7}(?:(?:, ?| ?- ?| to | and |, and )\d{1,7})*"
_COUNTED = {
    "rank": r"(?:ranks?|tasks?|process|proc|workers?|peers?)",
    "gpu": r"(?:gpus?|devices?|cuda|ordinal|local[_ ]ranks?|device_id)",
    "node": r"(?:nodes?|hosts?|machines?|node_rank|group_rank)",
}
_SAID = re.compile(
    rf"\b(?:(?P<many>ranks|gpus|nodes) (?P<numbers>{_SEVERAL})|(?P<one>rank|gpu|node) ?[#:=]? ?(?P<number>\d{{1,7}}))\b",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(\d+)(?: ?- ?| to )(\d+)|(\d+)")
_WIDEST = 100_000  # numbers of a range
# No number of these means what a sentence would count: dates, times of day, addresses, versions.
_COMPOSED = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)?"
    r"|\b[A-Z][a-z][a-z] [ \d]\d(?= \d\d:\d\d)"
    r"|(?<![\w.:])(?=[\w.:]{0,40}\d)(?:[0-9a-fA-F]{1,8}[:.]){2,7}[0-9a-fA-F]{1,8}(?!\w)"
)
_SMALL = 3  # numbers below it are words of any sentence


@dataclass(slots=True)
class Told:
    """All that was told of a job, as text. places: the lines that were shown; counted: numbers of ranks, GPUs, nodes."""

    text: str = ""
    places: frozenset[tuple[str, int]] = frozenset()
    counted: dict[str, set[int]] = field(default_factory=dict)
    _plain: str = ""

    def add(self, text: str) -> None:
        """Lines without the place that they stand at: a line's number is no number of the job."""
        self.text = f"{self.text}\n{text}"
        self._plain = f"{self._plain}\n{_COMPOSED.sub(' ', text)}"
        for kind, called in _COUNTED.items():
            known = self.counted.setdefault(kind, set())
            for found in re.finditer(rf"\b{called}[\s#:=\[_-]{{0,3}}({_SEVERAL})\b", text, re.IGNORECASE):
                known.update(_numbers(found[1]))

    def without_places(self, text: str) -> str:
        """The text without FILE:LINE and `line N` of lines that were shown."""
        text = REFERENCE.sub(lambda m: m[1] if (m[1], int(m[2])) in self.places else m[0], text)
        numbers = {number for _, number in self.places}
        return _LINE.sub(lambda m: "" if all(int(n) in numbers for n in m.groups() if n) else m[0], text)

    def holds(self, name: str) -> bool:
        """As it stands, not as a part of a longer name or number."""
        begins = "(?<![A-Za-z0-9])" if name[:1].isalnum() else ""
        ends = "(?![A-Za-z0-9])" if name[-1:].isalnum() else ""
        return re.search(begins + re.escape(name) + ends, self.text) is not None

    def counts(self, number: str, unit: str = "") -> bool:
        """Whether it stands there as a number, with this unit or none."""
        ends = rf"(?: ?{re.escape(unit)}(?![A-Za-z])|(?! ?[A-Za-z%]))" if unit else r"[A-Za-z%]{0,4}"
        found = rf"(?<![A-Za-z0-9])(?<!\d\.){re.escape(number)}{ends}(?![A-Za-z0-9])(?!\.\d)"
        return re.search(found, self._plain, re.IGNORECASE) is not None


def unknown_names(text: str, told: Told) -> tuple[str, ...]:
    """The names, paths, addresses and numbers of a sentence that were not told."""
    strange = [quote for quote in _QUOTE.findall(text) if not told.holds(quote)]
    return tuple(dict.fromkeys([*strange, *_unknown(told.without_places(_QUOTE.sub(" ", text)), told)]))


def _unknown(text: str, told: Told) -> Iterator[str]:
    for said in _SAID.finditer(text):
        kind = (said["many"] or said["one"]).lower().rstrip("s")
        for number in _numbers(said["numbers"] or said["number"]):
            if number not in told.counted.get(kind, ()):
                yield f"{kind} {number}"
    for found in _NAMED.finditer(_SAID.sub(" ", text)):
        if found["name"]:
            name = found["name"].rstrip(".,:;")
            if name and not told.holds(name):
                yield name
        elif not told.counts(found["number"]) and not _trivial(found["number"]):
            yield found["number"]
        elif found["unit"] and not told.counts(found["number"], found["unit"]):
            yield f"{found['number']} {found['unit']}"


def _numbers(text: str) -> Iterator[int]:
    for low, high, single in _RANGE.findall(text):
        if single:
            yield int(single)
        elif int(high) - int(low) < _WIDEST:
            yield from range(int(low), int(high) + 1)
        else:
            yield from (int(low), int(high))


def _trivial(number: str) -> bool:
    return number.isdigit() and int(number) < _SMALL
