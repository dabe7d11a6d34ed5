"""The main job on large inputs: `python -m benchmarks.diagnose`.

A 300 MB log, and a folder of 512 files of 1 MB cut out of one, each with its failure in the last lines; and 512 ranks with 1 GB
in all, of which one fails and the others time out waiting for it. Each is diagnosed by the real command in a process of its
own; wall seconds, CPU seconds and peak memory are the operating system's own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.make_log import training


def one_log(path: Path, megabytes: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        for line in training(random.Random(1), megabytes * 1_000_000):
            out.write(line + "\n")


def many_logs(folder: Path, files: int) -> None:
    """One log cut into files of about 1 MB; the failure stands in the last of them."""
    folder.mkdir()
    lines = training(random.Random(2), files * 1_000_000)
    for rank in range(files):
        with (folder / f"rank_{rank}.log").open("w", encoding="utf-8") as out:
            size = 0
            while size < 1_000_000 and (line := next(lines, None)) is not None:
                size += out.write(line + "\n")


FAULTY = 317
FAULT = """Traceback (most recent call last):
  File "/opt/train/pretrain.py", line 212, in train_step
    loss.backward()
torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered
"""
WAIT = (
    "[rank{rank}]:[E1118 10:10:0{late}.660466 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=88123, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 60000{late} "
    "milliseconds before timing out.\n"
)


def one_faulty(folder: Path, files: int) -> None:
    """A log of 2 MB for each rank; the faulty one ends ten minutes before the others give up."""
    folder.mkdir()
    bodies = [healthy_rank(random.Random(n), 2_000_000) for n in range(8)]
    for rank in range(files):
        end = FAULT if rank == FAULTY else WAIT.format(rank=rank, late=rank % 10)
        (folder / f"rank_{rank}.log").write_text(bodies[rank % 8] + end, "utf-8")


def healthy_rank(rng: random.Random, size: int) -> str:
    now, lines, written = datetime(2026, 11, 18, 2, tzinfo=UTC), [], 0
    while written < size:
        now += timedelta(seconds=1.7)
        lines.append(
            f"{now:%Y-%m-%d %H:%M:%S},{rng.randrange(1000):03d} INFO train: step {len(lines)} loss {2 + rng.random():.4f} "
            f"grad_norm {rng.random():.3f} lr {rng.random() * 1e-4:.3e} tokens/s {rng.gauss(51000, 300):.0f}\n"
        )
        written += len(lines[-1])
    return "".join(lines)


def measure(path: Path, home: Path) -> dict[str, object]:
    start = time.monotonic()
    out = home.with_suffix(".json")
    with out.open("wb") as target:
        process = subprocess.Popen(
            [sys.executable, "-m", "triage", "diagnose", str(path), "--format", "json", "--no-record"],
            stdout=target,
            env={**os.environ, "TRIAGE_HOME": str(home)},
        )
        _, _, usage = os.wait4(process.pid, 0)
    found = json.loads(out.read_text("utf-8"))
    return {
        "input": path.name,
        "wall_s": round(time.monotonic() - start, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
        "answer": found["failure_type"],
        "ranks": found["suspects"]["ranks"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--files", type=int, default=512)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        work = Path(tmp)
        many_logs(work / "ranks", args.files)
        print(json.dumps(measure(work / "ranks", work / "home")))
        one_faulty(work / "faulty", args.files)
        print(json.dumps(measure(work / "faulty", work / "home")))
        one_log(work / "job.log", args.megabytes)
        print(json.dumps(measure(work / "job.log", work / "home")))


if __name__ == "__main__":
    main()
