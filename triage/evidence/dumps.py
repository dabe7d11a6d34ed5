"""Stacks as py-spy, faulthandler, gdb, the kernel and Python's trace module print them. Pure.

One file may hold the stacks of one process or of many, one after the other or mixed under labels, as `srun -l` and pdsh
give them, and several of one process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from triage.domain import LogFile, LogLine
from triage.evidence.whose import Labelled, Whose, by_label, pid_in_name, rank_in

_PROCESS = re.compile(r"^Process (\d{1,9}): ?(.*)")
_PYSPY = re.compile(r"^Thread (?:0x)?[0-9A-Fa-f]+ \((active|idle)[^)]{0,20}\)(?:: \"(.{0,200})\")?")
_FAULT = re.compile(r"^(?:Current )?[Tt]hread (0x[0-9a-f]+)(?: \[(.{0,80})\])? \(most recent call first\)")
_GDB = re.compile(
    r"^Thread (\d{1,6}) \((?:.{0,60}?\b(?:LWP|process) (\d{1,9}))?.{0,80}?\)?(?: \"(.{0,80})\")?\)?:?\s*$"
)
_TID = re.compile(r"^TID (\d{1,9}):\s*$")  # of eu-stack
_OF_TIDS = re.compile(r"^PID (\d{1,9}) - process\s*$")
_PYSPY_FRAME = re.compile(r"^ {4}(\S.{0,400}?) \(([^()]{1,300}?)(?::(\d{1,7}))?\)\s*$")
_FAULT_FRAME = re.compile(r"^ {2}File \"(.{1,400}?)\", line (\d{1,7}|\?\?\?) in (\S{1,300})")
_GDB_FRAME = re.compile(r"^#(\d{1,4}) +(?:0x[0-9a-f]+ in )?(\S[^(]{0,200}?) ?\(")
_TID_FRAME = re.compile(r"^#\d{1,4} +0x[0-9a-f]+(?: - \d)? +(?!in )(\S.{0,300}?)(?: - (/\S{1,300}))?\s*$")
_GDB_AT = re.compile(r"(?: at (\S{1,300}?):(\d{1,7})| from (\S{1,300}))\s*$")
_KERNEL_FRAME = re.compile(r"^\[<(?:0|[0-9a-f]{8,16})>\] ([\w.]{1,120})(?:\+0x|/|$)")
_TRACED = re.compile(r"^ ?--- modulename: ([\w.<>-]{1,200}), funcname: (\S{1,200})")
_ATTACHED = re.compile(r"(?:Attaching to (?:program: .{1,200}, )?process|Inferior 1 \(process) (\d{1,9})")
_COMPILED = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|pyx|rs|S|f90)$")  # sources of native code
# What says that a process let nobody look at it.
_REFUSED = re.compile(
    r"^(?:Error: )?(?P<a>Failed to suspend process|Failed to get process executable name|Permission Denied: Try running again"
    r"|Failed to (?:find|get|copy|open|attach|lock)\b.{0,80}|No such process)|^strace: attach: ptrace\(PTRACE_\w+, (?P<pid>\d{1,9})\)"
    r"|^ptrace: (?P<b>Operation not permitted|Input/output error)|^Could not attach to process"
    r"|^# (?:py-spy|gdb|strace) .{1,200}?(?:--pid|-p) (?P<asked>\d{1,9}): (?P<c>\S.*)"
)
_REASON = re.compile(r"^Reason: |EPERM|Operation not permitted")
_COMMAND = re.compile(r"\b(?:py-spy dump|strace|gdb)\b.{0,80}?(?:--pid[= ]|-p ?)(\d{1,9})\b")


@dataclass(frozen=True, slots=True)
class Frame:
    function: str
    file: str  # of the source or of the library; "" where unknown
    number: int | None  # of the line in it
    line: LogLine
    native: bool = False


@dataclass(slots=True)
class Thread:
    """frames: the innermost first."""

    name: str
    head: LogLine
    frames: list[Frame] = field(default_factory=list)


@dataclass(slots=True)
class Dump:
    """One look at one process. One that was cut off has neither threads nor what the kernel tells. refused: the line that says that it did not work, with `denied` where no permission was given."""

    head: LogLine
    pid: int | None
    rank: int | None
    node: str | None
    command: str = ""
    threads: list[Thread] = field(default_factory=list)
    kernel: list[Frame] = field(default_factory=list)
    refused: LogLine | None = None
    denied: bool = False

    @property
    def main(self) -> Thread | None:
        """The main thread: by its name, by where it begins; faulthandler prints it last."""
        named = [t for t in self.threads if t.name == "MainThread" or t.name.startswith("1 ")]
        begun = [t for t in self.threads if t.frames and t.frames[-1].function in ("<module>", "_run_module_as_main")]
        return next(iter(named or begun or self.threads[-1:]), None)


def dumps(file: LogFile) -> list[Dump]:
    """All of a file, in order."""
    if file.kind in ("binary", "empty", "flight-recorder", "kernel", "sacct", "kubernetes"):
        return []
    found: list[Dump] = []
    for stream in by_label(file):
        reader = _Reader(file, stream)
        for line, text in stream.lines:
            reader.take(line, text)
        found += reader.found
    return [d for d in found if d.threads or d.kernel or d.refused or d.command]


class _Reader:
    """State over the lines of one stream of a file."""

    def __init__(self, file: LogFile, stream: Labelled) -> None:
        self.found: list[Dump] = []
        self._file = file
        self._stream = stream
        self._pid = pid_in_name(file.name)
        self._whose = Whose(file)
        self._rank: int | None = None  # that was named since the last dump
        self._dump: Dump | None = None
        self._thread: Thread | None = None
        self._asked: int | None = None
        self._seen: set[str] = set()  # threads of the dump

    def take(self, line: LogLine, text: str) -> None:
        self._whose.take(text)
        if self._frame(line, text) or self._head(line, text) or self._refusal(line, text):
            return
        if text.strip():
            self._thread = None if not text.startswith(" ") else self._thread
            self._rank = rank_in(text) if rank_in(text) is not None else self._rank
            if asked := _COMMAND.search(text):
                self._asked = int(asked[1])
            if (attached := _ATTACHED.search(text)) and self._dump and self._dump.pid is None:
                self._dump.pid = int(attached[1])

    # ------------------------------------------------------------------------------------------ heads
    def _head(self, line: LogLine, text: str) -> bool:
        if process := _PROCESS.match(text) or _OF_TIDS.match(text):
            self._begin(line, int(process[1]), process[2] if process.re is _PROCESS else "")
            return True
        thread = self._thread_name(text)
        if thread is None:
            return False
        name, key, pid = thread
        if self._dump is None or key in self._seen or (self._dump.refused and not self._dump.threads):
            self._begin(line, self._pid, "")
        dump = self._dump
        if dump is None:
            return False
        if pid is not None and name.startswith("1 "):
            dump.pid = pid
        self._seen.add(key)
        self._thread = Thread(name, line)
        dump.threads.append(self._thread)
        return True

    def _thread_name(self, text: str) -> tuple[str, str, int | None] | None:
        """(name, what it is known by, pid)"""
        if tid := _TID.match(text):
            is_first = self._dump is not None and self._dump.pid == int(tid[1])
            return f"{1 if is_first else tid[1]} ", f"tid {tid[1]}", None
        if not text.startswith(("Thread ", "Current thread", "thread ")):
            return None
        if found := _PYSPY.match(text):
            return found[2] or "", text.split(" (", 1)[0], None
        if found := _FAULT.match(text):
            return found[2] or "", found[1], None
        if found := _GDB.match(text):
            return f"{found[1]} {found[3] or ''}", f"gdb {found[1]}", int(found[2]) if found[2] else None
        return None

    def _begin(self, line: LogLine, pid: int | None, command: str) -> Dump:
        rank = rank_in(command) if command else None
        said = self._stream.rank if self._stream.rank is not None else line.rank
        rank = next((r for r in (rank, self._rank, said, self._file.rank) if r is not None), None)
        node = self._stream.node or line.node or self._whose.node
        self._dump = Dump(line, pid if pid is not None else self._pid, rank, node, command)
        self._thread, self._rank, self._seen = None, None, set()
        self.found.append(self._dump)
        return self._dump

    # ------------------------------------------------------------------------------------------ frames
    def _frame(self, line: LogLine, text: str) -> bool:
        if text.startswith("[<") and (kernel := _KERNEL_FRAME.match(text)):
            dump = self._dump or self._begin(line, self._pid, "")
            dump.kernel.append(Frame(kernel[1], "kernel", None, line, native=True))
            return True
        if text.lstrip().startswith("--- modulename") and (traced := _TRACED.match(text)):
            self._traced(line, Frame(traced[2], f"{traced[1]}.py", None, line))
            return True
        frame = self._python(line, text) if text.startswith("  ") else self._gdb(line, text)
        if frame is None:
            return False
        if self._thread is None:
            if not text.startswith("#"):
                return False
            if self._dump is None or text.startswith("#0 "):  # gdb's `bt` alone
                self._begin(line, self._pid, "")
            self._thread = Thread("1 ", line)
            (self._dump or self.found[-1]).threads.append(self._thread)
        self._thread.frames.append(frame)
        return True

    @staticmethod
    def _python(line: LogLine, text: str) -> Frame | None:
        if found := _PYSPY_FRAME.match(text):
            native = found[3] is None or bool(_COMPILED.search(found[2]))
            return Frame(found[1], found[2], int(found[3]) if found[3] else None, line, native)
        if found := _FAULT_FRAME.match(text):
            return Frame(found[3], found[1], int(found[2]) if found[2].isdecimal() else None, line)
        return None

    @staticmethod
    def _gdb(line: LogLine, text: str) -> Frame | None:
        if not text.startswith("#"):
            return None
        if found := _TID_FRAME.match(text):
            return Frame(found[1], found[2] or "", None, line, native=True)
        if (found := _GDB_FRAME.match(text)) is None:
            return None
        at = _GDB_AT.search(text)
        return Frame(found[2], (at[1] or at[3]) if at else "", int(at[2]) if at and at[2] else None, line, native=True)

    def _traced(self, line: LogLine, frame: Frame) -> None:
        """Of a trace only the last calls tell where the process stands: of each file the innermost, the latest first."""
        dump = self._dump or self._begin(line, self._pid, "")
        if not dump.threads:
            dump.threads.append(Thread("MainThread", line))
        dump.threads[0].frames[:] = [frame]

    # ------------------------------------------------------------------------------------------ refusals
    def _refusal(self, line: LogLine, text: str) -> bool:
        refused = _REFUSED.match(text)
        if refused is None:
            if self._dump is not None and self._dump.refused and _REASON.search(text):
                self._dump.denied = True
                return True
            return False
        said = refused["pid"] or refused["asked"]
        pid = int(said) if said else None
        if self._dump is None or self._dump.threads or (pid and self._dump.pid != pid):
            self._begin(line, pid or self._asked or self._pid, "")
        dump = self._dump
        if dump is not None and dump.refused is None:
            dump.refused = line
            dump.denied = bool(_REASON.search(text))
        return True


def all_dumps(files: Iterable[LogFile]) -> Iterator[Dump]:
    for file in files:
        if file.kind in ("stacks", "processes") or _may_hold(file.lines):
            yield from dumps(file)


def _may_hold(lines: Sequence[LogLine]) -> bool:
    """Does a log quote stacks or what the tools say that take them?"""
    return any(
        "recent call first" in line.text or "(idle" in line.text or "(active" in line.text or "Failed to suspend" in line.text
        or "PTRACE_" in line.text
        for line in lines
    )  # fmt: skip
