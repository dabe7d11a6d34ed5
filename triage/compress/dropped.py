"""Shows again what a filter rule took: a second pass over the file, the same decisions, lines as they come."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from triage.compress import clean
from triage.compress.engine import Scanner
from triage.domain import FilterRule
from triage.errors import NotFoundError
from triage.redact import LineRedactor


class Shown(NamedTuple):
    """A line of the file. taken: the rule took it; otherwise it is context."""

    number: int
    text: str
    taken: bool


def find_rule(rules: Sequence[FilterRule], rule_id: str) -> FilterRule:
    """The rule of this id. Errors: NotFoundError that names those alike."""
    ids = {rule.id: rule for rule in rules}
    if rule_id in ids:
        return ids[rule_id]
    near = difflib.get_close_matches(rule_id, ids, 3, 0.5) or [known for known in ids if rule_id in known][:3]
    hint = "perhaps " + ", ".join(near) if near else "`triage compress` names the rules that took lines"
    raise NotFoundError(f"no filter rule {rule_id!r}", hint)


def dropped(scanner: Scanner, rule_id: str, chunks: Iterable[bytes], context: int = 0) -> Iterator[Shown]:
    """The lines that the rule took, lazily, each between `context` lines before and after it.

    chunks: the bytes of the file, cut anywhere. All runs of the file are searched. Errors: NotFoundError, at once.
    """
    find_rule(scanner.rules, rule_id)
    return _shown(scanner, rule_id, chunks, context)


def _shown(scanner: Scanner, rule_id: str, chunks: Iterable[bytes], context: int) -> Iterator[Shown]:
    before: deque[tuple[int, bytes]] = deque(maxlen=context)
    secrets = LineRedactor()
    after = 0
    for base, lines, taken in scanner.taken(rule_id, chunks):
        if not context:
            yield from (_line(secrets, number, lines[number - base], True) for number in sorted(taken))
            continue
        for number, raw in enumerate(lines, base):
            if number in taken:
                yield from (_line(secrets, *earlier, False) for earlier in before)
                before.clear()
                yield _line(secrets, number, raw, True)
                after = context
            elif after:
                yield _line(secrets, number, raw, False)
                after -= 1
            else:
                before.append((number, raw))


def _line(secrets: LineRedactor, number: int, raw: bytes, taken: bool) -> Shown:
    return Shown(number, secrets.redact(clean.text(raw), number), taken)
