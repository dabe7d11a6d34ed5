"""Python tracebacks out of kept lines: interleaved ranks, tagged lines, chained exceptions, exception groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from triage.domain import LogLine
from triage.heads import split
from triage.structured import readings

_START = re.compile(r"Traceback \(most recent call last\):?\s*$")
_FRAME = re.compile(
    r'^\s*(?:[|+-]\s*)*File "(?P<file>[^"]{1,400})", line (?P<line>\d{1,7})(?:, in (?P<func>\S{1,120}))?'
)
_ENDS = re.compile(r"^(?:[|+-]\s*)*(?P<cls>(?:[A-Za-z_]\w{0,60}\.){0,10}[A-Za-z_]\w{0,80})(?:: (?P<msg>.*)|:?\s*)$")
_CAUSE = "The above exception was the direct cause"
_CONTEXT = "During handling of the above exception"
_LOOKS_LIKE_CLASS = re.compile(
    r"(?:Error|Exception|Exit|Interrupt|Failure|Fault|Timeout|Warning|Iteration|Group|Killed|NotFound|Abort\w*)$"
)
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib(?:64)?/python\d|^<|/importlib/|/runpy\.py$")
MAX_LINES = 400  # a traceback longer than this is given up


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; log_line is where it stands in the log, source the line of code printed under it."""

    file: str
    line: int
    function: str
    log_line: LogLine
    source: str = ""


@dataclass(frozen=True, slots=True)
class Traceback:
    """One raised exception. `end` is the line with the class name; `links` how it hangs on the one before it."""

    start: LogLine
    end: LogLine
    exception: str  # class name without modules
    message: str
    frames: tuple[Frame, ...]
    stream: str
    previous: Traceback | None = None
    link: str = ""  # "", "cause" or "context"

    @property
    def own_frame(self) -> Frame | None:
        """The deepest frame of the user's own code: not of an installed package or the interpreter."""
        own = [f for f in self.frames if not _INSTALLED.search(f.file)]
        return own[-1] if own else None

    @property
    def first(self) -> Traceback:
        """The exception that the chain began with."""
        return self.previous.first if self.previous else self


@dataclass(slots=True)
class _Open:
    start: LogLine
    frames: list[Frame] = field(default_factory=list)
    lines: int = 0
    previous: Traceback | None = None
    link: str = ""


def find_tracebacks(lines: Iterable[LogLine]) -> list[Traceback]:
    """All complete tracebacks of one file, in order of their last line."""
    return list(_scan(lines))


def _scan(lines: Iterable[LogLine]) -> Iterator[Traceback]:
    opened: dict[str, _Open] = {}
    last: dict[str, tuple[Traceback, str]] = {}  # stream -> last finished one and the link word seen since
    for line, text in _read(lines):
        stream, body = split(text)
        if _START.search(text):
            previous, link = last.get(stream, (None, ""))
            opened[stream] = _Open(line, previous=previous if link else None, link=link)
            continue
        current = opened.get(stream)
        if current is None:
            if stream in last and (_CAUSE in body or _CONTEXT in body):
                last[stream] = (last[stream][0], "cause" if _CAUSE in body else "context")
            continue
        done = _advance(current, line, body, stream)
        if done is not None:
            last[stream] = (done, "")
            yield done
        if done is not None or current.lines > MAX_LINES:
            del opened[stream]


def _read(lines: Iterable[LogLine]) -> Iterator[tuple[LogLine, str]]:
    """Each line with its text, or with each of those that it wraps."""
    for line in lines:
        for text in readings(line.text, quiet=True) or (line.text,):
            yield line, text


def _advance(current: _Open, line: LogLine, body: str, stream: str) -> Traceback | None:
    current.lines += 1
    frame = _FRAME.match(body)
    if frame:
        current.frames.append(Frame(frame["file"], int(frame["line"]), frame["func"] or "", line))
        return None
    if not body or body[0] in " \t":
        if current.frames and not current.frames[-1].source and body.strip(" \t~^"):
            current.frames[-1] = replace(current.frames[-1], source=body.strip())
        return None  # the source line of a frame, or its markers
    end = _ENDS.match(body)
    if not end or not (current.frames or _LOOKS_LIKE_CLASS.search(end["cls"])):
        return None  # another stream's line in between
    if not _LOOKS_LIKE_CLASS.search(end["cls"]) and not _plausible_class(end["cls"]):
        return None
    name = end["cls"].rsplit(".", 1)[-1]
    return Traceback(
        current.start,
        line,
        name,
        (end["msg"] or "").strip(),
        tuple(current.frames),
        stream,
        current.previous,
        current.link,
    )


def _plausible_class(name: str) -> bool:
    last = name.rsplit(".", 1)[-1]
    return "." in name and last[:1].isupper() and not last.isupper()
