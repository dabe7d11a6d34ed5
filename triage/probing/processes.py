"""The processes of a job on this node, as /proc shows them. Standard library alone: this text also runs on other nodes.

Nothing of a target is stopped or traced. A file that cannot be read (another user's, one that has just ended) is None in the
answer, never zero.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from triage.probing.written import written_files

# The nearest to the program first: mpirun and torchrun may be tasks of srun, and carry its number.
RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK_ID", "SLURM_PROCID", "LOCAL_RANK")
_TICKS = os.sysconf("SC_CLK_TCK")
_RANK_OPTION = re.compile(rb"--(?:local[-_])?rank(?:=|\x00)(\d{1,6})\x00")
_JOB_GROUP = re.compile(r"/job_(\d{1,18})(?:/|$)")
_KTHREADD = 2
_IO = (b"rchar", b"wchar", b"read_bytes", b"write_bytes")
_MOST_READ = 1 << 17  # bytes of one file; an environment may be long
_SEARCHED = 16  # looks between two searches for logs among the open files, once a process is no longer young
# First words of the Pythons that `triage hang collect` and other watchers run, in which a job would find a process of its own.
_OURS = (b"-I\0-S\0-\0", b"-\0triage-look\0")
_HELPERS = {
    b"multiprocessing.resource_tracker": "resource tracker",
    b"multiprocessing.semaphore_tracker": "semaphore tracker",
    b"multiprocessing.forkserver": "forkserver",
}
Key = tuple[int, int]  # pid, ticks from boot to its start


class Reader:
    """Reads rounds of one job; what does not change while a process lives is read once."""

    def __init__(self, proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> None:
        self._proc, self._cgroups = proc, cgroups
        self._fixed: dict[Key, dict[str, Any]] = {}
        self._firm: set[Key] = set()
        self._written: dict[
            Key, tuple[int, tuple[list[str], list[str]]]
        ] = {}  # looks, and the files that were found at the last search
        self._known: set[Key] = set()
        self._ours: dict[int, int] = {}  # what we began, with its start
        self._groups: set[int] = set()  # sessions and process groups that the job opened

    def read(self, pids: Iterable[int] = (), job: str = "", everything: bool = False) -> list[dict[str, Any]]:
        """One dict a process. pids: roots, with all that descends from them; job: id of a Slurm job; everything: all but ourselves.

        Nothing that watches or collects is of the job, though it may run within it.
        """
        table = {stat["pid"]: stat for stat in self._table()}
        ours = _ancestors(os.getpid(), table)
        if everything:
            members = {pid for pid in table if pid not in ours}
        elif job:
            members = self._of_job(table, job) - ours
        else:
            members = self._tree(table, set(pids)) - (ours - set(pids))  # a batch script may watch itself
            members -= self._begun(table, set(pids))
        members -= _below({pid for pid in members if self._constants(table[pid])["ours"]}, table)
        keys = {(pid, table[pid]["start"]) for pid in members}
        self._known = keys
        self._fixed = {key: value for key, value in self._fixed.items() if key in keys}
        self._firm &= keys
        self._written = {key: value for key, value in self._written.items() if key in keys}
        return [self._process(table[pid]) for pid in sorted(members)]

    # ------------------------------------------------------------------------------------------ which
    def _table(self) -> Iterator[dict[str, Any]]:
        for name in os.listdir(self._proc):  # noqa: PTH208 - for speed
            if name.isdecimal() and (stat := _stat(self._get(name, "stat"))) is not None:
                yield self._of_another_thread(stat) if stat["state"] == "Z" and stat["threads"] > 1 else stat

    def _of_another_thread(self, stat: dict[str, Any]) -> dict[str, Any]:
        """Where the main thread has ended and others go on, what one of these shows of the process."""
        pid = str(stat["pid"])
        try:
            names = os.listdir(f"{self._proc}/{pid}/task")  # noqa: PTH208 - for speed
        except OSError:
            return stat
        for name in names:
            thread = _stat(self._get(pid, "task", name, "stat"))
            if thread is not None and thread["state"] not in "ZX":
                return {**stat, "state": thread["state"], "exit": None, "at": thread["pid"]}
        return stat

    def _tree(self, table: dict[int, dict[str, Any]], roots: set[int]) -> set[int]:
        """Descendants; and what a member left behind: processes handed to init, by the session or group that a member opened."""
        members = {pid for pid in roots if pid in table}
        members |= {pid for pid, stat in table.items() if (pid, stat["start"]) in self._known}
        members = _below(members, table)
        self._groups |= {
            group for pid in members for group in (table[pid]["pgrp"], table[pid]["sid"]) if group in members
        }
        return members | {p for p, s in table.items() if s["pgrp"] in self._groups or s["sid"] in self._groups}

    def _begun(self, table: dict[int, dict[str, Any]], roots: set[int]) -> set[int]:
        """What we began ourselves, but for what is asked for; it may outlive who began it for a moment."""
        begun = _below({os.getpid()}, table)
        begun -= _below(begun & roots, table)
        self._ours = {pid: start for pid, start in self._ours.items() if pid in table and table[pid]["start"] == start}
        self._ours.update({pid: table[pid]["start"] for pid in begun if pid in table})
        return set(self._ours)

    def _of_job(self, table: dict[int, dict[str, Any]], job: str) -> set[int]:
        users = [pid for pid, stat in table.items() if pid != _KTHREADD and stat["ppid"] != _KTHREADD]
        inside = {pid for pid in users if job in _JOB_GROUP.findall(self._constant(table[pid], "cgroup"))}
        inside |= {pid for pid in users if self._constant(table[pid], "job") == job}
        return {pid for pid in inside if table[pid]["comm"] not in ("slurmstepd", "srun")}

    def _constant(self, stat: dict[str, Any], name: str) -> str:
        return str(self._constants(stat)[name])

    # ------------------------------------------------------------------------------------------ what of each
    def _process(self, stat: dict[str, Any]) -> dict[str, Any]:
        pid = _at(stat)
        main = _stat(self._get(pid, "task", pid, "stat"))
        found = {
            **stat,
            **self._constants(stat),
            "wchan": self._text(pid, "wchan"),
            "call": (self._text(pid, "syscall") or "").split(" ", 1)[0] if stat["state"] in "SD" else None,
            "main_cpu": main["cpu"] if main else None,
            "io": _io(self._get(pid, "io")),
            "main_io": _io(self._get(pid, "task", pid, "io")),
        }
        found["outputs"], found["logs"] = self._files(stat)
        if found["state"] != "Z" or not self._is_ours(pid):
            found["exit"] = None  # of others it reads as zero
        found["frozen"] = self._frozen(str(found.pop("cgroup")))
        return found

    def _is_ours(self, pid: str) -> bool:
        try:
            return os.geteuid() in (0, os.stat(f"{self._proc}/{pid}").st_uid)  # noqa: PTH116 - Python of other nodes may be old
        except OSError:
            return False

    def _constants(self, stat: dict[str, Any]) -> dict[str, Any]:
        """Kept once two looks agree: one that falls into an exec sees the new name beside an environment that is still empty."""
        key = (stat["pid"], stat["start"])
        known = self._fixed.get(key)
        if known is not None and stat["state"] == "Z":
            return known  # what it was
        if known is None or key not in self._firm or known["comm_then"] != stat["comm"]:
            self._fixed[key] = self._read_constants(stat)
            (self._firm.add if self._fixed[key] == known else self._firm.discard)(key)
        return self._fixed[key]

    def _read_constants(self, stat: dict[str, Any]) -> dict[str, Any]:
        pid = _at(stat)
        environment = self._get(pid, "environ")
        values = dict(_environment(environment))
        command = self._get(pid, "cmdline") or b""
        ranks = {name: int(values[name]) for name in RANK_NAMES if values.get(name, "").isdecimal()}
        if (option := _RANK_OPTION.search(command + b"\0")) and "RANK" not in ranks:
            ranks["LOCAL_RANK"] = int(option[1])
        return {
            "name": _short(command) or stat["comm"],
            "ours": command.partition(b"\0")[2].startswith(_OURS),
            "comm_then": stat["comm"],  # another program took its place
            "ranks": ranks if environment is not None else None,
            "job": values.get("SLURM_JOB_ID") or values.get("SLURM_JOBID") or "",
            "cgroup": self._text(pid, "cgroup") or "",
        }

    def _files(self, stat: dict[str, Any]) -> tuple[list[str], list[str]]:
        """Files that its standard output and error go to, and logs that it writes; which may be opened late, and are searched for seldom."""
        key = (stat["pid"], stat["start"])
        looks, found = self._written.get(key, (0, ([], [])))
        is_young = looks & (looks - 1) == 0  # 0, 1, 2, 4, 8 ...
        if is_young or (looks + stat["pid"]) % _SEARCHED == 0:
            found = written_files(f"{self._proc}/{_at(stat)}")
        self._written[key] = (looks + 1, found)
        return found

    def _frozen(self, cgroup: str) -> bool:
        """Whether the freezer holds its control group, of either version."""
        for line in cgroup.splitlines():
            _, controllers, path = (*line.split(":", 2), "", "")[:3]
            if "freezer" in controllers.split(","):
                state = _read(f"{self._cgroups}/freezer{path}/freezer.state")
                if state is not None and state.strip() in (b"FROZEN", b"FREEZING"):
                    return True
            elif not controllers and path != "/":
                for top in ("", "/unified"):
                    events = _read(f"{self._cgroups}{top}{path}/cgroup.events")
                    if events is not None and b"frozen 1" in events:
                        return True
        return False

    def _get(self, *parts: str) -> bytes | None:
        return _read("/".join((self._proc, *parts)))

    def _text(self, *parts: str) -> str | None:
        data = self._get(*parts)
        return None if data is None else data.decode("utf-8", "replace").strip()


def _at(stat: dict[str, Any]) -> str:
    """The thread whose folder shows the process."""
    return str(stat.get("at", stat["pid"]))


def _read(path: str) -> bytes | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        pieces = [os.read(file, _MOST_READ)]
        while pieces[-1] and len(pieces) < 64 and not path.endswith(("stat", "io", "wchan")):
            pieces.append(os.read(file, _MOST_READ))
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(file)


def _stat(data: bytes | None) -> dict[str, Any] | None:
    """pid (comm) state ppid pgrp session ...; a comm may hold blanks and brackets."""
    if not data or b")" not in data:
        return None
    head, _, tail = data.rpartition(b")")
    pid, _, comm = head.partition(b" (")
    fields = tail.split()
    return {
        "pid": int(pid),
        "comm": comm.decode("utf-8", "replace"),
        "state": fields[0].decode(),
        "ppid": int(fields[1]),
        "pgrp": int(fields[2]),
        "sid": int(fields[3]),
        "cpu": (int(fields[11]) + int(fields[12])) / _TICKS,  # seconds
        "threads": int(fields[17]),
        "start": int(fields[19]),
        "exit": int(fields[49]) if fields[0] == b"Z" and len(fields) > 49 else None,  # as wait() gives it
    }


def _io(data: bytes | None) -> list[int] | None:
    """rchar, wchar, read_bytes, write_bytes."""
    if not data:
        return None
    found = dict(line.split(b": ", 1) for line in data.splitlines() if b": " in line)
    return [int(found.get(name, b"0")) for name in _IO]


def _environment(data: bytes | None) -> Iterator[tuple[str, str]]:
    """Names that tell rank and job, and no other: an environment holds secrets."""
    for piece in (data or b"").split(b"\0"):
        name, _, value = piece.partition(b"=")
        text = name.decode("ascii", "replace")
        if text in RANK_NAMES or text in ("SLURM_JOB_ID", "SLURM_JOBID"):
            yield text, value.decode("ascii", "replace")


def _short(command: bytes) -> str:
    """The program, and the script or module that it runs; no other word of the command, which may hold secrets."""
    words = [word.decode("utf-8", "replace") for word in command.split(b"\0")[:64] if word]
    if not words:
        return ""
    program = os.path.basename(words[0])[:60]  # noqa: PTH119
    if helper := next((told for module, told in _HELPERS.items() if module in command), None):
        return f"{program} ({helper})"
    for before, word in zip([*words[:1], *words[1:]], words[1:]):  # noqa: B905 - Python 3.9 has no strict
        if before == "-m":
            return f"{program} -m {word[:60]}"
        if word.endswith((".py", ".sh")):
            return f"{program} {os.path.basename(word)[:60]}"  # noqa: PTH119
    return program


def _ancestors(pid: int, table: dict[int, dict[str, Any]]) -> set[int]:
    """A process and what it came from, so that who looks is not looked at. A job that watches itself keeps its own processes."""
    found: set[int] = set()
    while pid in table and pid not in found and pid != 1:
        found.add(pid)
        pid = table[pid]["ppid"]
    return found


def _below(tops: set[int], table: dict[int, dict[str, Any]]) -> set[int]:
    """These and all that descends from them."""
    children: dict[int, list[int]] = {}
    for stat in table.values():
        children.setdefault(stat["ppid"], []).append(stat["pid"])
    found, todo = set(tops), list(tops)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found
