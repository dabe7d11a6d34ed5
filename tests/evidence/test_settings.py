"""What a line says of how a job was set up, and what it does not."""

from __future__ import annotations

import pytest

from triage.evidence.settings import comparable, said


def told(line: str) -> list[tuple[str, str, str]]:
    return [(s.how, s.name, s.value) for s in said(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch version: 2.3.0", ("version", "version of torch", "2.3.0")),
        ("PyTorch 2.4.1+cu121", ("version", "version of torch", "2.4.1+cu121")),
        ("gpu1:12:34 [0] NCCL INFO NCCL version 2.20.5+cuda12.4", ("version", "version of nccl", "2.20.5+cuda12.4")),
        ("| NVIDIA-SMI 550.54   Driver Version: 550.54.15   CUDA Version: 12.4 |", ("version", "version of driver", "550.54.15")),
        ("Successfully pinned deepspeed==0.14.2", ("version", "version of deepspeed", "0.14.2")),
        ("gpu1:1:2 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.", ("environment", "nccl_ib_timeout", "22")),
        ("export TRITON_CACHE=/local/x", ("environment", "triton_cache", "/local/x")),
        ("declare -x NCCL_DEBUG=\"INFO\"", ("environment", "nccl_debug", "INFO")),
        ("OMP_NUM_THREADS=8", ("environment", "omp_num_threads", "8")),
        ("srun python train.py --micro-batch-size 4 --bf16", ("flag", "micro_batch_size", "4")),
        ("torchrun train.py --lr=1e-4 --bf16", ("flag", "bf16", "set")),
        ("[INFO] learning_rate: 0.0003", ("config", "learning_rate", "0.0003")),
        ("  seq_length ............................. 2048", ("config", "seq_length", "2048")),
        ('  "train_batch_size": 512,', ("config", "train_batch_size", "512")),
        ("Namespace(lr=0.1, hidden_size=1024, data='/d/a', fp16=True)", ("config", "hidden_size", "1024")),
        ("initialized, world_size=64", ("size", "world size", "64")),
        ("resuming from checkpoint at /ckpt/iter_100/rank0.pt", ("path", "checkpoint loaded", "/ckpt/iter_100/rank0.pt")),
    ],
)  # fmt: skip
def test_a_line_says(line: str, expected: tuple[str, str, str]) -> None:
    assert expected in told(line)


@pytest.mark.parametrize(
    "line",
    [
        "SLURM_JOB_ID=4711",
        "HOSTNAME=gpu-017",
        "export MASTER_ADDR=10.0.0.1",
        "{'loss': 2.31, 'grad_norm': 0.4, 'learning_rate': 1e-05, 'epoch': 0.1}",
        "loss: 2.31",
        "Try the option --no-cache if this fails",
        "RuntimeError: shapes",
        "step 100 took 1.5 s",
        "export API_TOKEN=[redacted:token]",
        "x = self.model(batch, mask)",
    ],
)
def test_who_where_when_measures_and_prose_are_no_settings(line: str) -> None:
    assert told(line) == []


@pytest.mark.parametrize(
    ("a", "b", "how"),
    [
        ("1e-4", "0.0001", "flag"),
        ("True", "true", "config"),
        ("/runs/2026-01-02_10-11-12/data", "/runs/2026-03-04_01-02-03/data", "config"),
        ("/scratch/job.4711234/data", "/scratch/job.9911234/data", "config"),
        ("http://10.0.0.1:29500", "http://10.0.0.2:29501", "config"),
        ("tcp://gpu-017/x", "tcp://gpu-018/x", "config"),
        ("/ckpt/iter_100", "/ckpt/iter_200", "path"),
    ],
)
def test_values_that_are_the_same_for_a_comparison(a: str, b: str, how: str) -> None:
    nodes = {"gpu-017", "gpu-018"}
    assert comparable(a, how, nodes) == comparable(b, how, nodes)


def test_values_that_differ() -> None:
    assert comparable("/data/v1", "config", ()) != comparable("/data/v2", "config", ())
    assert comparable("8", "config", ()) != comparable("16", "config", ())
