"""Private keys that go over several lines, or stand in one line with their line ends escaped."""

from __future__ import annotations

import re

from triage.redact.secrets import redact_line

HIDDEN = "[redacted:private-key]"
_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY")
_END = re.compile(r"-----END [A-Z ]{0,30}PRIVATE KEY")
_TOKEN = re.compile(r"(?:^|[\s\"'`+|>])([A-Za-z0-9+/_=-]{1,100})(?:\\n)?[\"',]{0,2}\s*$")
_SHORTEST = 16  # characters of a line of a key, but for its last one
_LONGEST = 120  # lines of a key


def redact(text: str) -> str:
    """The text with each secret replaced by `[redacted:kind]`. Idempotent; linear in the length of the text."""
    if "\n" not in text:
        return redact_line(text)
    secrets = LineRedactor()
    return "\n".join(secrets.redact(line, number) for number, line in enumerate(text.split("\n"), 1))


class LineRedactor:
    """Takes secrets out of the lines of one file, in order; lines may be missing in between."""

    def __init__(self) -> None:
        self.since = -_LONGEST  # where a key began; a run that goes on sets it again
        self._body = -1  # its last line so far

    def redact(self, text: str, number: int) -> str:
        """The line `number` without secrets."""
        if "PRIVATE KEY" in text:
            begins = [m.start() for m in _BEGIN.finditer(text)]
            ends = [m.start() for m in _END.finditer(text)]
            is_open = bool(begins) and (not ends or ends[-1] < begins[-1])
            self.since = self._body = number if is_open else -_LONGEST
        elif number - self.since <= _LONGEST:
            body = _TOKEN.search(text)
            if body is not None and self._is_body(text, body, number):
                self._body = number
                text = text[: body.start(1)] + HIDDEN
        return redact_line(text)

    def _is_body(self, text: str, token: re.Match[str], number: int) -> bool:
        """A line of nothing else; behind a label, what looks random, for other lines may come between those of a key."""
        word, alone = token[1], not text[: token.start(1)].strip(" \t\"'`+|>")
        mixed = word.lower() != word != word.upper() and any(not c.isalpha() for c in word)
        if len(word) >= _SHORTEST:
            return alone or mixed
        return number == self._body + 1 and any(not c.isalpha() for c in word)
