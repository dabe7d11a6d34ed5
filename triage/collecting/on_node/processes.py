"""The processes of a job on this node, and what /proc tells of each. Nothing of it opens a file of the job."""

import os
import re
import time
from typing import Dict, List, Optional

from triage.collecting.on_node.children import Finding, Look, attempt, run

MOST_THREADS = 512
MOST_FDS = 4096
# As in triage/probing/processes.py; what srun sets comes last, for mpirun and torchrun may be its tasks.
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK_ID", "SLURM_PROCID")
# Of the environment these alone are read: the others may be secrets.
SHOWN = re.compile(
    r"(?:(?:LOCAL_|GROUP_|ROLE_|NODE_)?RANK|RANK_ID|DEVICE_ID|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|JOB_COMPLETION_INDEX"
    r"|SLURM_(?:JOB_ID|STEP_ID|PROCID|LOCALID|NODEID|NTASKS|NNODES|NODELIST|RESTART_COUNT|ARRAY_\w+|HET_\w+)|SLURMD_NODENAME"
    r"|OMPI_COMM_WORLD_\w*(?:RANK|SIZE)|PMI_(?:RANK|SIZE)|PMIX_RANK|MPI_LOCALRANKID|OMP_NUM_THREADS|CUDA_LAUNCH_BLOCKING"
    r"|(?:CUDA|HIP|ROCR|ASCEND_RT)_VISIBLE_DEVICES|TORCHELASTIC_(?:RUN_ID|RESTART_COUNT)|TORCH_DISTRIBUTED_DEBUG"
    r"|(?:NCCL|RCCL|HCCL|TORCH_NCCL|TORCH_FR)_\w+)"
)
_MODES = ("r", "w", "rw", "?")
_KERNEL_THREAD = 0x00200000
_NO_STEP = 0xFFFFFFF0  # and above: the batch script and other steps that are not numbered


class Process:
    """A line of the table of processes. started: seconds since the epoch; env: what is SHOWN of it, once it was read; unread: the attempt that failed."""

    def __init__(self, pid: int, booted: float) -> None:
        text = proc(pid, "stat")
        fields = text[text.rindex(")") + 2 :].split()
        self.pid = pid
        self.comm = text[text.index("(") + 1 : text.rindex(")")]
        self.state, self.ppid = fields[0], int(fields[1])
        self.is_kernel = bool(int(fields[6]) & _KERNEL_THREAD)
        self.started = booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        # How it ended, as `wait` would tell whoever started it; 0 where that may not be read.
        self.ended: "Optional[int]" = int(fields[49]) if self.state == "Z" and len(fields) > 49 else None
        self.uid = os.stat(f"/proc/{pid}").st_uid
        self.env: "Dict[str, str]" = {}
        self.unread: "List[Finding]" = []
        self.rank: "Optional[int]" = None

    @property
    def is_python(self) -> bool:
        try:
            exe = os.path.basename(os.readlink(f"/proc/{self.pid}/exe"))
        except OSError:
            exe = self.comm
        return "python" in exe or self.comm.startswith("python")

    def told(self) -> Finding:
        words = {name: getattr(self, name) for name in ("pid", "ppid", "state", "comm", "rank", "is_python")}
        return dict(words, started=round(self.started, 1), ended=self.ended)


def proc(pid: object, name: str) -> str:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read(1 << 20).decode("utf-8", "replace")


def table() -> "Dict[int, Process]":
    """All processes by pid; those that end meanwhile are left out."""
    (booted,) = re.findall(r"^btime (\d+)", _stat(), re.MULTILINE) or ["0"]
    found = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            found[int(name)] = Process(int(name), float(booted))
        except (OSError, ValueError, IndexError):
            continue
    return found


def _stat() -> str:
    with open("/proc/stat", "rb") as file:
        return file.read().decode("utf-8", "replace")


def of_job(chosen: Finding, everything: "Dict[int, Process]", ends: float) -> "List[Process]":
    """Those that `chosen` names: pid with all below it, slurm (id of a job), or those that have a rank or, every, all.

    None of our own and of those above us, but for the pid that was asked for: a script may watch itself. Reads their
    environments, each in a child: a process that hangs in the memory of a file may not let its own be read.
    """
    others = _without_us(everything)
    if chosen.get("pid"):
        others.update({pid: process for pid, process in everything.items() if pid == chosen["pid"]})
        others = {pid: process for pid, process in others.items() if _is_below(pid, chosen["pid"], everything)}
    else:
        mine, first = os.geteuid(), 1 if chosen.get("every") else 2  # the first process of a pod may be the rank itself
        others = {pid: p for pid, p in others.items() if not p.is_kernel and pid >= first and mine in (0, p.uid)}
    looks = [Look("environ", lambda pid=pid: _environ(pid), 5, pid) for pid in others]  # type: ignore[misc]
    ours = set()
    for look, found in run(looks, ends):
        process = others[look.pid or 0]
        process.env, process.unread = found.get("facts", {}), found.get("attempts", [])
        if found.get("ours"):
            ours.add(process.pid)
    others = {pid: p for pid, p in others.items() if not any(_is_below(pid, top, everything) for top in ours)}
    node = os.environ.get("SLURMD_NODENAME")  # one machine may play several
    listed = [p for p in others.values() if not chosen.get("slurm") or _is_of_slurm(p, chosen["slurm"], node)]
    _set_ranks(listed)
    listed.sort(key=lambda p: (p.rank is None, p.rank or 0, p.pid))
    if any(chosen.get(name) for name in ("pid", "slurm", "every")):
        return listed
    return [p for p in listed if p.rank is not None]


def _set_ranks(processes: "List[Process]") -> None:
    """By the first variable that one of them has: under torchrun a task of Slurm is a launcher, and no rank. Neither is what has
    a number of its own and started another: an operator of Kubernetes gives a launcher that of its pod."""
    for p in processes:
        if not p.env.get("SLURM_STEP_ID", "").isdecimal() or int(p.env["SLURM_STEP_ID"]) >= _NO_STEP:
            p.env.pop("SLURM_PROCID", None)  # of a batch script, which is no rank
    name = next((name for name in RANKS if any(p.env.get(name, "").isdecimal() for p in processes)), "")
    numbers = {p.pid: int(p.env[name]) for p in processes if p.env.get(name, "").isdecimal()}
    launchers = {p.ppid for p in processes if p.pid in numbers and numbers.get(p.ppid) != numbers[p.pid]}
    for p in processes:
        p.rank = None if p.pid in launchers else numbers.get(p.pid)


def _without_us(everything: "Dict[int, Process]") -> "Dict[int, Process]":
    above, pid = set(), os.getpid()
    while pid in everything:
        above.add(pid)
        pid = everything[pid].ppid
    return {n: p for n, p in everything.items() if n not in above and not _is_below(n, os.getpid(), everything)}


def _is_below(pid: int, top: int, everything: "Dict[int, Process]") -> bool:
    for _ in range(100):
        if pid == top:
            return True
        if pid not in everything:
            return False
        pid = everything[pid].ppid
    return False


def _is_of_slurm(process: Process, job: str, node: "Optional[str]") -> bool:
    if process.comm.startswith("slurmstepd") or node not in (None, process.env.get("SLURMD_NODENAME", node)):
        return False
    if process.env.get("SLURM_JOB_ID") == job:
        return True
    try:
        return re.search(rf"/job_{job}(?:/|$)", proc(process.pid, "cgroup"), re.MULTILINE) is not None
    except OSError:
        return False


def _environ(pid: int) -> Finding:
    """ours: it is another one that collects, of which a watcher and a person may run two, or the look of a watcher."""
    if proc(pid, "cmdline").partition("\0")[2].startswith(("-I\0-S\0-\0", "-\0triage-look\0")):
        return {"ours": True}
    pairs = (entry.partition("=") for entry in proc(pid, "environ").split("\0"))
    return {"facts": {name: value[:500] for name, _, value in pairs if SHOWN.fullmatch(name)}}


def state(pid: int, file: str) -> Finding:
    """Where a process waits, in the kernel too where that may be read."""
    started = time.monotonic()
    said, problems = [], []
    for name in ("status", "wchan", "stack", "syscall"):
        said.append(f"== /proc/{pid}/{name}")
        try:
            said.append(proc(pid, name).rstrip())
        except OSError as error:
            said.append(f"({error.strerror})")
            problems.append(f"{name}: {error.strerror}")
    said.append("== threads")
    for tid in sorted(map(int, os.listdir(f"/proc/{pid}/task")))[:MOST_THREADS]:
        try:
            text = proc(pid, f"task/{tid}/stat")
            waits = proc(pid, f"task/{tid}/wchan") or "-"
        except OSError:
            continue
        said.append(f"{tid} {text[text.rindex(')') + 2]} {waits} {text[text.index('(') + 1 : text.rindex(')')]}")
    done = attempt(f"/proc/{pid}", started, 0, "; ".join(problems))
    return {"attempts": [done], "files": {file: "\n".join([*said, ""]).encode()}}


def open_files(pid: int) -> "List[List[str]]":
    """number, mode and target of each; the link is read, what it names is not touched."""
    found = []
    for fd in sorted(map(int, os.listdir(f"/proc/{pid}/fd")))[:MOST_FDS]:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            flags = re.search(r"^flags:\s*([0-7]+)", proc(pid, f"fdinfo/{fd}"), re.MULTILINE)
        except OSError:
            continue
        found.append([str(fd), _MODES[int(flags[1], 8) & 3] if flags else "?", target])
    return found


def fds(pid: int) -> Finding:
    started = time.monotonic()
    text = "".join(f"{fd} {mode} -> {target}\n" for fd, mode, target in open_files(pid))
    return {
        "attempts": [attempt(f"/proc/{pid}/fd", started, 0)],
        "files": {f"fds-{pid}.txt": text.encode("utf-8", "replace")},
    }
