"""Rules as models write them, read out of their answers. Pure; what is no rule is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triage.compress.candidate import Candidate, Refused
from triage.domain import FilterRule
from triage.llm.parse import find_items, find_object, undoubled

MOST = 60  # rules of one answer
_TITLE = 80


@dataclass(frozen=True, slots=True)
class Proposal:
    """named: the lines that the model says it is for; answer: which of several answers it stands in, from 0."""

    pattern: str
    named: tuple[str, ...]
    title: str
    answer: int = 0

    def rule(self, name: str) -> FilterRule:
        return FilterRule(name, self.title, self.pattern, self.named)


def written(text: str, lines: Sequence[str], answer: int = 0) -> tuple[Proposal, ...]:
    """The rules of an answer to log-write; lines: what was shown, in order."""
    found = []
    for item in find_items(text, "rules").items[:MOST]:
        pattern = item.get("pattern") if isinstance(item, dict) else None
        if not isinstance(pattern, str):
            continue
        named = tuple(lines[n - 1] for n in _numbers(item.get("lines")) if 1 <= n <= len(lines))
        title = " ".join(str(item.get("kind") or "routine output").split())[:_TITLE]
        found.append(Proposal(_as_meant(pattern, named), named, title, answer))
    return tuple(found)


def is_list(text: str) -> bool:
    """Does the answer to log-write hold a list of rules, be it empty?"""
    return bool(find_items(text, "rules").items) or isinstance(find_object(text).get("rules"), list)


def repaired(text: str, refused: Sequence[Proposal]) -> tuple[tuple[int, Proposal], ...]:
    """The rules of an answer to log-repair, each with the place of the one it replaces."""
    found = {}
    for item in find_items(text, "rules").items[:MOST]:
        pattern = item.get("pattern") if isinstance(item, dict) else None
        for number in _numbers([item.get("number")]) if isinstance(pattern, str) else ():
            if 1 <= number <= len(refused):
                old = refused[number - 1]
                found[number - 1] = Proposal(_as_meant(str(pattern), old.named), old.named, old.title, old.answer)
    return tuple(sorted(found.items()))


def routine(text: str) -> frozenset[int] | None:
    """The numbers that an answer to log-vote calls routine; None when it does not say."""
    found = find_object(text).get("routine")
    return frozenset(_numbers(found)) if isinstance(found, list) else None


def judged(text: str) -> bool | None:
    """What an answer to log-judge says; None when it does not say."""
    found = find_object(text).get("routine")
    if isinstance(found, bool):
        return found
    said = str(found if found is not None else text).strip().lower()
    return {"true": True, "yes": True, "routine": True, "false": False, "no": False}.get(said)


def _numbers(value: Any) -> list[int]:
    items = value if isinstance(value, list) else [value]
    return [
        int(n) for n in items if not isinstance(n, bool) and str(n).isascii() and str(n).isdigit() and len(str(n)) < 7
    ]


def _as_meant(pattern: str, named: Sequence[str]) -> str:
    """Backslashes escaped once too often are mended where that makes the rule take its own lines."""
    other = undoubled(pattern)
    return other if other != pattern and not _takes(pattern, named) and _takes(other, named) else pattern


def _takes(pattern: str, lines: Sequence[str]) -> bool:
    try:
        return len(Candidate(FilterRule("", "", pattern)).takes(lines)) == len(lines)
    except Refused:
        return False
