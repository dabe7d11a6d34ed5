"""What is the same of a failure wherever it happens again. Pure."""

from __future__ import annotations

import hashlib
import re

_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d+|/[\w./-]+|'[^']{0,80}'|\"[^\"]{0,80}\"")


def fingerprint(failure_type: str, signature: str, text: str) -> str:
    """The same failure on other ranks, nodes, paths and numbers has the same fingerprint."""
    skeleton = _VARIABLE.sub("#", text[-400:])
    return hashlib.sha256(f"{failure_type}|{signature}|{skeleton}".encode()).hexdigest()[:16]
