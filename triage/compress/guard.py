"""The lines no filter rule may take: an error or warning level, part of a traceback, an exit status, a signal.

Logs say "error" in many ways, and say the word when there is none: `errors: 0`, `error_rate=0`, `ignore_errors=True`.
The patterns are RE2 (linear, and fit to be erased for skeletons); what is benign is cut out of the text first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

from triage.compress.linewise import Confined
from triage.compress.outline import blur
from triage.regex import erase

Grade = Literal["", "mention", "warning", "error"]
END = r"[\t ]*$"  # stands for the $ of a mark

# Says by its form that something went wrong: no rule takes it.
ERROR = (
    r"\b(?:ERROR|FATAL|CRITICAL|PANIC|EMERG|SEVERE)\b",
    r"(?i:(?:^|[\s\]:>(|])\[?(?:error|fatal|critical)\s?(?:[:\]|]|\[E?\d))",
    r"(?:^|[\s\[:])[EF]\d{4} \d\d:\d\d:\d\d",
    r"(?:^|[\s:\]])[\w.]{0,80}(?:Error|Exception|Interrupt|Exit)(?::|\s*$)",
    r"(?i:\btraceback \(|\b(?:back|stack|call) ?trace:)|\bFile \"[^\"]*\", line \d|\b(?:above exception|what\(\):)",
    r"\bterminate called\b|\bframe #\d+:",
    r"(?i:exit[ _-]?(?:code|status|value)\W{0,3}(?:is |was |of )?\W{0,3}-?[1-9])",
    r"(?i:\bexit(?:ed|ing|s)? (?:with|on) (?:\w+ ){0,3}-?[1-9])",
    r"(?i:\bnon-?zero exit|\breturn(?:ed)? (?:code|status)[:= ]+-?[1-9])",
    r"\bSIG(?:TERM|KILL|SEGV|ABRT|BUS|FPE|ILL|INT|HUP|QUIT|PIPE|USR[12]|XCPU|XFSZ|TRAP|SYS|CONT|STOP|TSTP)\b",
    r"(?i:\bsignal[ :#=(]{1,3}\d|\bkilled by\b|\bcore dumped\b|\bsegmentation fault\b|\bsegfault\b|\bbus error\b)",
    r"(?i:\billegal instruction\b|\bfloating point exception\b|\bout of memory\b|\boom[- _]?kill)",
    r"\b(?:Killed|Terminated|Aborted|CANCELLED)\b",
)
WARNING = (r"(?i:\bwarn(?:ings?)?\b)", r"[a-z]Warning\b", r"(?:^|[\s\[:])W\d{4} \d\d:\d\d:\d\d")
# Speaks of trouble in a sentence: a rule takes it only when it says that it drops warnings.
MENTION = (
    r"(?i:\b(?:errors?|exceptions?|fail(?:s|ed|ing|ures?)?|abort(?:s|ed|ing)?|crash(?:es|ed)?|killed|faults?)\b)",
    r"(?i:\b(?:refused|permission denied|access denied|not permitted|timed out|unrecoverable|corrupt(?:ed|ion)?)\b)",
    r"(?i:\b(?:panic|fatal|critical|unable to|cannot)\b)",
    r"(?i:[:=]\s*[+-]?(?:nan|inf)\b)",
    r"\bnan iterations[ :=]+[1-9]",
)
MARKS = (*ERROR, *WARNING, *MENTION)

# Names trouble that is absent, or a quantity.
_TROUBLE = r"(?:errors?|warnings?|failures?|failed|fails|exceptions?|aborted|crashed|killed|faults?)"
BENIGN = (
    r"(?i:(?:^|\s)--[a-z][\w-]*)",  # --ignore-errors
    rf"(?i:\b{_TROUBLE}[\"']?\s*[:=]\s*(?:0+(?:\.0+)?|\[\]|\{{\}})(?:[\s,;)\]}}|]|$))",  # errors: 0
    rf"(?i:\b{_TROUBLE}[\"']?\s*[:=]\s*(?:false|none|null|no|off|never|ignore)(?:[,;)\]}}|]|\s*$))",
    rf"(?i:(?:^|[,;(|]\s*|\b(?:with|and|found|had|has) )(?:0|no|zero) (?:\w+ )?{_TROUBLE}\b)",  # (0 errors)
    r"(?i:\b(?:no|without(?: any)?|ignor(?:e|es|ing)) (?:errors|warnings|failures|exceptions)\b)",
    r"(?i:\berrors?\.(?:json|log|txt|out|err|csv)\b)",
    r"(?i:\berrors?[ -](?:rate|handl\w+|budget|count|correct\w+|feedback)\b)",
    r"(?i:\b(?:relative|absolute|squared|mean|max|validation|val|train|test|eval|quantization|reconstruction|rounding|word)"
    r"[ _-]errors?\s*[:=]\s*[\d.])",  # test error: 0.23
)


@functools.cache
def _patterns(grade: Literal["error", "warning", "any"]) -> Confined:
    chosen = {"error": ERROR, "warning": WARNING, "any": MARKS}[grade]
    return Confined(chosen, end=END)


@functools.cache
def _benign() -> Confined:
    return Confined(BENIGN)


def alarm(text: str) -> Grade:
    """The gravest mark the line carries; "" for none."""
    if not _patterns("any").found(text):
        return ""
    text = _benign().cut(text)
    if _patterns("error").found(text):
        return "error"
    if _patterns("warning").found(text):
        return "warning"
    return "mention" if _patterns("any").found(text) else ""


def any_alarm(text: str | bytes, errors_only: bool = False) -> bool:
    """Whether a line of the text, lines joined by newlines, carries a mark (of an error)."""
    wanted = _patterns("error" if errors_only else "any")
    if not wanted.found(text):
        return False
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return wanted.found(_benign().cut(text))


def all_alarm(text: bytes) -> bool:
    """Whether every line of the text, each ended by a newline, surely carries a mark."""
    return _patterns("any").takes_all(text) and not _benign().found(text)


def erased() -> tuple[str, ...]:
    """Patterns over skeletons: a skeleton that none matches belongs to no line with a mark."""
    return tuple(map(erase, MARKS))


def gravest(patterns: Sequence[str], text: str) -> Grade:
    """The gravest mark of these patterns that the text, which excuses nothing, carries."""
    grades: tuple[tuple[Grade, tuple[str, ...]], ...] = (("error", ERROR), ("warning", WARNING), ("mention", MENTION))
    for grade, all_of_it in grades:
        chosen = tuple(pattern for pattern in all_of_it if pattern in patterns)
        if chosen and any_of(chosen).found(text):
            return grade
    return ""


@functools.lru_cache(256)
def any_of(patterns: tuple[str, ...]) -> Confined:
    return Confined(patterns, end=END)


@functools.cache
def _blurred_benign() -> Confined:
    return Confined([blur(pattern) for pattern in BENIGN])


def excusable(outline: str) -> bool:
    """Whether a line of this outline may speak of trouble that is absent."""
    return _blurred_benign().found(outline)
