"""A write that fails with an I/O error on a file system that a `df` in the same log shows as full: the disk is full. Pure."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from triage.domain import JobLog, LogFile, LogLine, Signature
from triage.evidence.match import Best, Finding
from triage.heads import split

_USE = re.compile(
    r"^(?P<system>\S{1,200})\s+(?:\w{1,20}\s+)?[\d.]{1,12}[BKMGTPEi]{0,3}\s+[\d.]{1,12}[BKMGTPEi]{0,3}\s+(?P<free>\d{1,12}(?:\.\d{1,3})?)[BKMGTPEi]{0,3}"
    r"\s+(?P<use>\d{1,3})%\s+(?P<mount>/\S{0,200})\s*$"
)
_ALWAYS_FULL = re.compile(r"^(?:/dev/loop|squashfs|udev|cvmfs)|^/(?:snap|proc|sys|boot|cvmfs|cdrom)\b")
_PATH = re.compile(r"(?<![\w/.])/[\w.@+=-]{1,120}(?:/[\w.@+=-]{1,120}){0,20}")
_FRAME = re.compile(r'^\s*(?:\[?rank\s?\d+\]?:\s*)?File "')
_WRITES = re.compile(r"\b(?:[wW]r(?:ite|ote|iting)|[sS]av(?:e|ing)|[fF]lush|[cC]heckpoint|[fF]sync|[cC]lose)")
_FAILED = frozenset({"storage-error", "os-error", "runtime-error", "checkpoint-corrupt"})
_BEFORE = 25  # lines: a traceback, and what the program said before it wrote

FULL = Signature(
    id="st.full-by-df",
    title="the file system that was written to was full",
    patterns=(),
    failure_type="disk-full",
    root_cause_class="resource-exhaustion",
    role="root",
    remedy="Free space on it, then restart from the last checkpoint that is whole; keep fewer checkpoints.",
    component="storage",
    weight=78,
    check="df -h PATH; df -i PATH on the node that wrote",
)


@dataclass(frozen=True, slots=True)
class _Row:
    mount: str
    full: bool
    line: LogLine


def find(best: Best, log: JobLog) -> Iterator[Finding]:
    """The last row of `df` before such a write, where it shows the file system of the write as full."""
    for file in log.files:
        failed = [f for key, f in best.items() if key[0] == file.name and _may_be_write(f)]
        rows = list(_rows(file)) if failed else []
        for finding in failed if any(row.full for row in rows) else ():
            around = _around(finding, file)
            row = _of_write(rows, finding, around) if any(_WRITES.search(line.text) for line in around) else None
            if row is not None and row.full:
                yield Finding(row.line, FULL, {"path": f"{row.mount}/"})  # a folder, by its end


def _may_be_write(finding: Finding) -> bool:
    return finding.signature.role == "root" and finding.signature.failure_type in _FAILED


def _around(finding: Finding, file: LogFile) -> tuple[LogLine, ...]:
    at = finding.line.number
    first = bisect.bisect_left(file.lines, at - _BEFORE, key=lambda line: line.number)
    return file.lines[first : bisect.bisect_right(file.lines, at, key=lambda line: line.number)]


def _rows(file: LogFile) -> Iterator[_Row]:
    for line in file.lines:
        row = _USE.match(split(line.text)[1]) if "%" in line.text else None
        if row and not _ALWAYS_FULL.search(row["system"]) and not _ALWAYS_FULL.search(row["mount"]):
            yield _Row(row["mount"], row["use"] == "100" and float(row["free"]) == 0, line)


def _of_write(rows: Iterable[_Row], finding: Finding, around: Iterable[LogLine]) -> _Row | None:
    """The newest row, before the failure, of the file system on which a path lies that was named before the failure."""
    newest = {row.mount: row for row in rows if row.line.number < finding.line.number}
    named = {row.line.number for row in newest.values()}
    paths = [
        path
        for line in around
        if line.number not in named and not _FRAME.match(line.text)
        for path in _PATH.findall(line.text)
    ]
    found = [newest[mount] for path in paths if (mount := _mount(path, newest)) is not None]
    return max(found, key=lambda row: (row.full, row.line.number), default=None)


def _mount(path: str, mounts: Iterable[str]) -> str | None:
    held = [mount for mount in mounts if path == mount or path.startswith(mount.rstrip("/") + "/")]
    return max(held, key=len, default=None)
