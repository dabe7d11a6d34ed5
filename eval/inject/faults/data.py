"""Datasets, checkpoints, disks and numbers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, Edit, finetune, fit, pretrain

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
    "multi-run",
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
    "c165", "state-dict-mismatch", "the model is wider than the checkpoint that it resumes", "multi-run", host="node-b"
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
