import logging
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

log = logging.getLogger("data")


class Shards(Dataset):
    """Samples of many .npz shards; one shard is kept open."""

    def __init__(self, root, split, per_shard):
        self.paths = sorted(Path(root, split).glob("shard_*.npz"))
        self.per_shard = per_shard
        self.current = None, None

    def __len__(self):
        return len(self.paths) * self.per_shard

    def load(self, path):
        with np.load(path) as file:
            return file["x"], file["y"]

    def __getitem__(self, index):
        path = self.paths[index // self.per_shard]
        if self.current[0] != path:
            self.current = path, self.load(path)
        x, y = self.current[1]
        i = index % self.per_shard
        return torch.from_numpy(x[i]), int(y[i])


def build_loaders(cfg, rank, world):
    loaders = []
    for split in ("train", "val"):
        dataset = Shards(cfg["data"], split, cfg["per_shard"])
        log.info("%s: %d shards under %s", split, len(dataset.paths), cfg["data"])
        sampler = DistributedSampler(dataset, world, rank, shuffle=split == "train", drop_last=False)
        loaders.append(DataLoader(dataset, cfg["batch"], sampler=sampler, num_workers=cfg["workers"]))
    return loaders
