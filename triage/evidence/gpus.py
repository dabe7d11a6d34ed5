"""How busy GPUs were and which process held which, as nvidia-smi (table, -q, CSV), rocm-smi and npu-smi print it. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from triage.domain import LogFile, LogLine
from triage.evidence.whose import Whose, by_label

_TABLE_GPU = re.compile(r"^\|\s+(\d{1,3})\s{1,4}\S.{1,60}?\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]{7})\s")
_COUNT = re.compile(r"\d{1,9}")
_TABLE_USE = re.compile(r"^\|.{10,60}\|\s*(\d{1,8})MiB\s*/\s*\d+MiB\s*\|\s*(\d{1,3})%\s")
_TABLE_PROCESS = re.compile(
    r"^\|\s+(\d{1,3})\s+\S+\s+\S+\s+(\d{1,9})\s+(?:C|C\+G|M\+C)\s+(\S.*?)\s+(?:\d+MiB|N/A)\s*\|"
)
_ASKED = re.compile(r"--query-gpu=([\w.,]{3,300})")
_CSV_HEAD = re.compile(r"^[\w.]+(?: \[[\w%]+\])?(?:, [\w.]+(?: \[[\w%]+\])?)*\s*$")
_QUERY_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]{7})\s*$")
_QUERY_USE = re.compile(r"^\s+Gpu\s+: (\d{1,3}) %")
_QUERY_MEMORY = re.compile(r"^\s+Used\s+: (\d{1,8}) MiB")
_QUERY_PROCESS = re.compile(r"^\s+Process ID\s+: (\d{1,9})")
_ROCM = re.compile(r"^(\d{1,3})\s+\S.*\s(\d{1,3})%\s*$")
_NPU = re.compile(r"^\|\s*(\d{1,3})\s+\S*9\d0\S*\s*\|\s*\w+\s*\|")
_NPU_USE = re.compile(
    r"^\|\s*\d{1,3}\s*\|\s*([0-9A-Fa-f]{4}:[0-9A-Fa-f:.]{7})\s*\|\s*(\d{1,3})\s.*?(\d{1,8})\s*/\s*\d+\s*\|"
)
_NPU_PROCESS = re.compile(r"^\|\s*(\d{1,3})\s+\d{1,3}\s*\|\s*(\d{2,9})\s*\|\s*\S+")
IDLE, BUSY = 5, 90  # per cent
_HELD = 1000  # MiB that a GPU of the job holds at least


@dataclass(frozen=True, slots=True)
class Gpu:
    """index: as the tool numbers it, None where only the bus is told; used: MiB of memory, None where not told."""

    index: int | None
    bus: str
    busy: int  # per cent
    used: int | None
    line: LogLine
    node: str | None


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A process that computes on a GPU."""

    index: int
    pid: int
    line: LogLine
    node: str | None


def read(files: Iterable[LogFile]) -> tuple[list[Gpu], list[OnGpu]]:
    """What all files say, in order."""
    gpus: list[Gpu] = []
    processes: list[OnGpu] = []
    for file in files:
        if file.kind not in ("fabric", "processes") and not (file.kind == "job" and any(map(_tells, file.lines))):
            continue
        for stream in by_label(file):
            for found in _of_stream(file, stream.lines, stream.node):
                (gpus if isinstance(found, Gpu) else processes).append(found)  # type: ignore[arg-type]
    return gpus, processes


def _tells(line: LogLine) -> bool:
    """Does a log quote such a tool?"""
    text = line.text
    return "-smi" in text or "-SMI" in text or "utilization.gpu" in text or "NVSMI" in text or "GPU%" in text


def idle_among_busy(gpus: Iterable[Gpu], processes: Iterable[OnGpu]) -> list[Gpu]:
    """The GPU that does nothing while all others of its node are busy, as those are that wait in a collective.

    A GPU that nobody holds is idle by right: it counts only with memory in use or a process on it.
    """
    held = {(p.node, p.index) for p in processes}
    by_node: dict[tuple[str | None, str], dict[object, Gpu]] = defaultdict(dict)
    for gpu in gpus:
        if gpu.index is not None:
            by_node[gpu.node, gpu.line.file if gpu.node is None else ""][gpu.index] = gpu
    found = []
    for of_node in by_node.values():
        idle = [g for g in of_node.values() if g.busy <= IDLE]
        busy = [g for g in of_node.values() if g.busy >= BUSY]
        if busy and len(idle) + len(busy) == len(of_node) and 0 < len(idle) * 3 <= len(busy):
            found += [g for g in idle if (g.node, g.index) in held or (g.used or 0) >= _HELD]
    return found


def _of_stream(file: LogFile, lines: list[tuple[LogLine, str]], node: str | None) -> Iterator[Gpu | OnGpu]:
    reader = _Reader(file, node)
    for line, text in lines:
        yield from reader.take(line, text)


class _Reader:
    def __init__(self, file: LogFile, node: str | None) -> None:
        self._whose = Whose(file)
        self._node = node
        self._of: tuple[int | None, str] | None = None  # the GPU whose figures follow
        self._used: int | None = None
        self._columns: list[str] = []
        self._row = 0
        self._query = -1  # GPUs of `nvidia-smi -q` so far
        self._rocm = self._npu = False

    def take(self, line: LogLine, text: str) -> Iterator[Gpu | OnGpu]:
        self._whose.take(text)
        node = self._node or line.node or self._whose.node
        if "NVSMI LOG" in text:
            self._query = -1
        if asked := _ASKED.search(text):
            self._columns, self._row = asked[1].split(","), 0
        elif text.startswith("|"):
            yield from self._table(line, text, node)
        elif text.startswith("GPU ") and (gpu := _QUERY_GPU.match(text)):
            self._query += 1
            self._of, self._used = (self._query, gpu[1].lower()), None
        elif self._query >= 0 and text.startswith(" "):
            yield from self._queried(line, text, node)
        elif "GPU%" in text or "utilization.gpu" in text:
            self._rocm = "GPU%" in text
            if _CSV_HEAD.match(text):
                self._columns, self._row = [name.split(" ")[0] for name in text.strip().split(", ")], 0
        elif self._columns and "," in text:
            yield from self._csv(line, text, node)
        elif self._rocm and (row := _ROCM.match(text)):
            yield Gpu(int(row[1]), "", int(row[2]), None, line, node)

    def _table(self, line: LogLine, text: str, node: str | None) -> Iterator[Gpu | OnGpu]:
        self._npu = self._npu or "npu-smi" in text
        if process := _TABLE_PROCESS.match(text):
            yield OnGpu(int(process[1]), int(process[2]), line, node)
        elif self._npu:
            yield from self._npu_table(line, text, node)
        elif gpu := _TABLE_GPU.match(text):
            self._of = int(gpu[1]), gpu[2].lower()
        elif self._of and (use := _TABLE_USE.match(text)):
            yield Gpu(*self._of, int(use[2]), int(use[1]), line, node)
            self._of = None

    def _npu_table(self, line: LogLine, text: str, node: str | None) -> Iterator[Gpu | OnGpu]:
        if npu := _NPU.match(text):
            self._of = int(npu[1]), ""
        elif self._of and (use := _NPU_USE.match(text)):
            yield Gpu(self._of[0], use[1].lower(), int(use[2]), int(use[3]), line, node)
            self._of = None
        elif process := _NPU_PROCESS.match(text):
            yield OnGpu(int(process[1]), int(process[2]), line, node)

    def _queried(self, line: LogLine, text: str, node: str | None) -> Iterator[Gpu | OnGpu]:
        if self._of is None:
            return
        if use := _QUERY_USE.match(text):
            yield Gpu(*self._of, int(use[1]), self._used, line, node)
        elif self._used is None and (memory := _QUERY_MEMORY.match(text)):
            self._used = int(memory[1])
        elif (process := _QUERY_PROCESS.match(text)) and self._of[0] is not None:
            yield OnGpu(self._of[0], int(process[1]), line, node)

    def _csv(self, line: LogLine, text: str, node: str | None) -> Iterator[Gpu]:
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) != len(self._columns):
            return
        row = dict(zip(self._columns, cells, strict=True))
        busy = row.get("utilization.gpu", "").split(" ")[0]
        index, used = row.get("index", str(self._row)), row.get("memory.used", "").split(" ")[0]
        if _COUNT.fullmatch(busy) and _COUNT.fullmatch(index):
            self._row += 1
            yield Gpu(int(index), "", int(busy), int(used) if _COUNT.fullmatch(used) else None, line, node)
