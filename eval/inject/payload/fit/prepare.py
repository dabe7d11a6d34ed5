"""Write the shards: prepare.py ROOT TRAIN_SHARDS VAL_SHARDS PER_SHARD FEATURES"""

import sys
from pathlib import Path

import numpy as np

root, train, val, per, features = Path(sys.argv[1]), *map(int, sys.argv[2:6])
rng = np.random.default_rng(3)
centres = rng.normal(size=(10, features))
for split, shards in (("train", train), ("val", val)):
    (root / split).mkdir(parents=True, exist_ok=True)
    for shard in range(shards):
        y = rng.integers(0, 10, size=per)
        x = (centres[y] + rng.normal(scale=1.5, size=(per, features))).astype(np.float32)
        np.savez_compressed(root / split / f"shard_{shard:05d}.npz", x=x, y=y)
