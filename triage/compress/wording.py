"""What kind of thing a line says."""

from __future__ import annotations

import re

_GIST_WORDS = 8
_AROUND = "[](){}<>:;,.!?'\"`=*-"
_LOOKED_AT = 600  # characters of a line
_QUOTED = re.compile(r"(?<!\w)'[^']{1,200}'|\"[^\"]{1,200}\"")
_PATH = re.compile(r"(?<![\w/])(?:~|\w+:/)?/[\w@%+=:,.~-]+(?:/[\w@%+=:,.~-]*)+")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\b(?=[a-f]*\d)[0-9a-f]{6,64}\b|\d+(?:[.:]\d+)*")
# Of a process: "pid=123", "host:123:456" and "host:0:123", as NCCL and the libraries around it begin their lines.
_PROCESS = re.compile(
    r"\b((?:pid|tid|thread|process)(?:[ =:#]{1,2}|=0x))[0-9a-f]*\d[0-9a-f]*\b|(?<![\w.:-])([A-Za-z][\w.-]*):\d{1,7}:\d{1,7}\b(?!:)",
    re.IGNORECASE,
)
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


def anonymous(body: str) -> str:
    """The line without the numbers of processes and threads: equal for processes that say the same."""
    return _PROCESS.sub(lambda found: f"{found[1] or found[2] + ':'}#", body).rstrip()
