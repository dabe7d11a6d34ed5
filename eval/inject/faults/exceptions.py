"""Python exceptions, on one rank or on all, each by a mistake that people really make."""

from __future__ import annotations

import json

import numpy as np
import sandbox
from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, finetune, fit, pretrain


@fault("c101", "key-error", "the last rank alone logs and asks for a key that is not there", "cascade")
def key_error(lab: Lab) -> Truth:
    line = '    string += f" loss scale: 1.0 |'
    pretrain(
        lab,
        4,
        ("core/training.py", line, "    string += f\" lm loss PPL: {math.exp(loss_dict['lm_loss']):.3f} |\"\n" + line),
    )
    lab.torchrun(4, "pretrain.py --train-iters 300 --log-interval 50")
    lab.keep("job.log")
    return Truth(
        "failed", "key-error", "software-bug", FIX, (Hit("job.log", "KeyError: 'lm_loss'"),), ranks=(3,),
        must_mention=(("lm_loss",),), must_not=CONSEQUENCES,
        why="training_log on the last rank reads loss_dict['lm_loss']; the key is 'lm loss'. The other ranks lose their peer.",
    )  # fmt: skip


@fault("c102", "index-error", "one rank's shard holds a token beyond the vocabulary", "cascade", "misleading")
def index_error(lab: Lab) -> Truth:
    pretrain(lab, 4)
    shard = np.memmap("/mnt/data/corpus_train_01.bin", dtype=np.int32, mode="r+")
    shard[40_000:40_003] = 50_257
    shard.flush()
    lab.torchrun(4, "pretrain.py --train-iters 400 --log-interval 10 --save /home/user/run/checkpoints")
    lab.keep("job.log")
    return Truth(
        "failed", "index-error", "data-error", FIX, (Hit("job.log", "IndexError: "),), ranks=(1,),
        must_mention=(("out of range", "out of bounds"),), must_not=CONSEQUENCES,
        why="Three tokens of rank 1's shard are 50257 with a vocabulary of 512: the embedding lookup fails when that sample comes up.",
    )  # fmt: skip


@fault(
    "c103",
    "value-error",
    "padding and collation do not fit; the launcher adds a CalledProcessError of its own",
    "misleading",
    split="test",
    host="gpu04",
)
def value_error(lab: Lab) -> Truth:
    collator = "DataCollatorForLanguageModeling(tokenizer, mlm=False)"
    finetune(
        lab,
        ("finetune.py", f"data_collator={collator}", "data_collator=default_data_collator"),
        ("finetune.py", "    set_seed,\n", "    default_data_collator,\n    set_seed,\n"),
    )
    lab.start(
        "exec accelerate launch --cpu --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no finetune.py --max_steps 60",
        "train.log",
    ).wait()
    lab.keep("train.log")
    return Truth(
        "failed", "value-error", "software-bug", FIX, (Hit("train.log", "ValueError: expected sequence of length"),),
        must_mention=(("pad", "length", "collat"),), must_not=("called-process-error", *CONSEQUENCES),
        why="default_data_collator does not pad: samples of unequal length cannot be made one tensor.",
    )  # fmt: skip


@fault("c104", "type-error", "the script was written for an older release of the library", host="gpu04")
def type_error(lab: Lab) -> Truth:
    finetune(lab, ("finetune.py", 'eval_strategy="steps"', 'evaluation_strategy="steps"'))
    lab.torchrun(4, "finetune.py", "sft.log")
    lab.keep("sft.log")
    return Truth(
        "failed", "type-error", "software-bug", FIX, (Hit("sft.log", "TypeError: TrainingArguments.__init__() got an unexpected keyword"),),
        also_accept=("version-mismatch", "argument-error"), ranks=(0, 1, 2, 3), must_mention=(("evaluation_strategy",),), must_not=CONSEQUENCES,
        why="transformers 5 no longer has evaluation_strategy; all ranks fail before training.",
    )  # fmt: skip


@fault("c105", "attribute-error", "evaluation reaches through the DDP wrapper", host="cn-112")
def attribute_error(lab: Lab) -> Truth:
    pretrain(
        lab,
        8,
        (
            "core/training.py",
            "    results = evaluate(valid",
            '    print_rank_0(f" evaluating {model.num_parameters()} parameters on {args.eval_iters} batches")\n    results = evaluate(valid',
        ),
    )
    lab.torchrun(8, "pretrain.py --train-iters 400 --log-interval 5 --eval-interval 200", "slurm-7719204.out")
    lab.keep("slurm-7719204.out")
    return Truth(
        "failed", "attribute-error", "software-bug", FIX,
        (Hit("slurm-7719204.out", "AttributeError: 'DistributedDataParallel' object has no attribute 'num_parameters'"),),
        ranks=tuple(range(8)), must_mention=(("num_parameters",),), must_not=CONSEQUENCES,
        why="At iteration 200 the evaluation asks the wrapper for a method of the wrapped model (model.module).",
    )  # fmt: skip


@fault("c106", "zero-division", "the last rank's part of the validation set is empty", "cascade", host="node-b")
def zero_division(lab: Lab) -> Truth:
    fit(
        lab,
        ("data.py", "        sampler = DistributedSampler(dataset, world, rank", '        if split == "val":\n            dataset = torch.utils.data.Subset(dataset, range(rank * 100, min(len(dataset), rank * 100 + 100)))\n        sampler = None if split == "val" else DistributedSampler(dataset, world, rank'),
        val=1, per_shard=300, batch=32,
    )  # fmt: skip
    lab.finish(*lab.start_ranks(4, "train.py config.yaml", "logs/rank{rank}.err"))
    lab.keep("logs", "logs")
    return Truth(
        "failed", "zero-division-error", "data-error", FIX, (Hit("logs/rank3.err", "ZeroDivisionError"),), ranks=(3,),
        must_mention=(("division", "zero"),), must_not=CONSEQUENCES,
        why="The validation set has 300 samples, 100 a rank: rank 3 gets none and divides by their number at the end of the first epoch.",
    )  # fmt: skip


@fault("c107", "assertion-error", "batch sizes that do not divide; every rank refuses", split="test", host="cn-112")
def assertion_error(lab: Lab) -> Truth:
    pretrain(lab, 6)
    lab.torchrun(6, "pretrain.py --micro-batch-size 4 --global-batch-size 64")
    lab.keep("job.log")
    return Truth(
        "failed", "assertion-error", "config-error", FIX, (Hit("job.log", "AssertionError: global batch size (64) is not divisible"),),
        also_accept=("argument-error",), ranks=tuple(range(6)), must_mention=(("global batch size", "global-batch-size"),), must_not=CONSEQUENCES,
        why="64 is no multiple of micro batch 4 times 6 ranks.",
    )  # fmt: skip


@fault(
    "c108",
    "name-error",
    "rank 0 alone removes old checkpoints, with a module that was never imported",
    "cascade",
    "large",
)
def name_error(lab: Lab) -> Truth:
    rotate = "        torch.save(state, name)\n        old = checkpoint_name(args.save, iteration - 2 * args.save_interval).parent.parent\n        if old.exists():\n            shutil.rmtree(old)\n"
    pretrain(lab, 2, ("core/checkpointing.py", "        torch.save(state, name)\n", rotate), tokens=200_000)
    lab.torchrun(
        2,
        "pretrain.py --train-iters 2400 --log-interval 1 --eval-interval 1000 --save /home/user/run/checkpoints --save-interval 500",
    )
    lab.keep("job.log")
    return Truth(
        "failed", "name-error", "software-bug", FIX, (Hit("job.log", "NameError: name 'shutil' is not defined"),), ranks=(0,),
        must_mention=(("shutil",),), must_not=CONSEQUENCES,
        why="The third checkpoint is the first that has an old one to remove; shutil is not imported in checkpointing.py.",
    )  # fmt: skip


@fault("c109", "file-not-found", "the validation file has another name", host="gpu04")
def file_not_found(lab: Lab) -> Truth:
    finetune(lab)
    lab.torchrun(4, "finetune.py --validation_file /mnt/data/sft/validation.jsonl", "train.log")
    lab.keep("train.log")
    return Truth(
        "failed", "file-not-found", "config-error", FIX, (Hit("train.log", "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/data/sft/validation.jsonl'"),),
        ranks=(0, 1, 2, 3), must_mention=(("validation.jsonl",),), must_not=CONSEQUENCES,
        why="The file is valid.jsonl; all ranks fail to open it.",
    )  # fmt: skip


@fault(
    "c110",
    "permission-error",
    "the output folder belongs to another user: rank 0 fails at its first checkpoint",
    "cascade",
    split="test",
    host="gpu04",
)
def permission_error(lab: Lab) -> Truth:
    finetune(lab)
    sandbox.sh("mkdir", "-p", "/mnt/scratch/output")
    sandbox.sh("chown", "root:root", "/mnt/scratch/output")
    lab.torchrun(2, "finetune.py --output_dir /mnt/scratch/output", "sft.log")
    lab.keep("sft.log")
    return Truth(
        "failed", "permission-error", "config-error", FIX, (Hit("sft.log", "PermissionError: [Errno 13] Permission denied: '/mnt/scratch/output"),),
        ranks=(0,), must_mention=(("/mnt/scratch/output",),), must_not=CONSEQUENCES,
        why="/mnt/scratch/output is not writable for the user; seen only when the first checkpoint is written at step 50.",
    )  # fmt: skip


@fault("c111", "import-error", "a name that the installed library no longer has", host="gpu04")
def import_error(lab: Lab) -> Truth:
    finetune(lab, ("finetune.py", "from transformers import (\n", "from transformers import (\n    AdamW,\n"))
    lab.torchrun(2, "finetune.py", "sft.log")
    lab.keep("sft.log")
    return Truth(
        "failed", "import-error", "dependency-failure", FIX, (Hit("sft.log", "ImportError: cannot import name 'AdamW' from 'transformers'"),),
        also_accept=("version-mismatch",), ranks=(0, 1), must_mention=(("AdamW",),), must_not=CONSEQUENCES,
        why="transformers.AdamW was removed; the script wants an older release.",
    )  # fmt: skip


@fault(
    "c112",
    "custom-error",
    "a filter leaves no sample of one source: the project's own exception",
    "cascade",
    host="node-b",
)
def custom_error(lab: Lab) -> Truth:
    raised = '        if not len(self):\n            raise EmptySourceError(f"source {self.path.name} keeps 0 of {tokens} tokens after filtering (min_tokens={seq_length + 1})")\n        self.shuffle_idx ='
    pretrain(
        lab, 4,
        ("core/data.py", "class TokenShard(", 'class EmptySourceError(Exception):\n    """A source of the mixture has no usable text."""\n\n\nclass TokenShard('),
        ("core/data.py", "        self.shuffle_idx =", raised.replace("{tokens}", "{self.index['tokens']}")),
    )  # fmt: skip
    for suffix, text in ((".idx", json.dumps({"version": 1, "dtype": "int32", "tokens": 48})),):
        lab.tool("bash", "-c", f"echo '{text}' > /mnt/data/corpus_valid_02{suffix}")
    lab.torchrun(4, "pretrain.py --train-iters 100")
    lab.keep("job.log")
    return Truth(
        "failed", "dataset-loading-error", "data-error", FIX, (Hit("job.log", "core.data.EmptySourceError: source corpus_valid_02 keeps 0 of 48 tokens"),),
        also_accept=("runtime-error", "value-error"), ranks=(2,), must_mention=(("corpus_valid_02", "EmptySourceError"),), must_not=CONSEQUENCES,
        why="The validation shard of rank 2 is shorter than one sample.",
    )  # fmt: skip
