"""Runs that were started again, or killed when all was done."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
from lab import WORK, Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, finetune, fit, healthy, pretrain


@fault(
    "c225",
    "killed-after-success",
    "the run is complete; then its idle launcher is killed",
    "misleading",
    split="test",
    host="gpu04",
)
def killed_after_success(lab: Lab) -> Truth:
    finetune(
        lab,
        (
            "finetune.py",
            '    trainer.log_metrics("eval", metrics)\n',
            '    trainer.log_metrics("eval", metrics)\n    logger.info("Training completed, model saved to %s. Waiting for the uploader ...", opts.output_dir)\n    time.sleep(600)\n',
        ),
        ("finetune.py", "import sys\n", "import sys\nimport time\n"),
    )
    run = lab.start_torchrun(2, "finetune.py --max_steps 400", "train.log")
    lab.wait_for("train.log", "Waiting for the uploader")
    time.sleep(4)
    os.kill(run.pid, signal.SIGTERM)
    lab.finish(run)
    lab.keep("train.log")
    return Truth(
        "interrupted", "cancelled", "operator-action", ("none",), (Hit("train.log", "Received 15 death signal"), Hit("train.log", "Training completed, model saved")),
        also_outcome=("healthy",), also_accept=("healthy",), must_mention=(("SIGTERM", "signal 15", "complete"),), must_not=("native-crash", "hang", *CONSEQUENCES),
        why="Training, evaluation and the last save are done; the SIGTERM came while the script only waited for an uploader.",
    )  # fmt: skip


@fault(
    "c226",
    "elastic-restart",
    "a rank dies, torchrun restarts the group, which resumes and completes",
    "healthy",
    "multi-run",
    "misleading",
    host="cn-112",
)
def elastic_restart(lab: Lab) -> Truth:
    pretrain(lab, 4)
    run = lab.start_torchrun(
        4,
        "pretrain.py --train-iters 900 --log-interval 10 --eval-interval 300 --save /mnt/scratch/ckpt --load /mnt/scratch/ckpt --save-interval 100",
        options="--standalone --max-restarts 3",
        # As met with torch 2.13.0: gloo reads the addresses of the dead workers from a store that is used again.
        env={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
    )
    lab.wait_for("job.log", r"successfully saved checkpoint from iteration +300 ")
    lab.signal_rank(1, signal.SIGKILL)
    lab.succeed(lab.finish(run))
    lab.keep("job.log")
    return healthy("Rank 1 was killed at about iteration 300; the group restarted from the checkpoint and reached 900.")


@fault(
    "c227",
    "restarts-used-up",
    "the same exception after each restart until none is left",
    "multi-run",
    "cascade",
    split="test",
    host="cn-112",
)
def restarts_used_up(lab: Lab) -> Truth:
    pretrain(lab, 2)
    shard = np.memmap("/mnt/data/corpus_train_00.bin", dtype=np.int32, mode="r+")
    shard[20_010] = -7
    shard.flush()
    lab.torchrun(
        2,
        "pretrain.py --train-iters 900 --log-interval 10 --save /mnt/scratch/ckpt --load /mnt/scratch/ckpt --save-interval 50",
        options="--standalone --max-restarts 2",
    )
    if "IndexError" not in (WORK / "job.log").read_text().rpartition("start of training step")[2]:
        raise RuntimeError("the last attempt did not end by the bad token")
    lab.keep("job.log")
    return Truth(
        "failed", "index-error", "data-error", FIX, (Hit("job.log", "IndexError: "),), ranks=(0,), must_mention=(("out of range", "out of bounds"),), must_not=CONSEQUENCES,
        why="A negative token in rank 0's shard: the same failure at the same sample in every attempt that reaches it, the last one among them.",
    )  # fmt: skip


@fault(
    "c228",
    "shell-retry",
    "the job's own loop starts the program again after a crash, and the second attempt completes",
    "healthy",
    "multi-run",
    "misleading",
    split="test",
    host="node-b",
)
def shell_retry(lab: Lab) -> Truth:
    fit(lab, epochs=5, resume=True, train=20)
    loop = """for attempt in 1 2 3; do
  echo "=== attempt $attempt $(date -u +%FT%TZ)"
  torchrun --standalone --nproc-per-node 2 train.py config.yaml && break
  echo "=== attempt $attempt ended with $?, waiting 5 s before the next"
  sleep 5
done
echo "=== done"
"""
    lab.write("launch.sh", loop, 0o755)
    run = lab.start("exec bash launch.sh", "job.log")
    lab.wait_for("job.log", "epoch 1 done")
    lab.wait_for("job.log", "epoch 2 step 10/")
    lab.signal_rank(1, signal.SIGSEGV)
    lab.succeed(lab.finish(run))
    lab.keep("job.log")
    return healthy("Attempt 1 died of SIGSEGV in epoch 2; attempt 2 resumed and finished all epochs.")
