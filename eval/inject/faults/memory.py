"""Memory that runs out: of a cgroup, of a limit, of /dev/shm; and data-loading workers."""

from __future__ import annotations

import os
import signal

import sandbox
from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, RERUN, fit, pretrain


@fault(
    "c128",
    "cgroup-oom",
    "one rank's cache grows until the memory cgroup's OOM killer takes it; the kernel log says so",
    "cascade",
    host="node-d",
)
def cgroup_oom(lab: Lab) -> Truth:
    grow = '        text = torch.from_numpy(self.tokens[start : start + self.seq_length + 1].astype(np.int64))\n        if self.path.name.endswith("_03"):\n            self.cache[i] = np.ones((4, 1024, 1024), dtype=np.int64)\n'
    pretrain(
        lab, 4,
        ("core/data.py", "        self.seq_length = seq_length\n", "        self.seq_length = seq_length\n        self.cache = {}\n"),
        ("core/data.py", "        text = torch.from_numpy(self.tokens[start : start + self.seq_length + 1].astype(np.int64))\n", grow),
    )  # fmt: skip
    group = sandbox.memory_group("job_771523", 5 << 30)
    lab.torchrun(4, "pretrain.py --train-iters 2000 --log-interval 5", group=group)
    lab.keep("job.log")
    lab.keep_kernel()
    return Truth(
        "failed", "host-out-of-memory", "resource-exhaustion", FIX,
        (Hit("dmesg.txt", "Memory cgroup out of memory: Killed process"), Hit("dmesg.txt", "oom-kill:constraint"), Hit("job.log", "exitcode: -9"), Hit("job.log", "(SIGKILL)")),
        ranks=(3,), must_mention=(("memory",),), must_not=("out-of-memory", *CONSEQUENCES),
        why="Rank 3's shard cache grows by 32 MB a sample until job_771523's limit; the kernel kills that process.",
    )  # fmt: skip


@fault("c129", "alloc-limit", "address space is limited: torch cannot allocate", "cascade", host="node-d")
def alloc_limit(lab: Lab) -> Truth:
    pretrain(
        lab,
        2,
        (
            "core/training.py",
            "    results = evaluate(valid",
            "    history = torch.zeros(args.eval_iters, 400, 4096, 4096)\n    results = evaluate(valid",
        ),
    )
    lab.start(
        "ulimit -v 40000000; exec torchrun --standalone --nproc-per-node 2 pretrain.py --train-iters 400 --log-interval 10 --eval-interval 200",
        "job.log",
    ).wait()
    lab.keep("job.log")
    return Truth(
        "failed", "host-out-of-memory", "resource-exhaustion", FIX, (Hit("job.log", "can't allocate memory"),),
        also_accept=("runtime-error",), ranks=(0, 1), must_mention=(("memory", "allocate"),), must_not=("out-of-memory", *CONSEQUENCES),
        why="Evaluation asks for 134 GB of host memory at once.",
    )  # fmt: skip


@fault("c130", "worker-killed", "a data-loading worker of one rank is killed", "cascade", host="node-b")
def worker_killed(lab: Lab) -> Truth:
    fit(lab, train=40, epochs=40, workers=2)
    runs = lab.start_ranks(4, "train.py config.yaml", "logs/rank{rank}.log")
    lab.wait_for("logs/rank1.log", "epoch 2 step 20")
    top = sandbox.rank_pid(1)
    workers = [p for p in sandbox.processes() if sandbox.parent(p) == top]
    os.kill(workers[0], signal.SIGKILL)
    lab.finish(*runs)
    lab.keep("logs", "logs")
    return Truth(
        "failed", "dataloader-killed", "unknown", RERUN, (Hit("logs/rank1.log", "is killed by signal: Killed"),),
        also_accept=("host-out-of-memory",), ranks=(1,), must_mention=(("worker",),), must_not=CONSEQUENCES,
        why="One DataLoader worker of rank 1 got SIGKILL (from a person; memory was free). The others lost their peer.",
    )  # fmt: skip


@fault("c131", "shm-full", "/dev/shm is too small for the data loader's tensors", "cascade", shm="24m", host="node-b")
def shm_full(lab: Lab) -> Truth:
    fit(lab, features=8192, batch=128, per_shard=128, train=24, val=4, workers=4, epochs=10)
    lab.torchrun(2, "train.py config.yaml")
    lab.keep("job.log")
    lab.keep_text("df.txt", lab.tool("df", "-h", "/home/user", "/tmp", "/dev/shm"))
    return Truth(
        "failed", "host-out-of-memory", "resource-exhaustion", FIX, (Hit("job.log", "unable to allocate shared memory(shm)"),),
        also_accept=("dataloader-killed", "disk-full"), must_mention=(("shm", "shared memory"),), must_not=CONSEQUENCES,
        why="Each batch is 4 MB and four workers a rank prefetch two each: the 24 MB of /dev/shm are full.",
    )  # fmt: skip
