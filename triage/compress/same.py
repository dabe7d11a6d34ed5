"""Rules are compared by what they take, not by how they are spelled."""

from __future__ import annotations

from collections.abc import Sequence

from triage.compress import siblings
from triage.compress.candidate import Candidate, Refused
from triage.compress.takes import Lines
from triage.domain import FilterRule

_COMPARED = 2000  # lines, those with other numbers among them


def groups_of_equal(rules: Sequence[FilterRule], lines: Sequence[str]) -> tuple[tuple[FilterRule, ...], ...]:
    """The rules that take the same of these lines, and the same of them with other numbers: the largest group first.

    So spellings of one rule count together. In a group the rule that leaves the least room for messages comes first,
    of equal ones the shortest: it is the one to adopt. A rule that does not compile or takes no line stands alone.
    """
    tried = Lines(list(dict.fromkeys(siblings.harmless(dict.fromkeys(lines))))[:_COMPARED])
    groups: dict[tuple[int, ...], list[tuple[int, int, FilterRule]]] = {}
    alone: list[tuple[FilterRule, ...]] = []
    room: dict[str, int] = {}
    for rule in rules:
        try:
            candidate = Candidate(rule)
        except Refused:
            alone.append((rule,))
            continue
        taken = tuple(candidate.takes(tried))
        if taken:
            if rule.pattern not in room:
                room[rule.pattern] = sum(1 for _ in siblings.hidden(candidate, [tried.texts[at] for at in taken]))
            groups.setdefault(taken, []).append((room[rule.pattern], len(rule.pattern), rule))
        else:
            alone.append((rule,))
    equal = [tuple(rule for *_, rule in sorted(found, key=lambda entry: entry[:2])) for found in groups.values()]
    return (*sorted(equal, key=lambda group: -len(group)), *alone)
