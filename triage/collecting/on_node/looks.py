"""What is looked at on a node besides the processes themselves: stacks, devices, kernel, mounts, logs, collectives."""

import calendar
import os
import re
import socket
import stat
import time
from typing import Dict, List, Optional, Tuple

from triage.collecting.on_node.children import MOST, Finding, Look, attempt, command
from triage.collecting.on_node.processes import Process, open_files, proc

MOST_MOUNTS = 200
MOST_LOGS = 64
LOG_TAIL = 256 << 10  # bytes
MOST_FLIGHT = 16 << 20  # bytes of one dump
RAS_PORT = 28028
# What is not asked whether it answers: made by the kernel of this node, or mounted only when it is touched.
PSEUDO = re.compile(
    "autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|fusectl|hugetlbfs|mqueue|nsfs|proc|pstore|ramfs"
    "|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tmpfs|tracefs"
)
_PS = ["ps", "-ww", "-eo", "pid,ppid,user:20,stat,wchan:32,etime,pcpu,rss,args"]
_PS_HEAD = "PID PPID USER STAT WCHAN ELAPSED %CPU RSS COMMAND"
_KERNEL_LOG = (
    ["dmesg", "--time-format", "iso"],
    ["dmesg"],
    ["journalctl", "-k", "-o", "short-iso", "-n", "20000", "--no-pager"],
)
_WALL = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[.,\d]*([+-])(\d\d):?(\d\d)")
_AFTER_BOOT = re.compile(rb"(?:<\d+>)?\[ *(\d+\.\d+)\]")
_LOG_NAME = re.compile(r"\.(?:log|out|err|txt)(?:\.\w+)?$")
_OCTAL = re.compile(r"\\([0-7]{3})")


def py_spy(pid: int, file: str, chosen: Finding, limit: float, is_ours: bool) -> Finding:
    """The stack of each thread: with native frames, else without, else without stopping the process.

    One in D state is never attached to: what stops it would wait there until it wakes, and stop it then. One that is
    stopped already cannot be.
    """
    text = proc(pid, "stat")
    gentle = chosen.get("nonblocking") or text[text.rindex(")") + 2] in "DTt"
    said, attempts = b"", []
    for way in (["--nonblocking"],) if gentle else (["--native"], [], ["--nonblocking"]):
        done, out, err = command(["py-spy", "dump", *way, "--pid", str(pid)], limit, _py_spy_path(pid, chosen, is_ours))
        attempts.append(done)
        if done["code"] == 0 and out.strip():
            return {"attempts": attempts, "files": {file: said + out}}
        said += f"# {done['tool']}: {done['problem'] or 'no stack'}\n".encode() + err.strip() + b"\n"
        if done["problem"].startswith("there is no"):
            return {"attempts": attempts}
    return {"attempts": attempts, "files": {file: said}}


def _py_spy_path(pid: int, chosen: Finding, is_ours: bool) -> str:
    """Beside an interpreter: ours, the caller's, and that of the process where it is our own, as we run what is found."""
    found = list(chosen.get("bins", []))
    if is_ours:
        pairs = dict(entry.partition("=")[::2] for entry in proc(pid, "environ").split("\0"))
        found += [pairs["VIRTUAL_ENV"] + "/bin"] if pairs.get("VIRTUAL_ENV") else []
        found += [os.path.dirname(os.readlink(f"/proc/{pid}/exe")), pairs.get("PATH", "")]
    return ":".join(found)


def ps(processes: "Dict[int, Process]") -> Finding:
    """All processes of the node but threads of the kernel that do not wait in it."""
    done, out, _ = command(_PS, 10)
    if done["code"] != 0 or not out:
        return dict(ps_of(processes), attempts=[done])
    head, *rows = out.decode("utf-8", "replace").splitlines()
    kept = []
    for row in rows:
        cells = row.split(None, 4)
        if len(cells) == 5 and ("2" not in cells[:2] or cells[3].startswith("D")):
            kept.append(row)
    return {"attempts": [done], "files": {"ps.txt": "\n".join([head, *kept, ""]).encode()}}


def ps_of(processes: "Dict[int, Process]") -> Finding:
    """The same from /proc, without what `ps` hangs on: the memory of the processes that holds their arguments."""
    rows = [_PS_HEAD]
    for p in processes.values():
        if not p.is_kernel or p.state == "D":
            try:
                waits = proc(p.pid, "wchan") or "-"
            except OSError:
                waits = "-"
            rows.append(
                f"{p.pid} {p.ppid} {p.uid} {p.state} {waits} {max(0, int(time.time() - p.started))} - - {p.comm}"
            )
    return {"files": {"ps.txt": "\n".join([*rows, ""]).encode()}}


def kernel_log(since: float) -> Finding:
    """What the kernel said since the job began: what it said of earlier jobs would be blamed for this one's hang."""
    attempts = []
    for argv in _KERNEL_LOG:
        done, out, _ = command(argv, 10)
        attempts.append(done)
        if done["code"] == 0 and out.strip():
            later = _later(out, since)
            return {"attempts": attempts, "files": {"dmesg.txt": later} if later else {}}
    return {"attempts": attempts}


def _later(text: bytes, since: float) -> bytes:
    """Lines from `since` (of the epoch) on; one without a time goes with the one before it."""
    with open("/proc/uptime", "rb") as file:
        booted = time.time() - float(file.read().split()[0])
    kept, keeps = [], False
    for line in text.splitlines(True):
        wall, after_boot = _WALL.match(line), _AFTER_BOOT.match(line)
        if wall:
            day, sign, hours, minutes = (part.decode() for part in wall.groups())
            zone = int(sign + "1") * (int(hours) * 3600 + int(minutes) * 60)
            keeps = calendar.timegm(time.strptime(day, "%Y-%m-%dT%H:%M:%S")) - zone >= since
        elif after_boot:
            keeps = booted + float(after_boot.group(1)) >= since
        if keeps:
            kept.append(line)
    return b"".join(kept)


def tool(argv: "List[str]", file: str, limit: float) -> Finding:
    """What it says is kept where it fails too: that is how a lost GPU is told."""
    done, out, err = command(argv, limit)
    said = out if done["code"] == 0 else out + err
    return {"attempts": [done], "files": {file: said} if said.strip() else {}}


def mounts() -> "List[Tuple[str, str, str]]":
    """type, mount point and source; the last one at a point hides the others."""
    found = {}
    for line in proc("self", "mounts").splitlines():
        source, point, kind = (_OCTAL.sub(lambda m: chr(int(m[1], 8)), cell) for cell in line.split(" ")[:3])
        found[point] = (kind, point, source)
    return list(found.values())


def mount(kind: str, point: str, source: str) -> Finding:
    started = time.monotonic()
    try:
        os.statvfs(point)
        how = "answers"
    except OSError as error:
        how = "fails:" + (error.strerror or str(error)).replace(" ", "-")
    done = attempt(f"statvfs {point}", started, 0, "" if how == "answers" else how)
    return {"attempts": [done], "facts": {"line": mount_line(how, done["seconds"], kind, point, source)}}


def hung_mount(kind: str, point: str, source: str, limit: float) -> Finding:
    return {"facts": {"line": mount_line("hangs", limit, kind, point, source)}}


def mount_line(how: str, seconds: float, kind: str, point: str, source: str) -> str:
    return " ".join(
        str(cell).replace(" ", "\\040").replace("\n", "\\012") for cell in (how, seconds, kind, point, source)
    )


def logs(processes: "List[Process]") -> "List[Tuple[int, str, str]]":
    """pid, descriptor and name of each log that one of them writes, once each."""
    found: "Dict[str, Tuple[int, str, str]]" = {}
    for p in processes:
        try:
            files = open_files(p.pid)
        except OSError:
            continue
        for fd, mode, target in files:
            of_output = fd in ("1", "2") or (mode in ("w", "rw") and _LOG_NAME.search(target))
            if of_output and target.startswith("/") and not target.startswith(("/dev/", "/proc/")):
                found.setdefault(target, (p.pid, fd, target))
    return list(found.values())[:MOST_LOGS]


def log_tail(pid: int, fd: str, target: str) -> Finding:
    started = time.monotonic()
    link = f"/proc/{pid}/fd/{fd}"
    name = "logs/" + re.sub(r"[^\w.+-]", "_", os.path.basename(target))[:120]
    done = attempt(f"tail {target}", started, 0)
    if not stat.S_ISREG(os.stat(link).st_mode):
        return {"attempts": []}
    with open(link, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_TAIL))
        tail = file.read(LOG_TAIL)
    return {"attempts": [done], "files": {name: tail.split(b"\n", 1)[-1] if size > LOG_TAIL else tail}}


def ras(port: int, limit: float) -> Finding:
    """What NCCL itself knows of the communicators and their silent ranks (NCCL 2.24 and later)."""
    started, said = time.monotonic(), b""
    name = f"NCCL RAS localhost:{port}"
    problem = ""
    try:
        connection = socket.create_connection(("localhost", port), 3)
    except ConnectionRefusedError:
        return {"attempts": [attempt(name, started, None, "there is no NCCL RAS here")]}
    with connection:
        connection.settimeout(limit)
        connection.sendall(b"verbose status\n")
        try:
            while len(said) < MOST:
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                said += piece
        except socket.timeout:
            problem = f"no whole answer within {limit:g} s"
    return {"attempts": [attempt(name, started, 0, problem)], "files": {"ncclras.txt": said} if said else {}}


def ras_port(processes: "List[Process]") -> int:
    for p in processes:
        port = p.env.get("NCCL_RAS_ADDR", "").rpartition(":")[2]
        if port.isdecimal() and int(port) < 65536:
            return int(port)
    return RAS_PORT


def flight_prefixes(processes: "List[Process]") -> "List[str]":
    found = ["/tmp/nccl_trace_rank_", os.path.expanduser("~/.cache/torch/comm_lib_trace_rank_")]  # noqa: S108 - PyTorch's own
    for p in processes:
        found += [
            p.env[name] for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE") if p.env.get(name)
        ]
    return [prefix for prefix in dict.fromkeys(found) if prefix.startswith("/")]


def flight(prefix: str, since: float) -> Finding:
    """The dumps whose names are the prefix and a rank. since: when the job began; older ones are of another."""
    started = time.monotonic()
    folder, start = os.path.split(prefix)
    files, attempts = {}, []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if not re.fullmatch(re.escape(start) + r"\d+(?:\.\w+)?", name):
            continue
        path = os.path.join(folder, name)
        told = os.stat(path)
        if not stat.S_ISREG(told.st_mode):
            continue
        problem = ""
        if told.st_mtime < since:
            problem = "older than the processes of the job: left out"
        elif told.st_size > MOST_FLIGHT:
            problem = f"larger than {MOST_FLIGHT >> 20} MiB: left out"
        else:
            with open(path, "rb") as file:
                files["flight/" + re.sub(r"[^\w.+-]", "_", name)] = file.read(MOST_FLIGHT)
        attempts.append(attempt(path, started, 0, problem))
    return {"attempts": attempts, "files": files}


def trigger(pipe: str) -> Finding:
    """Asks the flight recorder of one rank for a dump."""
    started = time.monotonic()
    into = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    os.write(into, b"1\n")
    os.close(into)
    return {"attempts": [attempt(f"write to {pipe}", started, 0)]}


def triggers(processes: "List[Process]") -> "List[Look]":
    found = []
    for p in processes:
        prefix: "Optional[str]" = p.env.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
        if prefix and p.rank is not None:
            pipe = f"{prefix}{p.rank}.pipe"
            found.append(Look(f"write to {pipe}", lambda pipe=pipe: trigger(pipe), 5, p.pid))  # type: ignore[misc]
    return found
