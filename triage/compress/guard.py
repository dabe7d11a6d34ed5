"""The lines no filter rule may take: an error or warning level, part of a traceback, an exit status, a signal."""

from __future__ import annotations

import re
from typing import Literal

Alarm = Literal["", "warning", "error"]

_ERROR = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|PANIC|FAILED|ABORT(?:ED)?|EMERG|SEVERE)\b"
    r"|(?i:\b(?:error|fatal|critical|exception|failure|failed|panic|abort(?:ed|ing)?|crashed|killed|segfault|unrecoverable)s?\b)"
    r"|\w(?:Error|Exception|Failure)\b"
    r"|\bTraceback \(|^\s*File \"|\bcore dumped\b|(?i:segmentation fault|bus error|illegal instruction)"
    r"|\bSIG[A-Z]{3,6}\b|(?i:\bsignal[ :=]+\d|\bexit(?:ed|code|_code)?(?: with)?(?: (?:code|status))?[ :=]+-?[1-9])"
    r"|(?:^|[\s\[])[EF]\d{4} \d\d:\d\d"
    r"|(?i:[:= ]\s*-?(?:nan|inf)\b)"
)
_WARNING = re.compile(r"(?i:\bwarn(?:ing)?s?\b)|\w(?:Warning)\b|(?:^|[\s\[])W\d{4} \d\d:\d\d")
_BENIGN = re.compile(
    r"(?i:\b(?:no|0|zero|without|ignor\w*)[ _-](?:errors?|warnings?|failures?|exceptions?)\b(?!:))"
    r"|(?i:\b(?:errors?|warnings?|failures?|failed|exceptions?|aborted|killed)[\"']?\s*[:=]\s*(?:0+(?:\.0+)?|false|none|null|no|ignore)\b(?![.:]\d))"
    r"|(?i:nan iterations[ :=]+0\b)"
)


def alarm(text: str) -> Alarm:
    """The gravest mark the line carries; "" for none."""
    error = _ERROR.search(text)
    if error is None and _WARNING.search(text) is None:
        return ""
    text = _BENIGN.sub(" ", text)
    if error is not None and _ERROR.search(text):
        return "error"
    return "warning" if _WARNING.search(text) else ""
