"""Runs that meet trouble, get over it by themselves and end well."""

from __future__ import annotations

import sandbox
from lab import Lab, Truth, fault

from faults.common import fit, healthy, pretrain

_NEIGHBOURS = '''def stacked(dataset):
    samples = [dataset[i] for i in range(len(dataset))]
    return torch.stack([x for x, _ in samples]), torch.tensor([y for _, y in samples])


def neighbour_accuracy(known, queries):
    """How often the nearest training sample has the right class."""
    bank, labels = stacked(known)
    x, y = stacked(queries)
    size = len(x)
    while True:
        try:
            nearest = [((part[:, None] - bank[None]) ** 2).sum(-1).argmin(1) for part in x.split(size)]
            return (labels[torch.cat(nearest)] == y).float().mean().item()
        except RuntimeError:
            log.exception("evaluation of %d samples at once failed, trying again with %d", size, size // 4)
            size //= 4


def save('''


@fault(
    "c235",
    "evaluation-shrinks",
    "evaluation asks for more memory than the limit allows, is repeated in smaller pieces and completes",
    "healthy",
    "misleading",
    host="node-d",
)
def evaluation_shrinks(lab: Lab) -> Truth:
    fit(
        lab,
        ("train.py", "def save(", _NEIGHBOURS),
        (
            "train.py",
            "    tracker.finish()\n",
            '    accuracy = neighbour_accuracy(train_loader.dataset, val_loader.dataset)\n    log.info("nearest neighbour accuracy %.4f", accuracy)\n    tracker.finish()\n',
        ),
        per_shard=512,
        val=6,
        epochs=3,
        workers=0,
        log_every=20,
    )
    lab.succeed(
        lab.start(
            "ulimit -v 6000000; exec torchrun --standalone --nproc-per-node 2 train.py config.yaml", "job.log"
        ).wait()
    )
    lab.keep("job.log")
    return healthy(
        "The first tries of the last evaluation could not allocate memory; with smaller pieces it completed."
    )


@fault(
    "c236",
    "checkpoint-retried",
    "the checkpoint file system is full; the oldest checkpoint is removed and the write repeated, each time with success",
    "healthy",
    "misleading",
    split="test",
    host="cn-112",
)
def checkpoint_retried(lab: Lab) -> Truth:
    sandbox.disk("/mnt/scratch/user", 9)
    retry = """        try:
            torch.save(state, name)
        except (OSError, RuntimeError):
            traceback.print_exc()
            oldest = sorted(Path(args.save).glob("iter_*"))[0]
            print_rank_0(f"WARNING: {name} could not be written, removing {oldest} and writing it again")
            shutil.rmtree(oldest)
            torch.save(state, name)
"""
    pretrain(
        lab,
        2,
        ("core/checkpointing.py", "        torch.save(state, name)\n", retry),
        ("core/checkpointing.py", "import os\n", "import os\nimport shutil\nimport traceback\n"),
    )
    lab.succeed(
        lab.torchrun(
            2,
            "pretrain.py --train-iters 800 --log-interval 10 --eval-interval 400 --save /mnt/scratch/user/ckpt --save-interval 100",
        )
    )
    lab.keep("job.log")
    return healthy(
        "From some checkpoint on there was no space for one more; each was written after the oldest was removed.",
        "disk-full",
        "checkpoint-corrupt",
    )
