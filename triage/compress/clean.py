"""A raw line as the patterns see it: no colours, no control characters; and the rank label in front of it."""

from __future__ import annotations

import re

OVERWRITTEN = " ⏎ ".encode()  # stands between the states of a line that a carriage return overwrote

_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\\-_=>78])"
)
_SPELLED_ESCAPE = re.compile(rb"(?:#033|\\u001b)\[[0-9;]{0,32}[mK]")  # as syslog and JSON write it
_CONTROL = bytes(b for b in range(32) if b not in (9, 10, 13)) + b"\x7f"
# C1 controls and marks that reorder text: unseen, and able to split a word.
_UNSEEN = re.compile("[\x80-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]")

# Rank labels: `srun --label`, `mpirun --tag-output`, torchrun's tee, torch's own tag.
_LABEL = re.compile(
    rb"(?: {0,6}(\d{1,6}):(?: |$)|\[(?:rank|default|trainer|worker)?(\d{1,6})\]:"
    rb"|\[\d{1,4},(\d{1,6})\]<std(?:out|err)>:)"
)


def plain(raw: bytes) -> bytes:
    """The line, or lines, without colour codes and control characters (tab, newline and carriage return stay)."""
    if b"\x1b" in raw:
        raw = _ESCAPE.sub(b"", raw)
    if b"#033[" in raw or b"\\u001b[" in raw:
        raw = _SPELLED_ESCAPE.sub(b"", raw)
    return raw.translate(None, _CONTROL)


def text(raw: bytes) -> str:
    """The line, or lines, as text for matching; bytes that are no UTF-8 become U+FFFD."""
    if raw.isascii():
        return plain(raw).decode("ascii")
    return _UNSEEN.sub("", plain(raw).decode("utf-8", "replace"))


def is_clean(shape: bytes) -> bool:
    """Whether lines of this skeleton can be matched as they are: nothing that `text` would change."""
    return shape.isascii() and b"#[" not in shape and b"\\u[" not in shape and shape.translate(None, _CONTROL) == shape


def label_count(raw: bytes) -> int:
    """How many rank labels, each ending in a colon, the line starts with: 0, 1 or 2."""
    return len(_labels(raw))


def rank(raw: bytes) -> int | None:
    """The rank of the label the line starts with; of two labels (`0: [rank12]:`) the inner one."""
    found = _labels(raw)
    return found[-1] if found else None


def _labels(raw: bytes) -> list[int]:
    found: list[int] = []
    at = 0
    while len(found) < 2 and (match := _LABEL.match(raw, at)):
        found.append(int(match[match.lastindex or 1]))
        at = match.end() + (raw[match.end() : match.end() + 1] == b" ")
    return found
