import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from core.utils import print_rank_0


class TokenShard(torch.utils.data.Dataset):
    """Samples of seq_length + 1 tokens out of one shard, in a shuffled order."""

    def __init__(self, prefix, split, shard, seq_length, seed):
        self.path = Path(f"{prefix}_{split}_{shard:02d}")
        with self.path.with_suffix(".idx").open() as f:
            self.index = json.load(f)
        self.tokens = np.memmap(self.path.with_suffix(".bin"), dtype=np.int32, mode="r")
        self.seq_length = seq_length
        self.num_samples = (self.index["tokens"] - 1) // seq_length
        self.shuffle_idx = np.random.default_rng(seed).permutation(self.num_samples)

    def __len__(self):
        return self.num_samples

    def __getitem__(self, i):
        start = int(self.shuffle_idx[i]) * self.seq_length
        text = torch.from_numpy(self.tokens[start : start + self.seq_length + 1].astype(np.int64))
        return {
            "tokens": text[:-1].contiguous(),
            "labels": text[1:].contiguous(),
            "loss_mask": torch.ones(len(text) - 1),
        }


def build_datasets(args):
    start = time.time()
    print_rank_0("> building train, validation, and test datasets for GPT ...")
    print_rank_0(
        f" > datasets target sizes (minimum size):\n    train:      {args.train_iters * args.global_batch_size}"
    )
    print_rank_0(
        f"    validation: {args.eval_iters * args.global_batch_size * (args.train_iters // args.eval_interval + 1)}"
    )
    shard = dist.get_rank()
    train = TokenShard(args.data_path, "train", shard, args.seq_length, args.seed)
    print_rank_0(f" > loading shuffle index for {train.path}.bin")
    print_rank_0(f"    total number of samples: {len(train)}")
    valid = TokenShard(args.data_path, "valid", shard, args.seq_length, args.seed)
    print_rank_0(f"> finished creating GPT datasets in {time.time() - start:.2f} seconds ...")
    return train, valid


def build_iterator(dataset, args, skip=0):
    """Endless batches; the first `skip` batches are passed over after a restart."""
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=args.micro_batch_size, num_workers=args.num_workers, drop_last=True
    )
    seen = 0
    while True:
        for batch in loader:
            seen += 1
            if seen > skip:
                yield batch
