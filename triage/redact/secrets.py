"""Secrets out of one line of text, before anything stores, shows or sends it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.redact.forms import FORMS
from triage.redact.named import NAMED, PHRASES
from triage.redact.rules import Rule
from triage.redact.sent import SENT
from triage.wordindex import WordIndex

_PASSES = 8
# A line of a private key, whatever stands in front of it.
_KEY_LINE = re.compile(r"(?:^|[\s\"'`+])([A-Za-z0-9+/]{60,80}={0,2})(?:\\n?)?[\"',]{0,2}\s*$")
_SHORTEST_KEY_LINE = 60
_KEY = Rule(
    ("private key",),
    re.compile(
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?:.*?-----END [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----|.*)", re.DOTALL
    ),
    "[redacted:private-key]",
)


class _Rules:
    """In one pass over the text it is known which rules can match at all: most lines hold none of their words."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._index = WordIndex([frozenset(rule.words) for rule in rules])

    def apply(self, text: str) -> str:
        low = text.lower()
        places = self._index.owners(low)
        if not places:
            return text
        for place in sorted(places):
            rule = self._rules[place]
            if rule.hint is None or rule.hint.search(low):
                text = rule.pattern.sub(rule.new, text)
        return text


_ALL = _Rules((_KEY, *FORMS, *SENT, *PHRASES, *NAMED))


def redact_line(text: str) -> str:
    """The line with each secret replaced by `[redacted:kind]`. Idempotent; linear in the length of the text."""
    if len(text) >= _SHORTEST_KEY_LINE and (key := _key_line(text)):
        text = text[: key.start(1)] + "[redacted:private-key]"
    for _ in range(_PASSES):  # what goes may uncover another that had stood right against it
        before, text = text, _ALL.apply(text)
        if text is before or text == before:
            break
    return text


def _key_line(text: str) -> re.Match[str] | None:
    """Base64 of random bytes, not a checksum in hex or one long word: all kinds of characters, well mixed."""
    if " " in text.rstrip()[-_SHORTEST_KEY_LINE:]:
        return None
    found = _KEY_LINE.search(text)
    if found is None or len(set(found[1])) < 24:
        return None
    mixed = any(map(str.isdigit, found[1])) and any(map(str.isupper, found[1])) and any(map(str.islower, found[1]))
    return found if mixed else None
