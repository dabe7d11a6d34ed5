"""A real Slurm of a few nodes on this machine, all of it in one folder and on ports of its own: with or without accounting.

Needs root and the packages slurm-wlm, munge, and with accounting slurmdbd and mariadb-server.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NODES = ("n1", "n2", "n3")
_CONF = """ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
FirstJobId={ports[0]}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=50
AccountingStorageType={store}
AccountingStorageHost=localhost
AccountingStoragePort={ports[1]}
AccountingStoragePass={dir}/munge.sock
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
{memory}
JobCompType=jobcomp/none
MpiDefault=none
PluginDir={plugins}
ReturnToService=2
SlurmdTimeout=4
SlurmctldTimeout=10
InactiveLimit=0
KillWait=1
MinJobAge={min_age}
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0,bf_interval=1,requeue_delay=2
SchedulerType=sched/backfill
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CompleteWait=0
UnkillableStepTimeout=20
{more}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""
_DBD = """AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[1]}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StoragePort={ports[2]}
StorageUser=slurm
StoragePass=slurm
LogFile={dir}/slurmdbd.log
PidFile={dir}/slurmdbd.pid
"""
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\nConstrainSwapSpace=no\n"
_MEMORY = Path("/sys/fs/cgroup/memory")
ENDED = (
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
)


def lacking(accounting: bool = True) -> str:
    """Why no Slurm can be started here, "" when it can."""
    if os.geteuid() != 0:
        return "a Slurm for tests is started by root"
    needed = [
        "munged",
        "slurmctld",
        "slurmd",
        "sbatch",
        "srun",
        *(["slurmdbd", "sacct", "mariadbd"] if accounting else []),
    ]
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [name for name in needed if not shutil.which(name, path=path)]
    return f"not installed: {', '.join(missing)}" if missing else ""


@dataclass(slots=True)
class Cluster:
    """dir: holds all of it; work: where jobs are submitted from."""

    dir: Path
    accounting: bool
    ports: list[int]
    env: dict[str, str] = field(default_factory=dict)
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.dir / "work"

    def run(self, *argv: str, check: bool = True) -> str:
        done = subprocess.run(
            argv, check=False, capture_output=True, text=True, timeout=60, env=self.env, cwd=self.work
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stderr or done.stdout}")
        return done.stdout

    def submit(self, script: str, *options: str, name: str = "job.sh") -> str:
        """The id of the job, or what sbatch --parsable prints."""
        (self.work / name).write_text(f"#!/bin/bash\n{script}\n")
        return self.run("sbatch", "--parsable", *options, name).strip()

    def states(self, job: str) -> set[str]:
        return set(self.run("squeue", "-h", "-a", "-r", "-t", "all", "-j", job, "-o", "%T", check=False).split())

    def wait(self, job: str, *states: str, seconds: float = 60) -> set[str]:
        """Until all tasks of the job are in one of the states (default: any in which it has ended)."""
        try:
            until(lambda: bool(now := self.states(job)) and now <= set(states or ENDED), f"job {job}", seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.run('scontrol', 'show', 'job', job, check=False)}") from None
        if self.accounting and not states:
            until(lambda: self._accounted(job), f"accounting of job {job}", seconds)
        return self.states(job)

    def _accounted(self, job: str) -> bool:
        rows = self.run("sacct", "-n", "-X", "-P", "-j", job, "-o", "State,End").splitlines()
        return bool(rows) and all(not row.endswith("|Unknown") for row in rows)

    def steps_on(self, job: str) -> bool:
        """Does a step of the job run, besides its script?"""
        return any(
            line.strip()
            for line in self.run("squeue", "-h", "-s", "-j", job, "-o", "%i", check=False).splitlines()
            if not line.strip().endswith(("batch", "extern"))
        )

    def without_accounting(self) -> Path:
        """A slurm.conf by which commands find the same controller, and no accounting."""
        conf = self.dir / "unaccounted" / "slurm.conf"
        conf.parent.mkdir(exist_ok=True)
        text = (self.dir / "etc" / "slurm.conf").read_text()
        conf.write_text(text.replace("accounting_storage/slurmdbd", "accounting_storage/none"))
        return conf

    def start_node(self, node: str) -> None:
        command = ["slurmd", "-D", "-N", node]
        self.daemons[node] = subprocess.Popen(command, env=self.env, stderr=subprocess.DEVNULL, start_new_session=True)

    def kill_node(self, node: str) -> None:
        """The daemon of the node dies, and the steps that it started."""
        self.daemons.pop(node).kill()
        for pid in self._processes():
            if any(link.endswith(f"/slurmd-{node}.log") for link in _open_files(pid)):
                _kill(pid)

    def _processes(self) -> list[int]:
        """The steps of this cluster, what they run, and what its epilogs left."""
        mine = f"SLURM_CONF={self.env['SLURM_CONF']}".encode()
        found = ((p, told) for p in Path("/proc").iterdir() if p.name.isdigit() and mine in (told := _environ(p)))
        return [
            int(p.name)
            for p, told in found
            if _name(p) == "slurmstepd" or any(x.startswith(b"SLURM_JOB_ID=") for x in told)
        ]

    def node_states(self) -> list[str]:
        return [
            word
            for line in self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%T", check=False).splitlines()
            for word in [line.strip()]
        ]

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self.run("scancel", "--signal=KILL", "--full", "-u", "root", check=False)
            self.run("scancel", "-u", "root", check=False)
        for process in reversed(self.daemons.values()):
            process.terminate()
        for process in reversed(self.daemons.values()):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        for pid in self._processes():
            _kill(pid)
        for folder in sorted(_MEMORY.glob("slurm_*/**/"), reverse=True):
            if folder != _MEMORY and any(f"slurm_{node}" in folder.parts for node in NODES):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _environ(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def _open_files(pid: int) -> list[str]:
    try:
        return [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def start(
    folder: Path, accounting: bool, more: Sequence[str] = (), min_age: int = 300, nodes: Sequence[str] = NODES
) -> Cluster:
    """more: lines for slurm.conf; min_age: seconds that the controller remembers a job that has ended."""
    if why := lacking(accounting):
        raise RuntimeError(why)
    for name in ("state", "work", *(f"spool-{node}" for node in nodes)):
        (folder / name).mkdir(parents=True)
    ports = _free_ports(3 + len(nodes))
    conf = folder / "etc" / "slurm.conf"
    conf.parent.mkdir()
    lines = "\n".join(
        f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=16000 State=UNKNOWN"
        for node, port in zip(nodes, ports[3:], strict=True)
    )
    store = "accounting_storage/slurmdbd" if accounting else "accounting_storage/none"
    plugins = next(Path("/usr/lib").glob("*/slurm-wlm"), Path("/usr/lib/slurm"))
    held = os.access(_MEMORY / "memory.limit_in_bytes", os.W_OK)  # the kernel ends what takes too much, else Slurm does
    conf.write_text(
        _CONF.format(
            dir=folder, ports=ports, store=store, nodes=lines, more="\n".join(more), min_age=min_age, plugins=plugins,
            task="task/cgroup" if held else "task/none", memory="" if held else "JobAcctGatherParams=OverMemoryKill",
        )
    )  # fmt: skip
    if held:
        (conf.parent / "cgroup.conf").write_text(_CGROUP)
    path = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"
    cluster = Cluster(
        folder, accounting, ports, {"PATH": path, "SLURM_CONF": str(conf), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    )
    try:
        _munge(cluster)
        if accounting:
            _accounting(cluster)
        cluster.daemons["slurmctld"] = _daemon(cluster, "slurmctld", "-D", "-c")
        for node in nodes:
            cluster.start_node(node)
        until(lambda: cluster.node_states() == ["idle"] * len(nodes), "idle nodes")
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _daemon(cluster: Cluster, *argv: str) -> subprocess.Popen[bytes]:
    log = (cluster.dir / f"{argv[0]}.out").open("wb")
    return subprocess.Popen(argv, env=cluster.env, stdout=log, stderr=log, start_new_session=True)


def _munge(cluster: Cluster) -> None:
    place, key = cluster.dir, cluster.dir / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    place.chmod(0o755)
    names = {
        "key-file": "munge.key",
        "log-file": "munged.log",
        "pid-file": "munged.pid",
        "seed-file": "munged.seed",
        "socket": "munge.sock",
    }
    options = [f"--{option}={place / name}" for option, name in names.items()]
    cluster.daemons["munged"] = _daemon(cluster, "munged", "-F", "--force", *options)
    until((place / "munge.sock").exists, "munged")


def _accounting(cluster: Cluster) -> None:
    place, port = cluster.dir, cluster.ports[2]
    data, sock = place / "mysql", place / "mysql.sock"
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db", "--auth-root-authentication-method=normal"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    cluster.daemons["mariadbd"] = _daemon(
        cluster, "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={sock}", f"--port={port}",
        "--bind-address=127.0.0.1", f"--pid-file={place / 'mysql.pid'}", "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve",
    )  # fmt: skip
    client = ["mariadb", "--no-defaults", f"--socket={sock}", "-uroot", "-e"]
    until(lambda: subprocess.run([*client, "select 1"], check=False, capture_output=True).returncode == 0, "mariadbd")
    subprocess.run(
        [*client, "create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'slurm'; create user slurm@localhost"
                  " identified by 'slurm'; grant all on slurm_acct_db.* to slurm@'127.0.0.1'; grant all on slurm_acct_db.* to slurm@localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    dbd = place / "etc" / "slurmdbd.conf"
    dbd.write_text(
        _DBD.format(dir=place, ports=cluster.ports).replace("StorageHost=localhost", "StorageHost=127.0.0.1")
    )
    dbd.chmod(0o600)
    cluster.daemons["slurmdbd"] = _daemon(cluster, "slurmdbd", "-D")
    until(lambda: "Cluster" in cluster.run("sacctmgr", "list", "cluster", check=False), "slurmdbd")
    cluster.run("sacctmgr", "-i", "add", "cluster", "test")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def until(ready: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)
