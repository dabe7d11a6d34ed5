"""What structured loggers and container runtimes wrap into objects: the words of a JSON log line, line by line. Pure, linear."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_BEFORE = 200  # characters of stamps and labels that may stand before the object
_DEPTH = 3
_LINES = 400
# Where loggers, container runtimes and launchers put what a program says.
_KEYS = (
    "log", "msg", "message", "event", "error", "err", "error_message", "exception", "exc_info", "exc_text", "stack", "stack_trace",
    "stacktrace", "traceback", "py_callstack",
)  # fmt: skip
_OPENS = re.compile(r'\{\s?"[\w.@ -]{1,60}": ?')
_STRING = re.compile(rf'"(?:{"|".join(_KEYS)})": ?"((?:[^"\\]|\\.)*)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}
_CLASS = re.compile(r"(?:\w{1,80}\.){0,6}\w{0,80}(?:Error|Exception|Exit|Interrupt)")

# Lines that hold such words, whatever signatures find in them as they stand.
TELLING = (
    r'\{ ?"[\w.@ -]+": ?.*"(?:level|levelname|severity|lvl|log_level|log\.level)": ?"(?i:error|err|critical|fatal|panic|alert|emerg)',
    r'\{ ?"[\w.@ -]+": ?.*(?:Traceback \(most recent|\b[A-Z]\w*(?:Error|Exception)\b|File \\"[^"]*\\", line )',
)


def readings(text: str) -> tuple[str, ...]:
    """The lines that the program wrote, out of a line that is a JSON object or ends in one; none of any other line."""
    opened = _OPENS.search(text, 0, _BEFORE + 64)
    if opened is None or opened.start() > _BEFORE:
        return ()
    body = text[opened.start() :]
    try:
        words = list(_words(json.loads(body), _DEPTH))
    except (ValueError, RecursionError):  # one that was cut, or has more behind it
        words = [_ESCAPED.sub(lambda m: _PLAIN.get(m[1], m[1]), found[1]) for found in _STRING.finditer(body)]
    lines = (line for part in words for line in part.split("\n") if line.strip())
    return tuple(line for line, _ in zip(lines, range(_LINES), strict=False))


def _words(value: object, depth: int) -> Iterator[str]:
    if depth < 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from _words(item, depth - 1)
    elif isinstance(value, dict):
        raised = next((value[k] for k in ("exc_type", "type", "class", "name") if _is_class(value.get(k))), None)
        if raised is not None:
            said = next((str(value[k]) for k in ("exc_value", "message", "value", "msg") if k in value), "")
            yield f"{raised}: {said}"
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from _words(item, depth - 1)
            elif isinstance(item, str) and ("Traceback (most" in item or (raised is None and key.lower() in _KEYS)):
                yield item


def _is_class(value: object) -> bool:
    return isinstance(value, str) and bool(_CLASS.fullmatch(value))
