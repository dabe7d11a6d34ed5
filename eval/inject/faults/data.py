"""Datasets, checkpoints, disks and numbers."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import sandbox
from lab import WORK, Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, Edit, finetune, fit, heat, pretrain

SKIP = ("fix-and-resubmit", "rollback-and-skip")


@fault("c161", "bad-json", "one line of the training records is cut", host="gpu04")
def bad_json(lab: Lab) -> Truth:
    finetune(lab)
    path = Path("/mnt/data/sft/train.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    lines[211] = lines[211][:40] + "\n"
    path.write_text("".join(lines))
    lab.torchrun(4, "finetune.py", "train.log")
    lab.keep("train.log")
    return Truth(
        "failed", "dataset-loading-error", "data-error", FIX, (Hit("train.log", "json.decoder.JSONDecodeError"),),
        also_accept=("value-error",), ranks=(0, 1, 2, 3), must_mention=(("JSON",),), must_not=CONSEQUENCES,
        why="Line 212 of train.jsonl is cut in the middle of a record.",
    )  # fmt: skip


@fault(
    "c162",
    "bad-shard",
    "one shard of the dataset is truncated; a worker of the rank that meets it raises",
    "cascade",
    split="test",
    host="node-b",
)
def bad_shard(lab: Lab) -> Truth:
    fit(
        lab,
        ("data.py", "    def load(self, path):\n", '    def load(self, path):\n        log.debug("open %s", path)\n'),
        train=64,
        epochs=3,
        batch=8,
    )
    shard = Path("/mnt/data/digits/train/shard_00041.npz")
    shard.write_bytes(shard.read_bytes()[:20_000])
    lab.finish(*lab.start_ranks(4, "train.py config.yaml", "logs/rank{rank}.log"))
    lab.keep("logs", "logs")
    ranks = [r for r in range(4) if "BadZipFile" in (Path("/mnt/out/logs") / f"rank{r}.log").read_text()]
    return Truth(
        "failed", "dataset-loading-error", "data-error", FIX, tuple(Hit(f"logs/rank{r}.log", "zipfile.BadZipFile") for r in ranks),
        ranks=tuple(ranks), must_mention=(("zip", "shard", "corrupt", "npz"),), must_not=CONSEQUENCES,
        why="shard_00041.npz is cut after 20,000 bytes. The traceback does not name the file.",
    )  # fmt: skip


@fault("c163", "missing-shard", "a shard is removed while the job runs", "cascade", host="node-b")
def missing_shard(lab: Lab) -> Truth:
    fit(lab, train=32, epochs=20, workers=1, batch=16)
    run = lab.start_torchrun(4, "train.py config.yaml")
    lab.wait_for("job.log", "epoch 1 done")
    Path("/mnt/data/digits/train/shard_00017.npz").unlink()
    lab.finish(run)
    lab.keep("job.log")
    return Truth(
        "failed", "file-not-found", "data-error", (*FIX, "restart"), (Hit("job.log", "No such file or directory: '/mnt/data/digits/train/shard_00017.npz'"),),
        also_accept=("dataset-loading-error",), must_mention=(("shard_00017.npz",),), must_not=("dataloader-killed", *CONSEQUENCES),
        why="shard_00017.npz was deleted in epoch 2.",
    )  # fmt: skip


@fault(
    "c164",
    "truncated-checkpoint",
    "the run is killed while it writes a checkpoint; the next run cannot read it",
    "restart",
    "misleading",
    host="node-c",
)
def truncated_checkpoint(lab: Lab) -> Truth:
    slow: Edit = (
        "core/checkpointing.py",
        '        torch.save(state, name)\n        (Path(args.save) / "latest_checkpointed_iteration.txt").write_text(str(iteration))\n',
        '        (Path(args.save) / "latest_checkpointed_iteration.txt").write_text(str(iteration))\n        torch.save(state, name)\n',
    )
    pretrain(lab, 2, slow)
    command = "pretrain.py --hidden-size 1024 --num-layers 12 --num-attention-heads 8 --train-iters 60 --log-interval 1 --eval-interval 1000 --save-interval 6 --save /mnt/scratch/ckpt --load /mnt/scratch/ckpt"
    run = lab.start_torchrun(2, command, "run1.log")
    lab.wait_for("run1.log", "successfully saved checkpoint from iteration +6 ")
    part = Path("/mnt/scratch/ckpt/iter_0000012/mp_rank_00/model_optim_rng.pt")
    while not part.exists() or part.stat().st_size < 50_000_000:
        time.sleep(0.002)
    os.kill(run.pid, signal.SIGKILL)
    for rank in range(2):
        lab.signal_rank(rank, signal.SIGKILL)
    lab.finish(run)
    lab.torchrun(2, command, "run2.log")
    lab.keep("run1.log")
    lab.keep("run2.log")
    return Truth(
        "failed", "checkpoint-corrupt", "data-error", ("rollback-and-skip", "fix-and-resubmit", "restart"), (Hit("run2.log", "PytorchStreamReader failed"),),
        also_accept=("model-loading-error",), ranks=(0, 1), must_mention=(("checkpoint",), ("iter_0000006", "earlier", "previous", "older", "iteration 12", "iter_0000012")), must_not=CONSEQUENCES,
        why="The first run was killed inside torch.save at iteration 12, after the tracker file was written; the second reads a truncated file. Iteration 6 is whole.",
    )  # fmt: skip


@fault(
    "c165", "state-dict-mismatch", "the model is wider than the checkpoint that it resumes", "restart", host="node-b"
)
def state_dict(lab: Lab) -> Truth:
    fit(lab, epochs=1)
    lab.torchrun(2, "train.py config.yaml", "first.log")
    fit(lab, epochs=3, width=160, resume=True)
    lab.torchrun(2, "train.py config.yaml", "job.log")
    lab.keep("job.log")
    return Truth(
        "failed", "model-loading-error", "config-error", FIX, (Hit("job.log", "Error(s) in loading state_dict for Sequential"), Hit("job.log", "size mismatch for 0.weight")),
        ranks=(0, 1), must_mention=(("size mismatch", "state_dict"),), must_not=("checkpoint-corrupt", *CONSEQUENCES),
        why="The configuration has width 160, the checkpoint 128.",
    )  # fmt: skip


@fault("c166", "disk-full", "the file system is full when rank 0 writes a checkpoint", "cascade", host="gpu04")
def disk_full(lab: Lab) -> Truth:
    finetune(lab)
    sandbox.disk("/mnt/scratch/user", 64)
    lab.tool("mkdir", "/mnt/scratch/user/old_runs")
    lab.tool("dd", "if=/dev/urandom", "of=/mnt/scratch/user/old_runs/exp_0412.tar", "bs=1M", "count=46", "status=none")
    lab.torchrun(2, "finetune.py --output_dir /mnt/scratch/user/sft --max_steps 2000 --save_steps 100", "train.log")
    lab.keep("train.log")
    lab.keep_text("df.txt", lab.tool("df", "-h", "/home/user", "/mnt/scratch/user", "/tmp"))
    return Truth(
        "failed", "disk-full", "resource-exhaustion", FIX, (Hit("train.log", "No space left on device"), Hit("df.txt", "/mnt/scratch/user")),
        ranks=(0,), must_mention=(("space", "full", "/mnt/scratch/user"),), must_not=("checkpoint-corrupt", *CONSEQUENCES),
        why="/mnt/scratch/user is full at the second or third checkpoint.",
    )  # fmt: skip


@fault(
    "c167",
    "inodes-full",
    "no inode is left although df shows free space",
    "cascade",
    "misleading",
    split="test",
    host="node-c",
)
def inodes_full(lab: Lab) -> Truth:
    sandbox.tmpfs("/mnt/scratch/user", "size=2g,nr_inodes=20")
    pretrain(lab, 2)
    lab.torchrun(
        2,
        "pretrain.py --train-iters 2000 --log-interval 10 --save-interval 50 --eval-interval 500 --save /mnt/scratch/user/ckpt",
    )
    lab.keep("job.log")
    lab.keep_text("df.txt", lab.tool("df", "-h", "/home/user", "/mnt/scratch/user"))
    return Truth(
        "failed", "disk-full", "resource-exhaustion", FIX, (Hit("job.log", "No space left on device"),),
        ranks=(0,), must_mention=(("inode", "df -i", "space", "quota"),), must_not=CONSEQUENCES,
        why="The file system has 20 inodes; df -h shows it nearly empty, df -i would show the cause.",
    )  # fmt: skip


@fault("c168", "io-error", "the disk under the dataset cannot be read any more", "hardware", "cascade", host="cn-112")
def io_error(lab: Lab) -> Truth:
    image, _ = sandbox.disk("/mnt/nvme0", 300, "errors=continue")
    fit(
        lab,
        train=60,
        val=2,
        per_shard=1024,
        features=256,
        epochs=4,
        batch=64,
        workers=1,
        data="/mnt/nvme0/digits",
        log_every=20,
    )
    sandbox.sh("mv", "/mnt/data/digits", "/mnt/nvme0/digits")
    sandbox.remount("/mnt/nvme0", image, "errors=continue")
    run = lab.start_torchrun(2, "train.py config.yaml")
    lab.wait_for("job.log", "epoch 0 step 100/")
    os.truncate(image, 60 << 20)
    lab.finish(run)
    lab.keep("job.log")
    lab.keep_kernel()
    return Truth(
        "failed", "storage-error", "hardware-failure", ("restart-excluding", "escalate"), (Hit("dmesg.txt", "I/O error, dev", "first"), Hit("job.log", "Input/output error")),
        also_accept=("os-error", "dataset-loading-error"), nodes=("cn-112",), must_mention=(("I/O", "Input/output", "EIO"),), must_not=("disk-full", *CONSEQUENCES),
        why="The block device under /mnt/nvme0 no longer answers beyond 60 MB: the kernel logs I/O errors, reads give EIO.",
    )  # fmt: skip


@fault(
    "c169",
    "read-only",
    "the kernel remounts the checkpoint file system read-only after write errors",
    "hardware",
    "cascade",
    split="test",
    host="cn-112",
)
def read_only(lab: Lab) -> Truth:
    image, _ = sandbox.disk("/mnt/nvme0", 400)
    pretrain(lab, 2)
    run = lab.start_torchrun(
        2,
        "pretrain.py --train-iters 20000 --log-interval 10 --eval-interval 500 --save-interval 100 --save /mnt/nvme0/ckpt",
    )
    lab.wait_for("job.log", "successfully saved checkpoint from iteration +300 ")
    os.truncate(image, 1 << 20)
    sandbox.sh("bash", "-c", "sync -f /mnt/nvme0 || true")
    lab.finish(run)
    lab.keep("job.log")
    lab.keep_kernel()
    return Truth(
        "failed", "storage-error", "hardware-failure", ("restart-excluding", "escalate"),
        (Hit("job.log", "Read-only file system"), Hit("dmesg.txt", "Remounting filesystem read-only"), Hit("dmesg.txt", "error", "first")),
        also_accept=("os-error",), nodes=("cn-112",), ranks=(0,), must_mention=(("read-only", "I/O"),), must_not=("permission-error", "disk-full", *CONSEQUENCES),
        why="Writes to the device fail; ext4 stops its journal and remounts read-only; the next checkpoint fails.",
    )  # fmt: skip


@fault(
    "c170",
    "frozen-storage",
    "the checkpoint file system stops answering: rank 0 waits in the kernel, the others wait for it",
    "hang",
    "hardware",
    host="cn-112",
)
def frozen_storage(lab: Lab) -> Truth:
    sandbox.disk("/mnt/lustre", 400)
    pretrain(lab, 4)
    lab.start_torchrun(
        4,
        "pretrain.py --train-iters 20000 --log-interval 10 --eval-interval 500 --save-interval 100 --save /mnt/lustre/ckpt --distributed-timeout-minutes 30",
    )
    lab.wait_for("job.log", "successfully saved checkpoint from iteration +400 ")
    sandbox.sh("fsfreeze", "-f", "/mnt/lustre")
    try:
        end = time.monotonic() + 400
        while "blocked for more than" not in sandbox.kernel_log(lab.kernel_from) and time.monotonic() < end:
            time.sleep(5)
        time.sleep(3)
        lab.keep("job.log")
        lab.keep_kernel()
        lab.keep_text(
            "ps.txt", sandbox.sh("ps", "-u", str(sandbox.UID), "-o", "pid,ppid,stat,wchan:24,etime,time,args")
        )
    finally:
        sandbox.sh("fsfreeze", "-u", "/mnt/lustre")
    return Truth(
        "hung", "storage-error", "dependency-failure", ("escalate", "kill-and-restart", "restart-excluding"),
        (Hit("dmesg.txt", "blocked for more than", "first"), Hit("ps.txt", " D"), Hit("job.log", "saving checkpoint at iteration", "last")),
        also_outcome=("failed",), also_accept=("hang",), nodes=("cn-112",), ranks=(0,), must_mention=(("blocked", "uninterruptible", "storage", "file system", "filesystem"),), must_not=("network-error", "healthy", "nccl-timeout"),
        why="The file system was frozen: rank 0 sleeps uninterruptibly in a write to /mnt/lustre, the other ranks wait in the barrier after it.",
    )  # fmt: skip


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
    losses = list(re.finditer(r"{'loss': '([\d.]+)'[^}]*}", (WORK / "train.log").read_text()))
    first = next(m[0] for m in losses if float(m[1]) > 10)
    worst = max(losses, key=lambda m: float(m[1]))[0]
    return Truth(
        "failed", "loss-spike", "config-error", SKIP, (Hit("train.log", first), Hit("train.log", worst)),
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


@fault(
    "c175",
    "open-files",
    "the dataset keeps every shard open until the limit of open files",
    "cascade",
    split="test",
    host="node-b",
)
def open_files(lab: Lab) -> Truth:
    fit(
        lab, ("data.py", "        self.current = None, None\n", "        self.current = None, None\n        self.handles = {}\n"),
        ("data.py", "        with np.load(path) as file:\n            return file[\"x\"], file[\"y\"]\n", "        if path not in self.handles:\n            self.handles[path] = np.load(path)\n        file = self.handles[path]\n        return file[\"x\"], file[\"y\"]\n"),
        train=400, per_shard=8, workers=1, batch=4, epochs=3,
    )  # fmt: skip
    lab.start("ulimit -n 256; exec torchrun --standalone --nproc-per-node 2 train.py config.yaml", "job.log").wait()
    lab.keep("job.log")
    return Truth(
        "failed", "os-error", "software-bug", FIX, (Hit("job.log", "Too many open files"),),
        also_accept=("dataset-loading-error",), must_mention=(("open files",),), must_not=CONSEQUENCES,
        why="The dataset never closes a shard; with 400 shards the limit of 256 open files is reached.",
    )  # fmt: skip


@fault("c176", "build-step", "the job first builds a helper; the compiler refuses it", "misleading", host="node-c")
def build_step(lab: Lab) -> Truth:
    build = """import subprocess
from pathlib import Path

here = Path(__file__).parent


def build():
    print("> compiling dataset index builder ...", flush=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", str(here / "libindex.so"), str(here / "index.c")], check=True)
    print(">>> done with dataset index builder.", flush=True)
"""
    pretrain(
        lab,
        2,
        (
            "core/training.py",
            "def initialize(args):\n",
            "def initialize(args):\n    if args.rank == 0:\n        build()\n",
        ),
        ("core/training.py", "from core.data import", "from core.build import build\nfrom core.data import"),
    )
    lab.write("core/build.py", build)
    lab.write(
        "core/index.c",
        '#include <stdint.h>\n#include "index_builder.h"\n\nint64_t build_index(const int32_t *sizes, int64_t n) {\n    int64_t total = 0;\n    for (int64_t i = 0; i < n; i++) total += sizes[i];\n    return total;\n}\n',
    )
    lab.torchrun(2, "pretrain.py --train-iters 100")
    lab.keep("job.log")
    return Truth(
        "failed", "called-process-error", "software-bug", FIX, (Hit("job.log", "fatal error: index_builder.h: No such file or directory"), Hit("job.log", "subprocess.CalledProcessError")),
        also_accept=("file-not-found",), ranks=(0,), must_mention=(("index_builder.h", "gcc"),), must_not=CONSEQUENCES,
        why="The header index_builder.h is missing: gcc fails and rank 0 with it.",
    )  # fmt: skip
