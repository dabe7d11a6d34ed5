"""Losses and residuals that go wrong."""

from __future__ import annotations

import re

import numpy as np
from lab import WORK, Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, finetune, heat, pretrain

SKIP = ("fix-and-resubmit", "rollback-and-skip")


@fault(
    "c171",
    "nan-stops",
    "one rank meets a sample with no token to learn from: 0/0, and the program stops",
    "cascade",
    host="cn-112",
)
def nan_stops(lab: Lab) -> Truth:
    pretrain(
        lab,
        4,
        ("core/data.py", '"loss_mask": torch.ones(len(text) - 1)}', '"loss_mask": (text[1:] != 0).float()}'),
        vocab=500,
    )
    shard = np.memmap("/mnt/data/corpus_train_01.bin", dtype=np.int32, mode="r+")
    shard[38_000:38_200] = 0
    shard.flush()
    lab.torchrun(4, "pretrain.py --micro-batch-size 1 --train-iters 2000 --log-interval 5 --eval-interval 500")
    lab.keep("job.log")
    return Truth(
        "failed", "loss-spike", "data-error", SKIP, (Hit("job.log", "Rank 1: found NaN in local forward loss calculation"),),
        also_accept=("assertion-error",), ranks=(1,), must_mention=(("NaN",),), must_not=CONSEQUENCES,
        why="200 padding tokens in rank 1's shard: a sample of which every token is masked divides zero by zero.",
    )  # fmt: skip


@fault(
    "c172",
    "nan-goes-on",
    "every loss after a step is NaN and the run goes on to its end",
    "misleading",
    "large",
    host="cn-112",
)
def nan_goes_on(lab: Lab) -> Truth:
    pretrain(
        lab,
        2,
        (
            "core/training.py",
            "    loss = torch.sum(losses * loss_mask) / loss_mask.sum()\n",
            "    loss = torch.sum(losses * loss_mask) / loss_mask.sum()\n    loss = loss + 1e-4 * torch.sqrt(loss - 1.9)\n",
        ),
        tokens=120_000,
    )
    lab.torchrun(
        2, "pretrain.py --train-iters 1600 --log-interval 1 --eval-interval 200 --no-check-for-nan-in-loss-and-grad"
    )
    lab.keep("job.log")
    return Truth(
        "failed", "loss-spike", "software-bug", SKIP, (Hit("job.log", "lm loss: NAN", "first"),),
        also_outcome=("healthy",), must_mention=(("NaN",),), must_not=CONSEQUENCES,
        why="An auxiliary term takes the square root of a number that becomes negative: NaN from then on, in all weights. The process ends with code 0.",
    )  # fmt: skip


@fault(
    "c173",
    "diverges",
    "the learning rate is far too high: the loss grows by orders of magnitude, without NaN",
    split="test",
    host="node-b",
)
def diverges(lab: Lab) -> Truth:
    finetune(lab, ("finetune.py", "warmup_steps=10,", "warmup_steps=1500,"))
    lab.torchrun(2, "finetune.py --learning_rate 3.0 --max_steps 2000 --eval_steps 500 --save_steps 500", "train.log")
    lab.keep("train.log")
    text = (WORK / "train.log").read_bytes().decode()
    losses = list(re.finditer(r"{'loss': '([\d.]+)'[^}]*}", text))
    first = next(m for m in losses if float(m[1]) > 10)
    worst = max(losses, key=lambda m: float(m[1]))
    climb = text.count("\n", first.start(), worst.start())
    return Truth(
        "failed", "loss-spike", "config-error", SKIP, (Hit("train.log", first[0], "first", climb),),
        also_outcome=("healthy",), must_mention=(("loss", "diverg", "learning rate"),), must_not=CONSEQUENCES,
        why="The learning rate rises to 3.0 over 1500 steps: the loss goes from 2.5 to some hundreds, and no better than at the start at the end. The process ends with code 0.",
    )  # fmt: skip


@fault("c174", "mpi-diverges", "an explicit scheme beyond its stability limit: the solver stops itself", host="cn-112")
def mpi_diverges(lab: Lab) -> Truth:
    heat(lab, dt="1.1e-6", nx=512, ny=512, steps=20000)
    lab.start("exec mpirun --oversubscribe -np 4 ./heat2d heat.in", "heat.out").wait()
    lab.keep("heat.out")
    return Truth(
        "failed", "loss-spike", "config-error", SKIP, (Hit("heat.out", "non-finite residual at step"),),
        also_accept=("value-error", "unknown", "runtime-error"), must_mention=(("diverged", "non-finite", "residual", "CFL"),), must_not=("native-crash", *CONSEQUENCES),
        why="CFL is above 0.25: the residual grows from step to step until it overflows; the program calls MPI_Abort(4).",
    )  # fmt: skip
