"""What state processes are in: rows of ps and top, /proc/PID/status and wchan. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from triage.domain import LogFile, LogLine
from triage.evidence.whose import Whose, by_label, local_rank_in, look_of, pid_in_name, rank_in

_COLUMNS = {"pid": "pid", "ppid": "ppid", "stat": "stat", "s": "stat", "state": "stat", "wchan": "wchan"}
_LAST = frozenset({"cmd", "command", "args", "comm"})
_AS_ASKED = re.compile(r"\bps\b[^|]{0,80}? -?\w{0,6}o[ =]?([a-z%+][\w:,=%+]{3,200})")
_NUMBER = re.compile(r"\d{1,9}")
_STATE = re.compile(r"[DRSTtZIXKWP][<NLsl+]{0,6}")
_AUX = re.compile(
    r"^\S+\s+(?P<pid>\d{1,9})\s+[\d.]+\s+[\d.]+\s+\d+\s+\d+\s+\S+\s+(?P<stat>[DRSTtZIX][<NLsl+]{0,6})\s+\S+\s+[\d:-]+\s+(?P<cmd>\S.*)"
)
_STATUS = re.compile(r"^State:\s+([A-Za-z]) \(")
_STAT_FILE = re.compile(r"^(\d{1,9}) \((.{1,60})\) ([DRSTtZIX]) \d")
_WCHAN = re.compile(r"^(?:# ?)?wchan\b[:= ]{1,3}(?:/\S+:? )?([A-Za-z_][\w.]{2,80})\s*$")
_BARE = re.compile(r"^([a-z_][\w.]{2,80})\s*$")
_PID = re.compile(r"^Pid:\s+(\d{1,9})")
_PARENT = re.compile(r"^PPid:\s+(\d{1,9})")
_HEADED = re.compile(r"^(?:==|#) ?/proc/(\d{1,9})/(\w+)|^(?:==|#) ?(?:\w+ )?(wchan)\b")

STORAGE = re.compile(
    r"nfs|^rpc_|__rpc|sunrpc|^ll_|cl_sync_io|ptlrpc|^osc_|^lov_|ldlm|lustre|gpfs|mmfs|cxi[A-Z]|kSFS|fuse|request_wait_answer|ceph|beegfs|weka"
    r"|cifs|smb2|wait_for_response|io_schedule|bit_wait_io|wait_on_page|folio_wait|wait_on_bit_io|jbd2|^xfs_|^ext4_|blk_|bio_|netfs|v9fs|p9_|autofs"
)
DRIVER = re.compile(r"nvidia|_nv\d{3,8}rm|^os_acquire|^nv_|uvm_|amdgpu|kfd_|habanalabs|davinci|devdrv|^drm_")
SLEEPS = re.compile(r"nanosleep")
_TELLS = re.compile(r"\bPID\b.{0,60}\bS(?:TAT)?\b|^State:\t")  # a log that quotes ps
_NO_PLACE = frozenset({"-", "0", "?"})


@dataclass(frozen=True, slots=True)
class State:
    """letter: as ps has it, D uninterruptible, T stopped, t traced, Z ended and not reaped; wchan: "" where unknown; look: at
    which look at the job it was so, from 1 on."""

    pid: int
    letter: str
    wchan: str
    command: str
    line: LogLine
    node: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    parent: int | None = None
    look: int = 1


def states(files: Iterable[LogFile]) -> Iterator[State]:
    for file in files:
        if file.kind in ("processes", "stacks") or (
            file.kind == "job" and any(_TELLS.search(x.text) for x in file.lines)
        ):
            for stream in by_label(file):
                for state in _of_stream(file, stream.lines, stream.node):
                    yield replace(state, look=look_of(file.name))


def _of_stream(file: LogFile, lines: list[tuple[LogLine, str]], node: str | None) -> Iterator[State]:
    whose, columns = Whose(file), list[str]()
    status = _Status(pid_in_name(file.name))
    for line, text in lines:
        whose.take(text)
        here = node or line.node or whose.node
        if asked := _AS_ASKED.search(text):
            columns = [name.split(":")[0].rstrip("=") for name in asked[1].lower().split(",")]
        elif (header := _header(text)) is not None:
            columns = header
        elif (row := _row(text, columns) if columns else None) or (row := _aux(text)):
            yield _state(row, line, here)
        elif not text.strip() and columns and not text:
            columns = []
        elif found := status.take(line, text, here):
            yield found
    if found := status.end(node or whose.node):
        yield found


def _header(text: str) -> list[str] | None:
    words = text.split()
    if not 3 <= len(words) <= 24 or "PID" not in words:
        return None
    named = [word.lower() for word in words]
    return named if any(name in ("stat", "s", "state") for name in named) else None


def _row(text: str, columns: list[str]) -> dict[str, str] | None:
    if not text[:1].isspace() and not text[:1].isalnum():
        return None
    words = text.split(None, len(columns) - 1)
    if len(words) < min(len(columns), 3):
        return None
    row = {
        _COLUMNS.get(name, "cmd" if name in _LAST else name): word for name, word in zip(columns, words, strict=False)
    }
    fits = _NUMBER.fullmatch(row.get("pid", "")) and _STATE.fullmatch(row.get("stat", ""))
    return row if fits else None


def _aux(text: str) -> dict[str, str] | None:
    """A row of `ps aux` that a grep left without its header."""
    found = _AUX.match(text)
    return {k: v for k, v in found.groupdict().items() if v} if found else None


def _state(row: dict[str, str], line: LogLine, node: str | None) -> State:
    command, wchan = row.get("cmd", ""), row.get("wchan", "")
    parent = row.get("ppid", "")
    return State(
        int(row["pid"]),
        row["stat"][0],
        "" if wchan in _NO_PLACE else wchan,
        command,
        line,
        node,
        rank_in(command),
        local_rank_in(command),
        int(parent) if _NUMBER.fullmatch(parent) else None,
    )


class _Status:
    """What a file about one process says, from /proc/PID."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._letter = self._wchan = self._name = ""
        self._line: LogLine | None = None
        self._parent: int | None = None
        self._headed = False

    def take(self, line: LogLine, text: str, node: str | None) -> State | None:
        if stat := _STAT_FILE.match(text):
            return State(int(stat[1]), stat[3], "", stat[2], line, node)
        if state := _STATUS.match(text):
            self._letter, self._line = state[1], line
        elif text.startswith("Name:"):
            self._name = text[5:].strip()
        elif pid := _PID.match(text):
            self._pid = int(pid[1]) if self._pid is None else self._pid
        elif parent := _PARENT.match(text):
            self._parent = int(parent[1])
        elif said := _WCHAN.match(text) or (_BARE.match(text) if self._headed else None):
            self._wchan = said[1]
            self._line = self._line or line
        headed = _HEADED.match(text)
        self._headed = headed is not None and "wchan" in headed.groups()
        if headed and headed[1] and self._pid is None:
            self._pid = int(headed[1])
        return None

    def end(self, node: str | None) -> State | None:
        if self._pid is None or self._line is None:
            return None
        return State(self._pid, self._letter, self._wchan, self._name, self._line, node, parent=self._parent)
