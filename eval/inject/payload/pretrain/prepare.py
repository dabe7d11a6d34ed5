"""Write the token shards: prepare.py PREFIX SHARDS TOKENS VOCAB."""

import json
import sys
from pathlib import Path

import numpy as np

prefix, shards, tokens, vocab = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(7)
follow = rng.integers(0, vocab, size=(vocab, 4))
for split, count in (("train", tokens), ("valid", tokens // 10)):
    for shard in range(shards):
        text = np.zeros(count, dtype=np.int32)
        choice = rng.integers(0, 4, size=count)
        for i in range(1, count):
            text[i] = follow[text[i - 1], choice[i]]
        path = Path(f"{prefix}_{split}_{shard:02d}")
        path.parent.mkdir(parents=True, exist_ok=True)
        text.tofile(path.with_suffix(".bin"))
        path.with_suffix(".idx").write_text(json.dumps({"version": 1, "dtype": "int32", "tokens": count}))
