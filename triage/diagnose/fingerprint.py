"""What stays of a failure when it comes again elsewhere. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_ENDS = 400  # characters of the line that tell: what stands before is rather its prefix
_ADDRESS = r"[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){2,8}(?:\.\d)?"  # of a host or a device on its bus
_UUID = r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){1,3}(?:-[0-9a-fA-F]{12})?\b"
_QUOTED = r"'[^']{0,80}'|\"[^\"]{0,80}\""
_CALENDAR = r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
_HEX = r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{0,16}\d[0-9a-fA-F]*\b"
_VARIABLE = re.compile(rf"{_UUID}|{_ADDRESS}|/[\w./-]+|{_QUOTED}|{_CALENDAR}|{_HEX}|\d+")
_SEVERAL = re.compile(r"#(?:[\s,:;.+_xT-]{1,3}#)+")


def fingerprint(failure_type: str, signature: str, text: str, names: Iterable[str] = ()) -> str:
    """The same failure on other ranks, nodes, devices, paths, dates and numbers has the same fingerprint.

    names: of nodes and the like, which hold no number to know them by.
    """
    skeleton = text[-_ENDS:]
    for name in sorted(filter(None, names), key=len, reverse=True):
        skeleton = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "#", skeleton)
    skeleton = _SEVERAL.sub("#", " ".join(_VARIABLE.sub("#", skeleton).split()))
    return hashlib.sha256(f"{failure_type}|{signature}|{skeleton}".encode()).hexdigest()[:16]
