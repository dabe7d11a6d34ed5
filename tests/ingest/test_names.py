from __future__ import annotations

import pytest

from triage.ingest.names import place

RANKS = {
    "rank_12.log": 12,
    "logs/rank12.log.gz": 12,
    "rank-0": 0,
    "train_rank3.err": 3,
    "rank_3_of_8.log": 3,
    "worker-3.log": 3,
    "myjob-worker-3": 3,
    "nemo_log_globalrank-12_localrank-4.txt": 12,
    "0.stderr": 0,
    "out/17.log": 17,
    "job.3.out": 3,
    "slurm-312155.17.err": 17,
    "out/1/rank.12/stderr": 12,
    "_dump_5": 5,
    "stacks/rank_7.txt": 7,
    "gpu012_rank_9.log": 9,
}
NO_RANK = [
    "slurm-123_4.out",
    "slurm-312155.out",
    "job-20240101.log",
    "train.log",
    "messages.1",
    "job.log.3",
    "gpu.query.0.txt",
    "node_rank_1.log",
    "worker-3f2a9bc1-01000000-12345.out",
    "lora_rank16_alpha32.log",
    "attempt_0/3/stderr.log",
    "2024-09-22.log",
    "12345678.out",
]
NODES = {
    "gpu-0012.log": "gpu-0012",
    "dgx-10": "dgx-10",
    "dmesg-jean-zay-iam37.txt": "jean-zay-iam37",
    "nid001234.err": "nid001234",
    "slurmd-gpu012.log": "gpu012",
    "slurm-node3.log": "node3",
    "kern_r6i5n1.log": "r6i5n1",
    "frontier02944.out": "frontier02944",
    "cdr2653.log": "cdr2653",
    "gh129.hpc.nyu.edu.log": "gh129.hpc.nyu.edu",
    "ip-10-0-0-17.log": "ip-10-0-0-17",
    "logs/node7/stderr.log": "node7",
    "node7/attempt_0/3/stderr.log": "node7",
    "dmesg.node-12.xz": "node-12",
    "gpu012_rank_9.log": "gpu012",
}
NO_NODE = [
    "resnet50.log", "resnet152.log", "gpt2.out", "run2024.log", "exp0001.log", "slurm-312155.out", "train.log", "job_1234.err",
    "rank_12.log", "job.out", "-", "llama-2-7b.log", "20240101.log", "gpu.query.0.txt", "v0123.txt", "epoch0001.log",
]  # fmt: skip


@pytest.mark.parametrize(("name", "rank"), RANKS.items())
def test_rank(name: str, rank: int) -> None:
    assert place(name).rank == rank


@pytest.mark.parametrize("name", NO_RANK)
def test_no_rank(name: str) -> None:
    assert place(name).rank is None


@pytest.mark.parametrize(("name", "node"), NODES.items())
def test_node(name: str, node: str) -> None:
    assert place(name).node == node


@pytest.mark.parametrize("name", NO_NODE)
def test_no_node(name: str) -> None:
    assert place(name).node is None


def test_local_ranks() -> None:
    assert place("attempt_0/3/stderr.log").local_rank == 3
    assert place("run_x/attempt_1/0/stdout.log").local_rank == 0
    assert place("nemo_log_globalrank-12_localrank-4.txt").local_rank == 4
    assert place("rank_3.log").local_rank is None
