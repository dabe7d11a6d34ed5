"""Other processes that work on an index: python -m, started by test_chroma.py.

processes.py write FOLDER PREFIX BATCHES SIZE    adds BATCHES times SIZE vectors, prints each id that is acknowledged
processes.py hold FOLDER                         takes the lock, says so, and keeps it
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from triage.retrieve.chroma import ChromaIndex
from triage.retrieve.index import Entry

DIMENSION = 16


def entry(name: str) -> Entry:
    """A vector that only its name decides."""
    vector = np.random.default_rng(list(name.encode())).standard_normal(DIMENSION).astype(np.float32)
    return Entry(name, vector / np.linalg.norm(vector), {"writer": name.partition("-")[0], "kind": "test"})


def write(folder: str, prefix: str, batches: str, size: str) -> None:
    index = ChromaIndex("test", DIMENSION, folder=Path(folder))
    for batch in range(int(batches)):
        entries = [entry(f"{prefix}-{batch}-{i}") for i in range(int(size))]
        index.add(entries)
        sys.stdout.write("".join(f"{e.id}\n" for e in entries))
        sys.stdout.flush()


def hold(folder: str) -> None:
    with ChromaIndex("test", DIMENSION, folder=Path(folder))._client():
        sys.stdout.write("held\n")
        sys.stdout.flush()
        time.sleep(60)


if __name__ == "__main__":
    {"write": write, "hold": hold}[sys.argv[1]](*sys.argv[2:])
