"""Disks and file systems: full, broken, frozen."""

from __future__ import annotations

import os
import time

import sandbox
from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, finetune, fit, pretrain


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
