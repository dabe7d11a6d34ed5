"""What a probe saw, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from triage.probing.processes import RANK_NAMES

Key = tuple[str, int, int]  # node, pid, ticks from boot to the start

# Programs that start another and wait for it, in whatever way.
WRAPPERS = frozenset(
    ("sh", "bash", "dash", "zsh", "tcsh", "ksh", "fish", "timeout", "time", "env", "nice", "ionice", "numactl", "taskset", "chrt", "stdbuf", "script",
     "setsid", "nohup", "sudo", "su", "tini", "dumb-init", "docker-init", "xargs", "make", "conmon", "starter", "starter-suid", "singularity", "apptainer",
     "nsys", "srun", "mpirun", "mpiexec", "orterun", "prterun", "hydra_pmi_proxy", "orted", "prted", "torchrun", "accelerate", "deepspeed", "horovodrun")
)  # fmt: skip
# Programs that carry output.
PIPES = frozenset(("tee", "cat", "grep", "sed", "awk", "gawk", "mawk", "ts", "logger", "head", "tail", "rotatelogs", "multilog", "svlogd"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Process:
    """cpu, main_cpu: seconds of all threads and of the main one; io: bytes (rchar, wchar, read_bytes, write_bytes); None: not readable.

    ranks: what its environment says of its rank, by variable; None where that is not readable. outputs: files of its stdout and
    stderr; logs: others that it holds open to write. exit: of one that has ended and is still listed (state Z), as wait() gives it.
    """

    node: str
    pid: int
    ppid: int
    start: int
    comm: str
    name: str
    state: str
    wchan: str = ""
    call: str = ""
    cpu: float = 0.0
    main_cpu: float | None = None
    threads: int = 1
    io: tuple[int, int, int, int] | None = None
    main_io: tuple[int, int, int, int] | None = None
    ranks: Mapping[str, int] | None = field(default_factory=dict)
    frozen: bool = False
    outputs: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    exit: int | None = None

    @property
    def told(self) -> str:
        """By number and program, for a person."""
        return f"pid {self.pid} ({self.name})"

    @property
    def key(self) -> Key:
        return (self.node, self.pid, self.start)


@dataclass(frozen=True, slots=True)
class Device:
    """util: %; power: W; None: not told. pids: of what computes on it; None: not told."""

    node: str
    kind: str
    index: str
    util: float | None = None
    power: float | None = None
    throttled: str = ""
    pids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Sockets:
    """Of a process. listens: ports and paths that it takes connections at; connected: how many it has, beside its standard streams."""

    listens: tuple[str, ...] = ()
    connected: int = 0


@dataclass(frozen=True, slots=True)
class NodeView:
    """devices, sockets (by pid): None where they were not asked for; absent: why there are no readings; problem: why the node is not
    seen at all; ended: how those ended, as wait() gives it, that were there at the last look; empty where the kernel does not tell."""

    node: str
    processes: tuple[Process, ...] = ()
    devices: tuple[Device, ...] | None = None
    absent: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    sockets: Mapping[int, Sockets] | None = None
    ended: Mapping[Key, int] = field(default_factory=dict)


def node_view(node: str, answer: Mapping[str, Any]) -> NodeView:
    """Errors: KeyError, TypeError, ValueError: it is no answer of a probe."""
    devices = answer["devices"]
    return NodeView(
        node,
        tuple(_process(node, found) for found in answer["processes"]),
        None if devices is None else tuple(_device(node, found) for found in devices),
        tuple(str(why) for why in answer["absent"]),
        {str(path): int(size) for path, size in answer["sizes"].items()},
        sockets=None if answer.get("sockets") is None else _sockets(answer["sockets"]),
    )


def _sockets(found: Mapping[str, Any]) -> dict[int, Sockets]:
    return {int(pid): Sockets(tuple(map(str, listens)), int(connected)) for pid, (listens, connected) in found.items()}


def _process(node: str, found: Mapping[str, Any]) -> Process:
    ranks = found["ranks"]
    return Process(
        node=node,
        pid=int(found["pid"]),
        ppid=int(found["ppid"]),
        start=int(found["start"]),
        comm=str(found["comm"]),
        name=str(found["name"]),
        state=str(found["state"]),
        wchan=_wchan(found["wchan"]),
        call=str(found["call"] or ""),
        cpu=float(found["cpu"]),
        main_cpu=None if found["main_cpu"] is None else float(found["main_cpu"]),
        threads=int(found["threads"]),
        io=_four(found["io"]),
        main_io=_four(found["main_io"]),
        ranks=None if ranks is None else {str(name): int(rank) for name, rank in ranks.items()},
        frozen=bool(found["frozen"]),
        outputs=tuple(found["outputs"]),
        logs=tuple(found["logs"]),
        exit=None if found["exit"] is None else int(found["exit"]),
    )


def _wchan(text: Any) -> str:
    return "" if text in (None, "0") else str(text)


def _four(numbers: Any) -> tuple[int, int, int, int] | None:
    if numbers is None:
        return None
    a, b, c, d = map(int, numbers)
    return (a, b, c, d)


def _device(node: str, found: Mapping[str, Any]) -> Device:
    pids = found["pids"]
    return Device(
        node,
        str(found["kind"]),
        str(found["index"]),
        found["util"],
        found["power"],
        str(found["throttled"]),
        None if pids is None else tuple(map(int, pids)),
    )


def ranks_of(processes: Iterable[Process]) -> dict[int, Process]:
    """Each rank's own process: of those that carry its number the topmost, below the launchers and shells that carry it too.

    The number is that of the variable that is nearest to the program: torchrun sets RANK under a SLURM_PROCID of its own. {}: no
    number is that of one rank, as where each node counts its own.
    """
    listed = [process for process in processes if process.ranks and process.state != "X"]
    named = next((name for name in RANK_NAMES if any(name in (p.ranks or ()) for p in listed)), "")
    numbers = {p.key: number for p in listed if (number := (p.ranks or {}).get(named)) is not None}
    if named == "LOCAL_RANK" and len({node for node, _, _ in numbers}) > 1:
        return {}
    found = [process for process in listed if process.key in numbers]
    places = {(process.node, process.pid): process.key for process in found}
    above = {process.key: places.get((process.node, process.ppid)) for process in found}
    # What has a number of its own and started another: an operator of Kubernetes gives a launcher that of its pod.
    launchers = {at for key, at in above.items() if at is not None and numbers[at] != numbers[key]}
    by_rank: dict[int, list[Process]] = {}
    for process in found:
        if process.key not in launchers:
            by_rank.setdefault(numbers[process.key], []).append(process)
    return {rank: _own(mine) for rank, mine in sorted(by_rank.items())}


def _own(mine: list[Process]) -> Process:
    places = {(process.node, process.pid) for process in mine}
    tops = [process for process in mine if (process.node, process.ppid) not in places]
    at = min(tops or mine, key=lambda p: p.start)  # a number that was given anew while we read makes a circle
    for _ in mine:
        below = [p for p in mine if (p.node, p.ppid) == (at.node, at.pid) and p.comm not in PIPES]
        if at.comm not in WRAPPERS or not below:
            break
        at = max(below, key=lambda p: (p.start, p.pid))
    return at
