"""What loggers and container runtimes wrap: the words of a JSON object or of a logger's record, line by line. Pure, linear."""

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
    "stacktrace", "traceback", "py_callstack", "textpayload", "@message",
)  # fmt: skip
_OPENS = re.compile(r'\{\s?"[\w.@ -]{1,60}": ?')
_STRING = re.compile(rf'"(?:{"|".join(_KEYS)})": ?"((?:[^"\\]|\\.)*)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}
_CLASS = re.compile(r"(?:\w{1,80}\.){0,6}\w{0,80}(?:Error|Exception|Exit|Interrupt)")

# "... - name - LEVEL - words", "LEVEL:name:words", "... | LEVEL | place - words", "... level=LEVEL ... msg=words".
_RECORD = re.compile(
    r"(?:.{0,100}? - (?P<a>[A-Z]{4,8}) - |(?P<b>[A-Z]{4,8}):[\w.]{1,80}:|.{0,60}?\| (?P<c>[A-Z]{4,8}) {0,6}\| [\w.<>:/ -]{1,120}? - )"
)
_LOGFMT = re.compile(r'\blevel="?(\w{3,8})"?.{0,200}?\bmsg="((?:[^"\\]|\\.)*)')
_LOUD = frozenset({"ERROR", "CRITICAL", "FATAL", "SEVERE", "PANIC"})
_QUIET = frozenset({"DEBUG", "INFO", "WARNING", "WARN", "TRACE", "SUCCESS", "NOTICE"})

# Lines that hold such words, whatever signatures find in them as they stand.
TELLING = (
    r"(?: - (?:ERROR|CRITICAL|FATAL) - |^(?:ERROR|CRITICAL|FATAL):[\w.]+:|\| (?:ERROR|CRITICAL) *\|).*\b[A-Z]\w*(?:Error|Exception)\b",
    r'\blevel="?(?i:error|fatal|panic|critical)"?.*\bmsg=',
    r'(?: - [A-Z]+ - |^[A-Z]+:[\w.]+:|\| [A-Z]+ *\| .* - )\s*(?:File "[^"]*", line |(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|$))',
    r'\{ ?"[\w.@ -]+": ?.*"(?:level|levelname|severity|lvl|log_level|log\.level)": ?"(?i:error|err|critical|fatal|panic|alert|emerg)',
    r'\{ ?"[\w.@ -]+": ?.*(?:Traceback \(most recent|\b[A-Z]\w*(?:Error|Exception)\b|File \\"[^"]*\\", line )',
)


def readings(text: str, quiet: bool = False) -> tuple[str, ...]:
    """The lines that the program wrote, out of a line that is a JSON object or ends in one, or of a logger's record of an error.

    None of any other line. quiet: of records below an error too.
    """
    opened = _OPENS.search(text, 0, _BEFORE + 64)
    return _record(text, quiet) if opened is None or opened.start() > _BEFORE else _object(text, opened)


def _record(text: str, quiet: bool) -> tuple[str, ...]:
    if (found := _RECORD.match(text)) is not None:
        level, said = found[1] or found[2] or found[3], text[found.end() :]
    elif "msg=" in text and (found := _LOGFMT.search(text)) is not None:
        level, said = found[1].upper(), _unescaped(found[2])
    else:
        return ()
    return (said,) if level in _LOUD or (quiet and level in _QUIET) else ()


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda m: _PLAIN.get(m[1], m[1]), text)


def _object(text: str, opened: re.Match[str]) -> tuple[str, ...]:
    body = text[opened.start() :]
    try:
        words = list(_words(json.loads(body), _DEPTH))
    except (ValueError, RecursionError):  # one that was cut, or has more behind it
        words = [_unescaped(found[1]) for found in _STRING.finditer(body)]
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
