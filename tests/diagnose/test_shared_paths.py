"""A full disk makes a node suspect only where it is the node's own."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

HEAD = "".join(
    f"{r}: n{r // 2}:40{r:02d}:45{r:02d} [0] NCCL INFO comm 0x1 rank {r} nranks 6 cudaDev 0 - Init COMPLETE\n"
    for r in range(6)
)


@pytest.mark.parametrize(
    ("error", "nodes"),
    [
        ("OSError: [Errno 122] Disk quota exceeded: '/home/u/cache/x'", ()),
        ("OSError: [Errno 28] No space left on device: '/scratch/u/ckpt/x'", ()),
        ("OSError: [Errno 28] No space left on device: '/tmp/cache/x'", ("n1",)),
    ],
)
def test_a_quota_or_a_shared_file_system_accuses_no_node(
    diagnosed: Diagnose, error: str, nodes: tuple[str, ...]
) -> None:
    steps = "".join(f"0: step {i} loss 2.{i}\n" for i in range(1, 9))
    trace = '2: [rank2]: Traceback (most recent call last):\n2: [rank2]:   File "/w/t.py", line 3, in save\n2: [rank2]:     f.write(x)\n'
    d = diagnosed({"out.txt": HEAD + steps + trace + f"2: [rank2]: {error}\n"})
    assert (d.failure_type, d.suspects.nodes) == ("disk-full", nodes)
