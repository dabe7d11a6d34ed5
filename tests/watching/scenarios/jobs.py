"""Jobs that hang, and jobs that only look so: python jobs.py [torch], then one JSON object a line on stdin for each job to start.

torch is imported once; each job is a fork of this process, each rank a fork of its job. Answers with the job's pid.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

WORLD = 4
ODD = 1  # the rank that does otherwise
STEPS = 6  # before it does
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_void_p
pipes: list[tuple[int, int]] = []  # one a rank, which it reads from
turns: list = []  # a lock of all ranks


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    if "torch" in sys.argv:
        import torch
        import torch.distributed
        import torch.utils.data

        torch.set_num_threads(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    tell(json.dumps({"ready": True}))
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                launch(asked)
            finally:
                os._exit(0)
        tell(json.dumps({"pid": pid}))


def launch(asked: dict) -> None:
    os.setsid()
    os.close(0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    folder = Path(asked["folder"])
    output(folder / "launcher.out")
    pipes.extend(os.pipe() for _ in range(asked.get("world", WORLD)))
    turns.append(multiprocessing.Lock())
    ranks = [fork(asked, rank, folder) for rank in range(asked.get("world", WORLD))]
    for rank in ranks:
        os.waitpid(rank, 0)


def fork(asked: dict, rank: int, folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        if asked.get("numbered", True):
            ctypes.memmove(libc.getenv(b"RANK"), str(rank).encode(), 1)  # what /proc/PID/environ shows
        output(folder / (f"rank_{rank}.log" if asked.get("numbered", True) else "all.log"))
        globals()[asked["scenario"]](rank, folder, asked)
    except BaseException as error:  # noqa: BLE001 - told in the log of the rank
        tell(f"{type(error).__name__}: {error}")
    os._exit(0)


def output(path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


# ------------------------------------------------------------------------------------------ training
class Group:
    """torch.distributed over gloo; the rendezvous is a file."""

    def __init__(self, rank: int, folder: Path) -> None:
        import torch.distributed as dist

        self.rank, self.dist = rank, dist
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
        self.step = 0

    def train(self, steps: int = STEPS, pause: float = 0.05) -> None:
        for _ in range(steps):
            time.sleep(pause)
            self.reduce()
            self.step += 1
            tell(f"[rank{self.rank}]: step {self.step} loss {1 / self.step:.4f}")

    def reduce(self) -> None:
        import torch

        self.dist.all_reduce(torch.ones(16))

    def wait(self) -> None:
        """For the odd rank, as long as it takes."""
        self.train(1000)


def asleep(rank: int, folder: Path, asked: dict) -> None:
    group = Group(rank, folder)
    group.train()
    if rank == ODD:
        time.sleep(1000)
    group.wait()


def c_call(rank: int, folder: Path, asked: dict) -> None:
    group = Group(rank, folder)
    group.train()
    if rank == ODD:
        libc.pause()
    group.wait()


def spinning(rank: int, folder: Path, asked: dict) -> None:
    group = Group(rank, folder)
    group.train()
    while rank == ODD:
        sum(range(10**7))
    group.wait()


def stopped(rank: int, folder: Path, asked: dict) -> None:
    group = Group(rank, folder)
    group.train()
    if rank == ODD:
        os.kill(os.getpid(), signal.SIGSTOP)
    group.wait()


def blocked(rank: int, folder: Path, asked: dict) -> None:
    """In a frozen file system where one is given, else as the parent of a vfork: both are state D."""
    group = Group(rank, folder)
    group.train()
    if rank == ODD and asked.get("frozen"):
        with Path(asked["frozen"], "checkpoint.pt").open("wb", buffering=0) as file:
            file.write(b"0" * 4096)
    elif rank == ODD and libc.syscall(56, 0x00004000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:  # clone with CLONE_VFORK
        while True:
            time.sleep(1000)
    group.wait()


def other_collective(rank: int, folder: Path, asked: dict) -> None:
    import torch

    group = Group(rank, folder)
    group.train()
    if rank == ODD:
        group.dist.barrier()
        group.dist.recv(torch.ones(16), src=0)
    group.wait()


def dead(rank: int, folder: Path, asked: dict) -> None:
    """gloo's peers notice a closed connection, so the others wait as NCCL's do: for a key that nobody sets."""
    from datetime import timedelta

    group = Group(rank, folder)
    group.train()
    store = group.dist.distributed_c10d._get_default_store()
    if rank == ODD:
        time.sleep(0.5)  # the others have the last of its words, and it is seen alive
        os._exit(1)
    store.wait(["nobody sets it"], timedelta(hours=1))


def dataloader(rank: int, folder: Path, asked: dict) -> None:
    from torch.utils.data import DataLoader

    group = Group(rank, folder)
    loader = iter(DataLoader(Stuck(rank), num_workers=1, prefetch_factor=1)) if rank == ODD else None
    for _ in range(1000):
        if loader:
            next(loader)
        group.train(1)


class Stuck:
    """A dataset whose worker sleeps at an item."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> int:
        if index >= STEPS:
            time.sleep(1000)
        return index


def heartbeats(rank: int, folder: Path, asked: dict) -> None:
    """A thread says that it is alive, and nothing else happens."""
    import threading

    def beat() -> None:
        while True:
            tell(f"[rank{rank}]: heartbeat: alive, {time.monotonic():.0f} s up")
            time.sleep(0.2)

    group = Group(rank, folder)
    group.train()
    threading.Thread(target=beat, daemon=True).start()
    if rank == ODD:
        time.sleep(1000)
    group.wait()


def straggler(rank: int, folder: Path, asked: dict) -> None:
    group = Group(rank, folder)
    group.train(40, 0.1)
    for _ in range(1000):
        if rank == ODD:
            time.sleep(0.9)
        group.train(1, 0.1)


def training(rank: int, folder: Path, asked: dict) -> None:
    Group(rank, folder).train(asked.get("steps", 1000))


# ------------------------------------------------------------------------------------------ without torch
def say(rank: int, text: str) -> None:
    tell(f"[rank{rank}]: {text}")


def steps(rank: int, first: int, many: int, pause: float = 0.1) -> None:
    for step in range(first, first + many):
        time.sleep(pause)
        say(rank, f"step {step} loss {1 / (step + 1):.4f}")


def slow_checkpoint(rank: int, folder: Path, asked: dict) -> None:
    steps(rank, 1, 10)
    say(rank, f"saving checkpoint to {folder}/ckpt")
    if rank == 0:
        with (folder / "ckpt").open("wb", buffering=0) as file:
            for _ in range(int(asked["seconds"] * 10)):
                file.write(b"0" * 65536)
                time.sleep(0.1)
    else:
        time.sleep(asked["seconds"])
    say(rank, "successfully saved checkpoint")
    steps(rank, 11, 1000)


def compiling(rank: int, folder: Path, asked: dict) -> None:
    say(rank, "torch.compile: compiling the model")
    if rank == 0:
        script = folder / "cc1plus"
        script.symlink_to("/bin/sh")
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([script, "-c", "while :; do :; done"], timeout=asked["seconds"], check=False)
    else:
        time.sleep(asked["seconds"])
    steps(rank, 1, 1000)


def evaluation(rank: int, folder: Path, asked: dict) -> None:
    steps(rank, 1, 10)
    say(rank, "running evaluation on the validation set")
    ends = time.monotonic() + asked["seconds"]
    while rank == 0 and time.monotonic() < ends:
        sum(range(10**5))
    time.sleep(max(0.0, ends - time.monotonic()))
    say(rank, "validation loss: 2.31")
    steps(rank, 11, 1000)


def stages(rank: int, folder: Path, asked: dict) -> None:
    """Sleeps between stages, and writes a little after each: not to its log."""
    for stage in range(1000):
        time.sleep(0.5)
        (folder / f"stage_{rank}_{stage}.txt").write_text("done\n" * 20)


def finished(rank: int, folder: Path, asked: dict) -> None:
    steps(rank, 1, 10)
    say(rank, "training completed")


def plain_asleep(rank: int, folder: Path, asked: dict) -> None:
    steps(rank, 1, 10)
    time.sleep(1000)


def ring(rank: int, folder: Path, asked: dict) -> None:
    """Each waits for its neighbour, as ranks do, until the odd one does what it is asked to. log: each opens one of its own."""
    log = (folder / f"rank_{rank}.log").open("a", buffering=1) if asked.get("log") else sys.stdout
    for step in range(1, 1000):
        if rank == ODD and step == STEPS:
            if asked["odd"] == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif asked["odd"] == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            while asked["odd"] == "spin":
                sum(range(10**6))
        time.sleep(0.1)
        os.write(pipes[(rank + 1) % len(pipes)][1], b"0" * 64)
        os.read(pipes[rank][0], 64)
        log.write(f"[rank{rank}]: step {step} loss {1 / step:.4f}\n")
        log.flush()


def workers(rank: int, folder: Path, asked: dict) -> None:
    """All wait for work at one queue: who has its lock reads, the others wait for the lock."""
    with turns[0]:
        os.read(pipes[0][0], 64)


def ended_workers(rank: int, folder: Path, asked: dict) -> None:
    """As a data loader's: they are ended once the work is done, and one ended badly long ago, of which nobody took note."""
    if rank == ODD:
        os._exit(1)
    if rank == 0:
        steps(rank, 1, 10)
        parent = os.getppid()
        for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if int(pid) != os.getpid():
                os.kill(int(pid), signal.SIGTERM)
        os._exit(0)
    time.sleep(1000)


def failing(rank: int, folder: Path, asked: dict) -> None:
    """One is killed, the others fail for it, and their launcher ends well."""
    steps(rank, 1, 10)
    if rank == ODD:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1)
    say(rank, "RuntimeError: Connection closed by peer")
    os._exit(1)


def server(rank: int, folder: Path, asked: dict) -> None:
    """A process that listens, and with a client another that is connected to it."""
    import socket

    if rank == 0:
        listening = socket.create_server(("127.0.0.1", 0))
        (folder / "port").write_text(str(listening.getsockname()[1]))
        while True:
            connection, _ = listening.accept()
            connection.recv(1)


def restarting(rank: int, folder: Path, asked: dict) -> None:
    """What an elastic launcher does: the rank ends, another of its number begins."""
    steps(rank, 1, 10)
    time.sleep(0.5)
    os.execv(
        "/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo step $i loss 0.5; sleep 0.1; done"]
    )


if __name__ == "__main__":
    main()
