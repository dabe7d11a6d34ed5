"""What kind of thing a line says."""

from __future__ import annotations

import re

_GIST_WORDS = 8
_AROUND = "[](){}<>:;,.!?'\"`=*-"
_LOOKED_AT = 600  # characters of a line
_QUOTED = re.compile(r"(?<!\w)'[^']{1,200}'|\"[^\"]{1,200}\"")
_PATH = re.compile(r"(?<![\w/])(?:~|\w+:/)?/[\w@%+=:,.~-]+(?:/[\w@%+=:,.~-]*)+")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\b(?=[a-f]*\d)[0-9a-f]{6,64}\b|\d+(?:[.:]\d+)*")
_LIST = re.compile(r"#(?:[\s,;:x/|-]{1,3}#)+")


def gist(body: str) -> str:
    """What kind of thing the line says: its plain words, without names, paths and numbers."""
    words = [word.strip(_AROUND) for word in body[:400].split()]
    return " ".join([word for word in words if word.isalpha()][:_GIST_WORDS]) or body[:40]


def wording(body: str) -> str:
    """The line with what is quoted, paths and numbers taken out, a list of numbers as one: equal for lines that vary
    in these alone."""
    text = _QUOTED.sub("'", body[:_LOOKED_AT])
    return _LIST.sub("#", _NUMBER.sub("#", _PATH.sub("/", text))).strip()
