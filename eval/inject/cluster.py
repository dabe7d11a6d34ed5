"""A real Slurm of a few nodes inside the sandbox, with accounting: munged, mariadbd, slurmdbd, slurmctld and one slurmd a node."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import sandbox
from sandbox import Node, sh

STATE = Path("/run/slurm")
_CONF = """ClusterName=alps
SlurmctldHost=login(10.1.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={state}/state
SlurmdSpoolDir={state}/spool-%n
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/slurmd-%n.log
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd-%n.pid
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=login
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
JobCompType=jobcomp/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=20
InactiveLimit=0
KillWait=5
MinJobAge=600
OverTimeLimit=0
JobRequeue=1
FirstJobId={first}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
UnkillableStepTimeout=180
{nodes}
PartitionName=low Nodes={names} Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes={names} MaxTime=INFINITE State=UP PriorityTier=10
"""
_DBD = """AuthType=auth/munge
DbdHost=login
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
LogFile={state}/slurmdbd.log
PidFile={state}/slurmdbd.pid
"""
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\nConstrainSwapSpace=no\n"
SACCT = "JobID,JobName%18,Partition,State%24,ExitCode,DerivedExitCode,Elapsed,Timelimit,NNodes,NodeList%16,ReqMem,MaxRSS,Reason"


@dataclass(slots=True)
class Slurm:
    nodes: list[Node]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def submit(self, script: str, name: str = "job.sh", *options: str) -> str:
        """sbatch a script in the work folder as the user; the job id."""
        path = sandbox.WORK / name
        path.write_text(script)
        sandbox.give(path)
        return self.user("sbatch", "--parsable", *options, name).strip()

    def user(self, *command: str) -> str:
        return sh(
            *command, cwd=sandbox.WORK, user=sandbox.UID, group=sandbox.UID, extra_groups=[], env=sandbox.environment()
        )

    def state(self, job: str) -> str:
        return sh("squeue", "-h", "-a", "-t", "all", "-j", job, "-o", "%T").strip().split("\n")[0]

    def wait(self, job: str, *states: str, timeout: float = 300) -> str:
        """Until the job is in one of `states` (default: any final state)."""
        final = states or ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED")
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            state = self.state(job)
            if state in final:
                time.sleep(2)  # accounting and the last output
                return state
            time.sleep(0.5)
        raise TimeoutError(f"job {job} is {self.state(job)}: {self.show(job)}")

    def show(self, job: str) -> str:
        return sh("scontrol", "show", "job", job)

    def sacct(self, job: str) -> str:
        time.sleep(3)
        return sh("sacct", "-D", "-j", job, f"--format={SACCT}")


def start(names: list[str], cpus: int = 8, memory: int = 16000, first: int = 48211) -> Slurm:
    made = sandbox.nodes(names)
    for folder in (STATE / "state", Path("/run/munge"), Path("/run/mysqld"), *(STATE / f"spool-{n}" for n in names)):
        folder.mkdir(parents=True)
    for place in ("/var/lib/munge", "/var/log/munge", "/var/lib/mysql"):
        sh("mount", "-t", "tmpfs", "tmpfs", place)
    key = Path("/etc/munge/munge.key")
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    sh("chown", "-R", "munge:munge", "/run/munge", "/etc/munge", "/var/lib/munge", "/var/log/munge")
    lines = "\n".join(
        f"NodeName={n.name} NodeAddr={n.address} CPUs={cpus} RealMemory={memory} State=UNKNOWN" for n in made
    )
    conf = _CONF.format(state=STATE, first=first, nodes=lines, names=",".join(names))
    for name, text in (("slurm.conf", conf), ("slurmdbd.conf", _DBD.format(state=STATE)), ("cgroup.conf", _CGROUP)):
        Path("/etc/slurm", name).write_text(text)
        Path("/etc/slurm", name).chmod(0o600 if name == "slurmdbd.conf" else 0o644)
    slurm = Slurm(made)
    slurm.daemons["munged"] = subprocess.Popen(
        ["runuser", "-u", "munge", "--", "/usr/sbin/munged", "-F"], stderr=subprocess.DEVNULL
    )
    _until(lambda: bool(sh("munge", "-n")), "munged")
    _accounting(slurm)
    slurm.daemons["slurmctld"] = subprocess.Popen(["slurmctld", "-D", "-c"], stderr=subprocess.DEVNULL)
    for node in made:
        slurm.daemons[node.name] = subprocess.Popen(
            node.command(["slurmd", "-D", "-N", node.name], "/"), stderr=subprocess.DEVNULL
        )
    _until(lambda: sh("sinfo", "-h", "-N", "-p", "low", "-o", "%T").split() == ["idle"] * len(made), "nodes idle")
    return slurm


def _accounting(slurm: Slurm) -> None:
    if not shutil.which("mariadbd"):
        raise RuntimeError("mariadb-server is not installed")
    sh("chown", "mysql:mysql", "/var/lib/mysql", "/run/mysqld")
    sh("mariadb-install-db", "--user=mysql", "--skip-test-db", "--auth-root-authentication-method=socket")
    slurm.daemons["mariadbd"] = subprocess.Popen(
        ["mariadbd", "--user=mysql", "--skip-networking", "--innodb-buffer-pool-size=64M"], stderr=subprocess.DEVNULL
    )
    _until(lambda: bool(sh("mariadb", "-e", "select 1")), "mariadb")
    sh(
        "mariadb",
        "-e",
        "create database slurm_acct_db; create user slurm@localhost identified by 'slurm'; grant all on slurm_acct_db.* to slurm@localhost;",
    )
    slurm.daemons["slurmdbd"] = subprocess.Popen(["slurmdbd", "-D"], stderr=subprocess.DEVNULL)
    _until(lambda: "Cluster" in sh("sacctmgr", "list", "cluster"), "slurmdbd")
    sh("sacctmgr", "-i", "add", "cluster", "alps")


def _until(ready: object, what: str, timeout: float = 60) -> None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            if ready():  # type: ignore[operator]
                return
        except RuntimeError:
            pass
        time.sleep(0.5)
    raise TimeoutError(f"{what}: not within {timeout:.0f} s")


def stop(slurm: Slurm) -> None:
    with contextlib.suppress(RuntimeError):
        sh("scancel", "-u", "user")
        time.sleep(2)
    for process in reversed(slurm.daemons.values()):
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    for node in slurm.nodes:
        for group in Path("/sys/fs/cgroup").glob(f"*/slurm_{node.name}"):
            for folder in [*sorted((p for p in group.rglob("*") if p.is_dir()), reverse=True), group]:
                with contextlib.suppress(OSError):
                    folder.rmdir()
