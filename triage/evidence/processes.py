"""The job's own processes by number and name, as its ranks and launchers tell them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from triage.domain import JobLog, LogLine
from triage.evidence.fallen import Fallen

Place = tuple[str, int]  # host without its domain, process number

_NCCL = re.compile(r"(?:^|\s)([A-Za-z0-9][\w.-]{0,80}):(\d{1,8}):\d{1,8} \[\d+\] NCCL (.{0,2000})")
_RANK = re.compile(r"\brank (\d{1,6}) nranks \d")
_PYTHON = re.compile(r"\bpython[\d.]*\b|\.py\b|^\s*File \"|Traceback \(most recent|\btorch\b|\bNCCL\b")
# Names that the kernel gives processes of Python programs: of the interpreter, of what sets its own title, of helpers.
_OF_PYTHON = re.compile(
    r"python|pt_|pytorch|torch|ray\b|ray::|raylet|gcs_server|IDLE|jax|deepspeed|accelerate|vllm|VLLM|sglang|wandb|nccl|cuda|t5x"
    r"|(?:ba|da)?sh$|ptxas|cicc|ninja|gcc|cc1|nvcc",
)
# What looks after a node and touches every GPU: its name beside a fault says nothing of whose it is.
_OF_NODE = re.compile(
    r"nvidia|nv-|nv_|dcgm|kworker|irq|systemd|slurm|pbs_|kubelet|containerd|node_exporter|<unknown>|\[unknown|swapper|rcu|Xorg|telegraf|collectl"
)
_LOOKED_AT = 20_000  # lines of each file


@dataclass(frozen=True, slots=True)
class Processes:
    """ranks: of each process that a line of the job names, None where no line says its rank; python: the job runs Python."""

    ranks: Mapping[Place, int | None] = field(default_factory=dict)
    python: bool = False
    words: frozenset[str] = frozenset()

    def rank(self, node: str | None, pid: int) -> tuple[str, int] | None:
        """The node and rank of a process; None where no line tells, or several nodes have one of this number."""
        here = [(host, r) for (host, p), r in self.ranks.items() if p == pid and r is not None]
        if node:
            here = [(host, r) for host, r in here if host == short(node)]
        return here[0] if len(here) == 1 else None

    def has(self, node: str | None, pid: int) -> bool:
        return any(p == pid and (not node or host == short(node)) for host, p in self.ranks)

    def foreign(self, name: str) -> bool:
        """Is a process of this name none that this job can have started? No where the log does not tell what it runs."""
        if not name or _OF_NODE.match(name) or not (self.python or self.words):
            return False
        if self.python and _OF_PYTHON.match(name):
            return False
        return name not in self.words and not any(word.startswith(name) for word in self.words if len(name) == 15)


def short(node: str) -> str:
    """Schedulers know a node by its first name; an address stays whole."""
    return node if node.replace(".", "").isdecimal() else node.split(".", 1)[0]


def processes(log: JobLog, gone: Iterable[Fallen], asked: Iterable[str] = ()) -> Processes:
    """asked: names of processes to look for among the words of the job's own lines."""
    ranks: dict[Place, int | None] = {}
    for report in gone:
        if report.pid and report.node:
            ranks[short(report.node), report.pid] = report.ranks[0] if len(report.ranks) == 1 else None
    names = {name for name in asked if name}
    python, words = False, set[str]()
    for file in log.files:
        if file.kind != "job":
            continue
        for line in file.lines[:_LOOKED_AT]:
            _of_nccl(line, ranks)
            python = python or bool(_PYTHON.search(line.text))
            words |= {name for name in names - words if re.search(rf"(?<![\w-]){re.escape(name)}", line.text)}
    return Processes(ranks, python, frozenset(words))


def _of_nccl(line: LogLine, ranks: dict[Place, int | None]) -> None:
    if "NCCL" not in line.text or (found := _NCCL.search(line.text[:2200])) is None:
        return
    place = short(found[1]), int(found[2])
    said = _RANK.search(found[3])
    rank = int(said[1]) if said else line.rank
    if said or ranks.get(place) is None:
        ranks[place] = rank
