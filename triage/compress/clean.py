"""A raw line as the patterns see it: no colours, no control characters; and the rank label in front of it."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/][0-~])")
_CONTROL = bytes(b for b in range(32) if b not in (9, 10, 13)) + b"\x7f"

# Rank labels: `srun --label`, `mpirun --tag-output`, torchrun's tee, torch's own tag.
_LABEL = re.compile(
    rb"(?:(\d{1,6}):(?: |$)|\[(?:rank|default|trainer|worker)?(\d{1,6})\]:|\[\d+,(\d{1,6})\]<(?:stdout|stderr)>: ?)"
)


def plain(raw: bytes) -> bytes:
    """The line without colour codes and control characters (tab and carriage return stay)."""
    if b"\x1b" in raw:
        raw = _ESCAPE.sub(b"", raw)
    return raw.translate(None, _CONTROL)


def text(raw: bytes) -> str:
    """The line as text for matching; bytes that are no UTF-8 become U+FFFD."""
    return plain(raw).decode("utf-8", "replace")


def rank(raw: bytes) -> int | None:
    """The rank of the label the line starts with; of two labels (`0: [rank12]:`) the inner one."""
    found = None
    at = 0
    for _ in range(2):
        match = _LABEL.match(raw, at)
        if match is None:
            break
        found = next(group for group in match.groups() if group is not None)
        at = match.end() + (raw[match.end() : match.end() + 1] == b" ")
    return None if found is None else int(found)
