"""Signatures against lines. One RE2 set finds which may match; only those are run for their named groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.domain import LogFile, LogLine, Signature
from triage.regex import PatternSet, compile_pattern, erase
from triage.structured import TELLING, readings
from triage.text import is_cut

# Lines that no signature names but that evidence is built of: they are kept like lines that a signature matches.
STRUCTURAL = (
    r"Traceback \(most recent call last\)",
    r'^\s*(?:\S+ )?File ".*", line \d+',
    r"The above exception was the direct cause|During handling of the above exception",
    r"^(?:\S+ )?(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|$)",
    r"flight recorder: (?:unfinished |group=)",
    *TELLING,
)
_MOST_DIGITS = 18  # of a number; a longer one counts nothing


@dataclass(frozen=True, slots=True)
class Finding:
    """One signature on one line; groups hold what its pattern names (node, rank, gpu, code, ...)."""

    line: LogLine
    signature: Signature
    groups: Mapping[str, str] = field(default_factory=dict)


Best = dict[tuple[str, int], Finding]  # by file and line: the finding that says most of it


class Matcher:
    """Compiled signatures. Build once; matching is read-only."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self.signatures = tuple(signatures)
        self._owner: list[int] = []
        self.patterns: list[str] = []
        for index, signature in enumerate(self.signatures):
            for pattern in signature.patterns:
                self._owner.append(index)
                self.patterns.append(pattern)
        self._set = PatternSet(self.patterns, "signatures")
        self._compiled: dict[str, Any] = {}

    def hot_patterns(self) -> tuple[str, ...]:
        """What the scan must keep, as patterns over skeletons (triage.regex.erase)."""
        return tuple(dict.fromkeys(erase(p) for p in (*self.patterns, *STRUCTURAL)))

    def match(self, line: LogLine, kind: str = "job") -> list[Finding]:
        """Every signature that fires on the line, the most specific first."""
        found: dict[int, Finding] = {}
        for text in (line.text, *readings(line.text)):
            for hit in self._set.match(text):
                index = self._owner[hit]
                signature = self.signatures[index]
                if index in found or (signature.kinds and kind not in signature.kinds):
                    continue
                if any(self._regex(p).search(text) for p in signature.unless):
                    continue
                found[index] = Finding(line, signature, self._groups(hit, text))
        return sorted(found.values(), key=lambda f: -f.signature.weight)

    def _groups(self, hit: int, text: str) -> dict[str, str]:
        """What the pattern names in the text."""
        regex = self._regex(self.patterns[hit])
        match = regex.search(text)
        found = match.groupdict().items() if match else ()
        groups = {k: v for k, v in found if v and not (len(v) > _MOST_DIGITS and v.isdecimal())}
        if "node" in groups and match and _no_name(text, *match.span(regex.groupindex["node"])):
            del groups["node"]
        return groups

    def find(self, files: Iterable[LogFile]) -> list[Finding]:
        """All findings of a job, file by file in line order."""
        return [f for file in files for line in file.lines if line.hot for f in self.match(line, file.kind)]

    def _regex(self, pattern: str) -> Any:
        if pattern not in self._compiled:
            self._compiled[pattern] = compile_pattern(pattern)
        return self._compiled[pattern]


def _no_name(text: str, start: int, end: int) -> bool:
    """Is what stands there no name of a host, or the beginning of what is none?"""
    return text[start] == "-" or is_cut(text, end)
