"""A machine of its own for one run: private mounts, host name, network, users and extra nodes, all made from Linux namespaces.

Programs inside see /home/user/run, /opt/venv and neutral host names, so that nothing in their output has to be rewritten.
Root only; `enter()` is called in a process started by `unshare` (see run.py), so everything vanishes with it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

UID = 20417
HOME = Path("/home/user")
WORK = HOME / "run"
MEMORY = Path("/sys/fs/cgroup/memory")
UNSHARE = ["unshare", "--mount", "--uts", "--net", "--ipc", "--propagation", "private"]
_LOCAL = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
_SCRIPT = "#!/opt/venv/bin/python\n# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom {module} import {name}\nif __name__ == '__main__':\n    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n    sys.exit({name}())\n"
_COMMANDS = {
    "torchrun": ("torch.distributed.run", "main"),
    "accelerate": ("accelerate.commands.accelerate_cli", "main"),
}


def sh(*command: str | Path, **options: object) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return str(done.stdout)


def environment() -> dict[str, str]:
    return {
        "PATH": "/opt/venv/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin",
        "HOME": str(HOME),
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "LD_LIBRARY_PATH": "/opt/python/lib",
        "OMP_NUM_THREADS": "1",
        "TZ": "UTC",
    }


def enter(venv: Path, out: Path, host: str = "node-a", shm: str = "2g") -> None:
    """Cover what is particular to this machine; `out` stays reachable as /mnt/out, the programs to run as /mnt/payload."""
    sh("hostname", host)
    sh("ip", "link", "set", "lo", "up")
    config, base = (venv / "pyvenv.cfg").read_text(), (venv / "bin/python").resolve()
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt")
    sources = {
        "lib": venv / "lib",
        "base": base.parent.parent,
        "bin": venv / "bin",
        "out": out,
        "payload": Path(__file__).resolve().parent / "payload",  # may lie below /tmp or /home, which are covered
    }
    for target, source in sources.items():
        Path("/mnt", target).mkdir()
        sh("mount", "--bind", source, f"/mnt/{target}")
    for place, options in {
        "/opt": "mode=755",
        "/home": "mode=755",
        "/tmp": "mode=1777",
        "/run": "mode=755",
        "/dev/shm": f"mode=1777,size={shm}",
        "/etc/slurm": "mode=755",
        "/etc/munge": "mode=755",
    }.items():
        if Path(place).exists():
            sh("mount", "-t", "tmpfs", "-o", options, "tmpfs", place)
    _venv(config, base.name)
    for name, target in (("lib", "/opt/venv/lib"), ("base", "/opt/python")):
        sh("mount", "--bind", f"/mnt/{name}", target)
        sh("umount", f"/mnt/{name}")
    if Path("/mnt/bin/py-spy").exists():
        shutil.copy("/mnt/bin/py-spy", "/opt/venv/bin/py-spy")
    sh("umount", "/mnt/bin")
    for name in ("lib", "base", "bin"):
        Path("/mnt", name).rmdir()
    _etc("passwd", _system("/etc/passwd") + f"user:x:{UID}:{UID}::{HOME}:/bin/bash\n")
    _etc("group", _system("/etc/group") + f"user:x:{UID}:\n")
    _etc("hosts", f"{_LOCAL}127.0.1.1 {host}\n")
    _etc("resolv.conf", "")
    for folder in (HOME, WORK, Path("/mnt/scratch"), Path("/mnt/data")):
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, UID, UID)


def _venv(config: str, base: str) -> None:
    binaries = Path("/opt/venv/bin")
    for folder in (binaries, Path("/opt/venv/lib"), Path("/opt/python")):
        folder.mkdir(parents=True)
    config = re.sub(r"(?m)^(?:command|executable) = .*\n?", "", config)
    Path("/opt/venv/pyvenv.cfg").write_text(re.sub(r"(?m)^home = .*", "home = /opt/python/bin", config))
    for name in ("python", "python3"):
        (binaries / name).symlink_to(f"/opt/python/bin/{base}")
    for name, (module, function) in _COMMANDS.items():
        (binaries / name).write_text(_SCRIPT.format(module=module, name=function))
        (binaries / name).chmod(0o755)


def _system(file: str) -> str:
    """The entries of this machine's services, without its people."""
    lines = Path(file).read_text().splitlines(keepends=True)
    return "".join(x for x in lines if int(x.split(":")[2]) < 1000 or x.startswith("nobody"))


def _etc(name: str, text: str) -> None:
    """Replace /etc/NAME for this sandbox only; a later call with the same name rewrites it."""
    copy = Path("/run/etc", name)
    fresh = not copy.exists()
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(text)
    if fresh:
        target = Path("/etc", name).resolve()
        if target.exists():
            sh("mount", "--bind", copy, target)


@dataclass(frozen=True, slots=True)
class Node:
    """A host: process `holder` keeps its namespaces; 0 is the sandbox itself."""

    name: str
    address: str
    holder: int

    def command(self, argv: list[str], cwd: str = str(WORK)) -> list[str]:
        """`argv` as it must be started from the sandbox to run on this node, in `cwd`."""
        if not self.holder:
            return argv
        return ["nsenter", "-t", str(self.holder), "-n", "-u", "-m", f"--wd={cwd}", "--", *argv]


def nodes(names: list[str], head: str = "login") -> list[Node]:
    """Hosts of their own network and host name on one bridge; they share /home and /mnt as a cluster shares its file systems."""
    sh("hostname", head)
    sh("ip", "link", "add", "br0", "type", "bridge")
    sh("ip", "addr", "add", "10.1.0.1/24", "dev", "br0")
    sh("ip", "link", "set", "br0", "up")
    addresses = {name: f"10.1.0.{11 + i}" for i, name in enumerate(names)}
    table = "".join(f"{ip} {name}\n" for name, ip in addresses.items())
    _etc("hosts", f"{_LOCAL}10.1.0.1 {head}\n{table}")
    made = []
    for index, (name, address) in enumerate(addresses.items()):
        script = (
            f"hostname {name}; mount -t tmpfs -o mode=1777 tmpfs /tmp; exec setpriv --pdeathsig KILL sleep infinity"
        )
        holder = subprocess.Popen(["unshare", "-m", "-u", "-n", "--propagation", "slave", "bash", "-c", script])
        for _ in range(100):
            if Path(f"/proc/{holder.pid}/comm").read_text().strip() == "sleep":
                break
            time.sleep(0.05)
        port = f"swp{index + 1}"
        sh("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        sh("ip", "link", "set", port, "master", "br0", "up")
        inside = ["nsenter", "-t", str(holder.pid), "-n", "ip"]
        for words in (
            ["link", "set", "lo", "up"],
            ["addr", "add", f"{address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
        ):
            sh(*inside, *words)
        made.append(Node(name, address, holder.pid))
    return made


def tmpfs(place: str, options: str) -> None:
    """A file system of its own at `place`, owned by the user; options as mount(8) takes them (size=..., nr_inodes=...)."""
    Path(place).mkdir(parents=True, exist_ok=True)
    sh("mount", "-t", "tmpfs", "-o", options, "tmpfs", place)
    os.chown(place, UID, UID)


def disk(place: str, megabytes: int, options: str = "errors=remount-ro") -> tuple[Path, str]:
    """An ext4 file system on a loop device at `place`; its backing file and the device. The device goes with the mount."""
    image = Path("/run/disks") / f"{place.strip('/').replace('/', '-')}.img"
    image.parent.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    sh("mkfs.ext4", "-q", "-F", image)
    Path(place).mkdir(parents=True, exist_ok=True)
    sh("mount", "-o", f"loop,{options}", image, place)
    os.chown(place, UID, UID)
    return image, sh("findmnt", "-n", "-o", "SOURCE", place).strip()


def remount(place: str, image: Path, options: str) -> None:
    """Mount anew, with nothing of it left in the page cache."""
    sh("umount", place)
    sh("mount", "-o", f"loop,{options}", image, place)


def memory_group(name: str, limit: int) -> Path:
    """A memory cgroup (v1) of `limit` bytes; write a process id into its cgroup.procs to put it there."""
    group = MEMORY / name
    group.mkdir(exist_ok=True)
    atexit.register(_remove_group, group)
    (group / "memory.limit_in_bytes").write_text(str(limit))
    return group


def _remove_group(group: Path) -> None:
    for _ in range(50):  # the kernel takes a moment after the last process
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def processes() -> list[int]:
    """All processes of this sandbox's user."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == UID and os.readlink(entry / "ns/ipc") == os.readlink("/proc/self/ns/ipc"):
                    found.append(int(entry.name))
    return found


def read_environ(pid: int) -> dict[str, str]:
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(p.decode("utf-8", "replace").split("=", 1) for p in pairs if b"=" in p)


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def rank_pid(rank: int, timeout: float = 60.0) -> int:
    """The process that runs `rank`, not its data-loading children nor its launcher."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        pids = [p for p in processes() if _rank(p) == str(rank)]
        tops = [p for p in pids if _rank(parent(p)) != str(rank)]
        if tops:
            return tops[0]
        time.sleep(0.2)
    raise RuntimeError(f"no process runs rank {rank}")


def _rank(pid: int) -> str:
    values = read_environ(pid)
    return next((values[k] for k in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK") if k in values), "")


def kernel_time() -> float:
    """The kernel log's time of its last line: the mark that `kernel_log` starts after."""
    stamps = re.findall(r"(?m)^\[\s*([\d.]+)\]", sh("dmesg"))
    return float(stamps[-1]) if stamps else 0.0


def kernel_log(since: float) -> str:
    """What the kernel printed after `since`, as `dmesg` shows it."""
    lines = sh("dmesg").splitlines(keepends=True)
    return "".join(x for x in lines if (m := re.match(r"\[\s*([\d.]+)\]", x)) and float(m[1]) > since)


def kill_all() -> None:
    """End every process of this sandbox but this one, daemons included."""
    here = os.readlink("/proc/self/ns/ipc")
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and int(entry) != os.getpid() and os.readlink(f"/proc/{entry}/ns/ipc") == here:
                os.kill(int(entry), signal.SIGKILL)


def copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    give(target)


def give(path: Path) -> None:
    """Make the user the owner of `path` and all below."""
    sh("chown", "-R", f"{UID}:{UID}", path)
