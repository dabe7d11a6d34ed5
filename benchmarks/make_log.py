"""Writes a job's log for measuring: python -m benchmarks.make_log KIND MEGABYTES > FILE

KIND: training (64 ranks, metric and memory lines, NCCL at INFO, then one rank out of memory and the rest timing out),
bars (progress bars that a carriage return overwrites), prose (no two lines alike). Seeded: the same bytes every time.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

RANKS = 64
CULPRIT = 41
PHASES = ("forward", "backward", "all-reduce", "optimizer", "data-loading", "logging")


def training(rng: random.Random, size: int) -> Iterator[str]:
    for rank in range(RANKS):
        place = f"{rank}: node{rank // 8:03d}:{2000 + rank}:{3000 + rank} [{rank % 8}] NCCL INFO"
        for channel in range(8):
            yield f"{place} Channel {channel:02d}/8 : {rank}[{rank % 8}] -> {(rank + 1) % RANKS}[{(rank + 1) % 8}] via P2P"
        yield f"{place} comm {rng.getrandbits(44):#x} rank {rank} nranks {RANKS} - Init COMPLETE"
    now = datetime(2026, 3, 1, tzinfo=UTC)
    written = 0
    for step in itertools.count(1):
        now += timedelta(seconds=4.2)
        stamp = f"{now:%Y-%m-%d %H:%M:%S}.{rng.randrange(1000):03d}"
        loss = 2.0 + 9.0 / step + rng.random() / 50
        lines = [
            f"{RANKS - 1}: [{stamp}] iteration {step:8d}/  400000 | consumed samples: {step * 2048:12d} | elapsed time per"
            f" iteration (ms): {rng.gauss(4200, 40):.1f} | learning rate: {1e-4 * rng.random():.6E} | global batch size:"
            f"  2048 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {rng.random():.3f} | number of skipped iterations:"
            "   0 | number of nan iterations:   0 |",
            *(
                f"{RANKS - 1}:     {phase} {'.' * (40 - len(phase))}: ({rng.random() * 900:.2f}, 950.00)"
                for phase in PHASES
            ),
        ]
        for rank in rng.sample(range(RANKS), 4):
            lines.append(
                f"{rank}: [Rank {rank}] (after {step} iterations) memory (MB) | allocated: {rng.gauss(31000, 99):.4f}"
                f" | max allocated: {rng.gauss(61000, 99):.4f} | reserved: {rng.gauss(67000, 99):.1f}"
            )
        if step % 100 == 0:
            lines.append(f"0: saving checkpoint at iteration {step:7d} to /ckpt/run in torch_dist format")
            lines.append(f"0:   successfully saved checkpoint from iteration {step:7d} to /ckpt/run")
        if step % 900 == 0:
            lines.append(f"{rng.randrange(RANKS)}: WARNING:root:step {step} took {rng.gauss(9000, 500):.0f} ms")
        yield from lines
        written += sum(map(len, lines)) + len(lines)
        if written > size - 300_000:
            break
    yield f"{CULPRIT}: Traceback (most recent call last):"
    yield f'{CULPRIT}:   File "/job/train.py", line 88, in <module>'
    yield f"{CULPRIT}:     loss.backward()"
    yield f"{CULPRIT}: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.12 GiB."
    for rank in itertools.chain.from_iterable(itertools.repeat(range(RANKS), 18)):
        if rank != CULPRIT:
            yield (
                f"{rank}: [rank{rank}]:[E301 06:00:{rank % 60:02d}.{rng.randrange(10**9)} ProcessGroupNCCL.cpp:632] [Rank"
                f" {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={rng.randrange(10**6)},"
                f" OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600{rng.randrange(1000):03d} milliseconds"
            )


def bars(rng: random.Random, size: int) -> Iterator[str]:
    written = 0
    for epoch in itertools.count():
        states = []
        for step in range(2000):
            done = step // 80
            bar = "█" * done + " " * (25 - done)
            states.append(
                f"Epoch {epoch}: {step // 20:3d}%|{bar}| {step}/2000 [00:{step % 60:02d}<01:00, {rng.gauss(9, 1):.2f}it/s]"
            )
        line = "\r".join(states)
        yield line
        written += len(line.encode())
        if written > size:
            return


def prose(rng: random.Random, size: int) -> Iterator[str]:
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]
    written = 0
    while written < size:
        line = " ".join(rng.choices(words, k=rng.randint(4, 16)))
        yield line
        written += len(line) + 1


KINDS = {"training": training, "bars": bars, "prose": prose}


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    lines = KINDS[sys.argv[1]](random.Random(5), int(float(sys.argv[2]) * 1e6))  # seeded on purpose
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    for batch in iter(lambda: list(itertools.islice(lines, 20_000)), []):
        sys.stdout.write("\n".join(batch) + "\n")


if __name__ == "__main__":
    main()
