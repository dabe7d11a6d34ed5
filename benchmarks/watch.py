"""What `triage watch` costs: python -m benchmarks.watch [--ranks 64] [--seconds 120] [--soak ROUNDS].

A job of real processes on this machine: one in eight spins, the others sleep and write a line a second to a log of their own, as ranks do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_RANK = """
import os, sys, time
rank = int(os.environ["RANK"])
log = open(f"{sys.argv[1]}/rank_{rank}.log", "a", buffering=1)
os.dup2(log.fileno(), 1)
step = 0
while True:
    step += 1
    print(f"[rank{rank}]: step {step} loss {1 / step:.4f} lr 0.0003", flush=True)
    ends = time.monotonic() + 1.0
    while rank % 8 == 0 and time.monotonic() < ends - 0.98:
        pass
    time.sleep(max(0.0, ends - time.monotonic()))
"""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--ranks", type=int, default=64)
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--soak", type=int, default=0, metavar="ROUNDS")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job = _job(given.ranks, folder)
        try:
            if given.soak:
                _soak(job.pid, given.soak, folder)
            else:
                _cost(job.pid, given.ranks, given.seconds, folder)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def _job(ranks: int, folder: str) -> subprocess.Popen[bytes]:
    start = f"""
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "-S", "-c", {_RANK!r}, {folder!r}], env=dict(os.environ, RANK=str(n))) for n in range({ranks})]
ranks[0].wait()
"""
    job = subprocess.Popen([sys.executable, "-S", "-c", start], start_new_session=True)
    while len(list(Path(folder).glob("rank_*.log"))) < ranks:
        time.sleep(0.2)
    return job


def _watch(pid: int, folder: str, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "triage", "watch", "--pid", str(pid), "--quiet", *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ, TRIAGE_HOME=folder))


def _cost(pid: int, ranks: int, seconds: float, folder: str) -> None:
    watcher = _watch(pid, folder)
    try:
        time.sleep(5)
        before = _cpu(watcher.pid)
        began = time.monotonic()
        time.sleep(seconds)
        used = (_cpu(watcher.pid) - before) / (time.monotonic() - began)
        print(f"{ranks} ranks, default period, {seconds:g} s: {100 * used:.2f} % of a core, {_rss(watcher.pid):.0f} MB")
    finally:
        watcher.kill()
        watcher.wait()


def _soak(pid: int, rounds: int, folder: str) -> None:
    beat = Path(folder, "beat.json")
    watcher = _watch(pid, folder, "--period", "20ms", "--heartbeat", str(beat))
    try:
        done, last = 0, ""
        shown = 0
        while done < rounds and watcher.poll() is None:
            time.sleep(0.005)
            with contextlib.suppress(OSError):
                text = beat.read_text()
                done, last = done + (text != last), text
            if done >= shown:
                files = len(list(Path(f"/proc/{watcher.pid}/fd").iterdir()))
                print(f"after {done} rounds: {_rss(watcher.pid):.1f} MB, {files} open files", flush=True)
                shown += max(1, rounds // 8)
    finally:
        watcher.kill()
        watcher.wait()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _rss(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
