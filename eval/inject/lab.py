"""What a fault is written with: stage a program, break it, run it, wait, hurt it, collect its files, say what is true."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import sandbox
from sandbox import UID, WORK, Node

PAYLOAD = Path("/mnt/payload")
OUT = Path("/mnt/out")


@dataclass(frozen=True, slots=True)
class Hit:
    """Lines of an input file that hold `text` (a substring): all of them, the first or the last, `after` more lines with each."""

    file: str
    text: str
    which: str = "all"
    after: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """The label, from what was done to the run; fields as in case.yaml."""

    outcome: str
    failure_type: str
    root_cause_class: str
    action: tuple[str, ...]
    evidence: tuple[Hit, ...] = ()
    also_outcome: tuple[str, ...] = ()
    also_accept: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    must_mention: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    case: str
    name: str
    what: str
    tags: tuple[str, ...]
    run: Callable[[Lab], Truth]
    split: str
    shm: str
    host: str


FAULTS: dict[str, Fault] = {}


def fault(
    case: str, name: str, what: str, *tags: str, split: str = "dev", shm: str = "2g", host: str = "node-a"
) -> Callable[[Callable[[Lab], Truth]], Callable[[Lab], Truth]]:
    """Register a function that makes one failure."""

    def register(run: Callable[[Lab], Truth]) -> Callable[[Lab], Truth]:
        if name in FAULTS or any(f.case == case for f in FAULTS.values()):
            raise ValueError(f"{name} or {case} is taken")
        FAULTS[name] = Fault(case, name, what, tags, run, split, shm, host)
        return run

    return register


@dataclass(slots=True)
class Lab:
    """One run inside the sandbox; files collected here become the case's inputs, in this order."""

    inputs: list[str] = field(default_factory=list)
    scheduler: dict[str, object] = field(default_factory=dict)
    kernel_from: float = field(default_factory=sandbox.kernel_time)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    # -- stage ---------------------------------------------------------------------------------------------------
    def stage(self, family: str, *edits: tuple[str, str, str], to: Path = WORK) -> None:
        """Copy a program and change it: (file, old text, new text), each old text must be there once."""
        sandbox.copy_tree(PAYLOAD / family, to)
        for name, old, new in edits:
            path = to / name
            text = path.read_text()
            if text.count(old) != 1:
                raise ValueError(f"{name}: {old!r} is there {text.count(old)} times")
            path.write_text(text.replace(old, new))

    def write(self, path: str | Path, text: str, mode: int = 0o644) -> Path:
        target = WORK / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)
        sandbox.give(target.parent)
        return target

    def tool(self, *command: str, **env: str) -> str:
        """Run a command as the user, to its end; its output is no part of the case."""
        return sandbox.sh(*command, cwd=WORK, user=UID, group=UID, extra_groups=[], env=sandbox.environment() | env)

    # -- run -----------------------------------------------------------------------------------------------------
    def start(
        self,
        command: str,
        log: str = "",
        node: Node | None = None,
        env: Mapping[str, str] | None = None,
        group: Path | None = None,
        append: bool = False,
        cwd: Path = WORK,
    ) -> subprocess.Popen[bytes]:
        """Start a shell command as the user, both outputs into WORK/log, in memory cgroup `group`."""
        full = sandbox.environment() | dict(env or {})
        argv = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "bash", "-c", command]
        if node and node.holder:
            argv = node.command(argv, str(cwd))
        target = WORK / log if log else Path(os.devnull)
        if log:
            target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab" if append else "wb") as out:

            def join() -> None:
                os.setsid()
                if group:
                    (group / "cgroup.procs").write_text(str(os.getpid()))

            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=cwd, env=full, preexec_fn=join
            )
        sandbox.give(WORK / log) if log else None
        self.started.append(process)
        return process

    def torchrun(self, ranks: int, script: str, log: str = "job.log", options: str = "", **more: object) -> int:
        """torchrun to its end; the exit code."""
        process = self.start_torchrun(ranks, script, log, options, **more)
        return self.finish(process)

    def start_torchrun(
        self, ranks: int, script: str, log: str = "job.log", options: str = "", **more: object
    ) -> subprocess.Popen[bytes]:
        options = options or "--standalone"
        return self.start(f"exec torchrun {options} --nproc-per-node {ranks} {script}", log, **more)  # type: ignore[arg-type]

    def start_ranks(self, ranks: int, script: str, pattern: str, **more: object) -> list[subprocess.Popen[bytes]]:
        """One plain process a rank, as a site's own launcher does, each with a file of its own (`pattern` takes the rank)."""
        base = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": str(ranks)}
        return [
            self.start(
                f"exec python -u {script}",
                pattern.format(rank=r),
                env=base | {"RANK": str(r), "LOCAL_RANK": str(r)},
                **more,
            )  # type: ignore[arg-type]
            for r in range(ranks)
        ]

    def finish(self, *processes: subprocess.Popen[bytes], timeout: float = 300) -> int:
        """Wait for the end of all; the first non-zero exit code."""
        codes = [p.wait(timeout) for p in processes]
        return next((c for c in codes if c), 0)

    def succeed(self, code: int) -> None:
        """A run that is to be labelled healthy must have ended with 0."""
        if code:
            raise RuntimeError(f"the run was to end well and ended with {code}")

    # -- hurt ----------------------------------------------------------------------------------------------------
    def wait_for(self, log: str, text: str, timeout: float = 240) -> None:
        """Until a line of WORK/log holds the regular expression `text`."""
        end = time.monotonic() + timeout
        path = WORK / log
        while time.monotonic() < end:
            if path.exists() and re.search(text, path.read_text("utf-8", "replace")):
                return
            time.sleep(0.1)
        tail = path.read_text("utf-8", "replace")[-2000:] if path.exists() else "(no file)"
        raise TimeoutError(f"{log}: no line with {text!r}:\n{tail}")

    def signal_rank(self, rank: int, number: signal.Signals) -> int:
        pid = sandbox.rank_pid(rank)
        os.kill(pid, number)
        return pid

    # -- collect -------------------------------------------------------------------------------------------------
    def keep(self, source: str | Path, name: str = "") -> None:
        """Take a file or folder of WORK into the case under `name`."""
        path = WORK / source
        target = OUT / (name or Path(source).name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, target)
        self.add(target.name if target.parent == OUT else str(target.relative_to(OUT)))

    def keep_text(self, name: str, text: str) -> None:
        """The name of the machine's own build of the kernel is left out; its number stays."""
        release = os.uname().release
        (OUT / name).write_text(text.replace(release, release.split("-")[0]))
        self.add(name)

    def keep_kernel(self, name: str = "dmesg.txt") -> str:
        """The kernel's log since the run began: real, whatever stands in it."""
        text = sandbox.kernel_log(self.kernel_from)
        self.keep_text(name, text)
        return text

    def add(self, name: str) -> None:
        if name not in self.inputs:
            self.inputs.append(name)
