"""A raw line made readable: decoded, no colours or control characters, progress bars at their last state. Pure."""

from __future__ import annotations

import re

MAX_TEXT = 16_000
MAX_DECODED = 262_144
OVERWRITTEN = " ⏎ "  # stands between the states of a line that a carriage return overwrote
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\-_=>78])"
)
_ESCAPED_ANSI = re.compile(r"#033\[[0-9;]{0,32}[mK]|\\u001b\[[0-9;]{0,32}[mK]")
# Bidirectional overrides and the like would let a log line redraw the terminal of who reads the report.
_UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060\u2066-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\u034f\u180e\u2061-\u2064\u206a-\u206f\ufe00-\ufe0f]"
)
_BAR = re.compile(
    r"%\||\d%|\d/[\d?]+ \[|[\d?] ?[A-Za-z]{1,12}/s\b|\ds/ ?[a-z]|\b(?:eta|ETA)\b|\d ?[kKMGT]?i?B of "
    r"|[━█▏▎▍▌▋▊▉]|\[[=>.#-]{5,}\]"
)
_ERROR = re.compile(
    r"(?i)error|exception|traceback|fail|fatal|killed|abort|cancel|\bnan\b|warn|signal|terminated|denied|refused"
)
_NO_LETTER = re.compile(r"[\W\d]+")
_MAX_STATES = 12


def readable(raw: bytes) -> str:
    """The text of a line: at most MAX_TEXT characters, without escape sequences and control characters but tabs."""
    if len(raw) > MAX_DECODED:
        raw = cut_middle_bytes(raw, MAX_DECODED)
    text = raw.decode("utf-8", "replace")
    if text.isprintable():
        return text if text.isascii() else _UNSEEN.sub("", text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "033[" in text or "u001b[" in text:
        text = _ESCAPED_ANSI.sub("", text)
    if "\r" in text:
        text = _last_states(text)
    return _UNSEEN.sub("", text).rstrip()


def cut_middle(text: str, limit: int = MAX_TEXT) -> str:
    """At most `limit` characters: the middle gives way, as the ends of a long line say most."""
    if len(text) <= limit:
        return text
    mark = f" ...[{len(text) - limit} characters left out]... "
    keep = limit - len(mark)
    return text[: keep - keep // 3] + mark + text[len(text) - keep // 3 :]


def cut_middle_bytes(raw: bytes, limit: int) -> bytes:
    return raw[: limit - limit // 3] + b" ... " + raw[len(raw) - limit // 3 + 5 :]


def _last_states(text: str) -> str:
    """What a terminal would show, and the overwritten states that say more than the same bar at another count."""
    states = [state for state in text.split("\r") if state.strip()]
    if not states:
        return ""
    *before, last = states
    kept: dict[str, str] = {}
    for state in before:
        if _ERROR.search(state) or not _BAR.search(state):
            kept[_wording(state)] = state.strip()
    kept.pop(_wording(last), None)
    if not kept:
        return last
    shown = list(kept.values())
    if len(shown) > _MAX_STATES:
        shown = shown[: _MAX_STATES // 2] + shown[-_MAX_STATES // 2 :]
    return OVERWRITTEN.join([*shown, last])


def _wording(state: str) -> str:
    return _NO_LETTER.sub("", state)
