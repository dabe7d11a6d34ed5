"""Somebody else's trouble in the same logs."""

from __future__ import annotations

import re

import sandbox
from lab import WORK, Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, fit, healthy, pretrain


@fault(
    "c231",
    "neighbour-oom",
    "the kernel kills a process of another job on the node; this job completes",
    "healthy",
    "misleading",
    host="node-d",
)
def neighbour_oom(lab: Lab) -> Truth:
    pretrain(lab, 2)
    run = lab.start_torchrun(
        2, "pretrain.py --train-iters 1200 --log-interval 10 --eval-interval 400 --save /mnt/scratch/ckpt"
    )
    lab.wait_for("job.log", r"iteration +300/")
    lab.start(
        "exec python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'",
        group=sandbox.memory_group("job_880412", 300 << 20),
    ).wait()
    lab.succeed(lab.finish(run))
    lab.keep("job.log")
    lab.keep_kernel()
    return healthy(
        "The OOM kill is in another job's cgroup (job_880412) and of another process; this run went on to its end."
    )


@fault(
    "c232",
    "neighbour-oom-and-own-error",
    "another job's OOM kill in the kernel log, while this job fails of its own bug",
    "misleading",
    "cascade",
    split="test",
    host="node-d",
)
def neighbour_oom_own(lab: Lab) -> Truth:
    pretrain(
        lab,
        4,
        (
            "core/checkpointing.py",
            '            "args": args,\n',
            '            "args": args,\n            "lr": optimizer.param_groups[1]["lr"],\n',
        ),
    )
    run = lab.start_torchrun(
        4,
        "pretrain.py --train-iters 1200 --log-interval 10 --eval-interval 500 --save /mnt/scratch/ckpt --save-interval 400",
    )
    lab.wait_for("job.log", r"iteration +300/")
    lab.start(
        "exec python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'",
        group=sandbox.memory_group("job_880412", 300 << 20),
    ).wait()
    lab.finish(run)
    lab.keep("job.log")
    lab.keep_kernel()
    return Truth(
        "failed", "index-error", "software-bug", FIX, (Hit("job.log", "IndexError: list index out of range"),), ranks=(0,), must_mention=(("index out of range",),), must_not=("host-out-of-memory", *CONSEQUENCES),
        why="save_checkpoint asks for a second parameter group. The OOM kill in dmesg is of another job's cgroup, seconds earlier.",
    )  # fmt: skip


@fault(
    "c234",
    "early-errors-then-oom",
    "server errors early that do not matter, an OOM kill late that does",
    "misleading",
    "cascade",
    host="node-d",
)
def early_errors(lab: Lab) -> Truth:
    grow = '        x, y = self.current[1]\n        self.recent = getattr(self, "recent", [])\n        self.recent.append(np.repeat(x, 16))\n'
    fit(
        lab,
        ("data.py", "        x, y = self.current[1]\n", grow),
        train=40,
        epochs=30,
        workers=0,
        tracker="http://127.0.0.1:5000",
    )
    group = sandbox.memory_group("job_771530", 2200 << 20)
    runs = lab.start_ranks(2, "train.py config.yaml", "logs/rank{rank}.log", group=group)
    lab.finish(*runs)
    lab.keep("logs", "logs")
    killed = re.findall(r"Killed process (\d+)", lab.keep_kernel())
    ranks = tuple(r for r in (0, 1) if any(f"pid {pid}," in (WORK / f"logs/rank{r}.log").read_text() for pid in killed))
    return Truth(
        "failed", "host-out-of-memory", "resource-exhaustion", FIX, (Hit("dmesg.txt", "Memory cgroup out of memory: Killed process"), Hit("dmesg.txt", "oom-kill:constraint")),
        ranks=ranks, must_mention=(("memory",),), must_not=("out-of-memory", *CONSEQUENCES), why="The dataset keeps 1 MB for each sample it reads; the cgroup's OOM killer takes a rank. The tracker's refused connections are harmless.",
    )  # fmt: skip
