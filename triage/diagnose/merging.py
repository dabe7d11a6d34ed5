"""Steps that say the same are said once: the remedy of a signature beside the steps of a runbook. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from triage.domain import Remedy

_CODE = re.compile(r"`[^`]*`|\([^()]*\)")
_CLAUSE = re.compile(r"(?<=[.;])\s+")
_WORD = re.compile(r"[a-z_]{4,}")
_ACTS = {
    "restart": re.compile(r"(?i)\b(?:restart|resubmit|requeue|submit again|start again)\b(?! (?:Fabric|GPFS|slurmd|the (?:pod|guest|virtual)))"),
    "drain": re.compile(r"(?i)\b(?:drain|cordon|take \S+ out|leave \S+ (?:\S+ )?out)\b"),
    "reboot": re.compile(r"(?i)\b(?:reboot|power[- ]cycle)\b"),
    "reset": re.compile(r"(?i)\breset\b"),
    "replace": re.compile(r"(?i)\b(?:RMA|support case|hardware case)\b"),
    "end": re.compile(r"(?i)\b(?:end|stop|kill)\b (?:\S+ ){0,3}process"),
    "hand over": re.compile(r"(?i)\b(?:hand over|escalate|storage team|cluster team)\b"),
}  # fmt: skip
# Words that say nothing beside an act.
_EMPTY = re.compile(
    r"this|that|then|them|they|when|with|without|from|until|before|after|again|later|last|have|does|node|host|go|stay|away|cold|power|cycl"
    r"|repeat|com|back|itself|next|other|another|checkpoint|complet|submit|start|first|only|cannot|fail|els|onc|sam|test|need|team|cluster"
    r"|storag|cas|support|open|hardwar|alon|drain|cordon|reboot|restart|resubmit|requeu|reset|dead|report"
)
_NOTHING = re.compile(r"(?i)^nothing to (?:do|repair)\b")
_LOOKS = re.compile(
    r"(?i)^(?:ask|check|compare|find|look|read|report|see|tell|watch|do not|the)\b|^(?:if|when) it repeats,? (?:give|tell)\b"
)
_LEADING = re.compile(r"(?i)^(?:drain|cordon) (?:(?:the|this) (?:node|host)|it)(?:, (?:then )?| and |; )")


def clauses(text: str) -> list[str]:
    """The sentences of a remedy and their parts, without what stands in code or brackets being cut."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    parts = _CLAUSE.split(_CODE.sub(keep, text))
    return [re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], part) for part in parts]


def acts(text: str) -> set[str]:
    """What a step does, of the things that steps of several sources say: restart, drain, reboot ..."""
    return {name for name, pattern in _ACTS.items() if pattern.search(text)}


def only_looks(text: str) -> bool:
    """Is nothing changed by any part of it?"""
    return all(_LOOKS.match(clause) for clause in clauses(text))


def says(text: str, other: str) -> bool:
    """Does `other` say it already? Told by the words that carry a meaning."""
    mine, theirs = _words(text), _words(other)
    return bool(mine) and len(mine & theirs) * 2 >= len(mine)


def _words(text: str) -> set[str]:
    return {re.sub(r"(?:ies|es|s|ing|ed|e)$", "", word) for word in _WORD.findall(text.lower())}


def left_of(remedy: str, steps: Iterable[str], barred: frozenset[str] = frozenset()) -> str:
    """What a remedy says beyond the steps. barred: acts that contradict what is advised and are left out."""
    done = set().union(barred, *(acts(step) for step in steps))
    left: list[str] = []
    for said in clauses(remedy):
        clause = _LEADING.sub("", said) if "drain" in done else said
        mine = acts(clause)
        if _NOTHING.match(clause):
            continue
        rest = {word for word in _words(_CODE.sub("", clause)) if not _EMPTY.fullmatch(word)}
        if mine and mine <= done and len(rest) < 3:
            continue
        if any(says(clause, step) for step in steps):
            continue
        left.append(clause[:1].upper() + clause[1:] if not left or left[-1].endswith(".") else clause)
    text = " ".join(left)
    return text[:-1] + "." if text.endswith(";") else text


def once(steps: Sequence[Remedy]) -> list[Remedy]:
    """Without those whose words, or whose command, an earlier one holds."""
    kept: list[Remedy] = []
    for step in steps:
        if any(_same(step, before) for before in kept):
            continue
        kept.append(step)
    return kept


def _same(step: Remedy, before: Remedy) -> bool:
    if step.command:
        return step.command == before.command
    return says(step.step, before.step) and acts(step.step) <= acts(before.step)
