"""Hugging Face, Lightning, torchtitan, JAX, TensorFlow, Ray: what they print when all is well."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from synth.kit import Case, Curve

WARNINGS = (
    "FutureWarning: You are using `torch.load` with `weights_only=False` (the current default value), which uses the default pickle module implicitly.",
    "UserWarning: `resume_download` is deprecated and will be removed in version 1.0.0. Downloads always resume when possible.",
    "UserWarning: TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class.",
    "FutureWarning: `evaluation_strategy` is deprecated and will be removed in version 4.46 of Transformers. Use `eval_strategy` instead",
    "DeprecationWarning: pkg_resources is deprecated as an API. See https://setuptools.pypa.io/en/latest/pkg_resources.html",
    "UserWarning: This DataLoader will create 12 worker processes in total. Our suggested max number of worker in current system is 8, which is smaller "
    "than what this DataLoader is going to create.",
    "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in the opposite order.",
    "UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
)


def warning(c: Case, which: int, where: str) -> list[str]:
    return [f"{c.site}/{where}:{c.n(30, 900)}: {WARNINGS[which]}", "  warnings.warn("]


def hf_head(examples: int, epochs: int, per_gpu: int, world: int, gas: int, params: int) -> list[str]:
    steps = examples * epochs // (per_gpu * world * gas)
    return [
        "***** Running training *****",
        f"  Num examples = {examples:,}",
        f"  Num Epochs = {epochs:,}",
        f"  Instantaneous batch size per device = {per_gpu:,}",
        f"  Total train batch size (w. parallel, distributed & accumulation) = {per_gpu * world * gas:,}",
        f"  Gradient Accumulation steps = {gas}",
        f"  Total optimization steps = {steps:,}",
        f"  Number of trainable parameters = {params:,}",
    ]


def bar(step: int, total: int, sec: float, desc: str = "", width: int = 10) -> str:
    """One state of a progress bar."""
    full = int(step / total * width * 8)
    blocks = "█" * (full // 8) + ("" if full % 8 == 0 else " ▏▎▍▌▋▊▉"[full % 8])

    def span(s):
        return (
            f"{int(s) // 3600}:{int(s) % 3600 // 60:02d}:{int(s) % 60:02d}"
            if s >= 3600
            else f"{int(s) // 60:02d}:{int(s) % 60:02d}"
        )

    speed = f"{sec:5.2f}s/it" if sec >= 1 else f"{1 / sec:5.2f}it/s"
    return f"{desc}{step * 100 // total:3d}%|{blocks:<{width}}| {step}/{total} [{span(step * sec)}<{span((total - step) * sec)}, {speed}]"


def hf_steps(
    c: Case,
    first: int,
    last: int,
    *,
    total: int,
    per_epoch: int,
    sec: float,
    loss: Curve,
    lr: float = 2e-5,
    every: int = 10,
    bars: bool = True,
) -> list[str]:
    out = []
    for i in range(first, last + 1, every):
        c.tick(c.jitter(sec, 0.03) * every)
        if bars:
            out.append("\r".join(bar(j, total, sec) for j in range(max(1, i - min(every, 4)), i + 1)))
        rate = lr * min(1.0, i / (0.03 * total)) * max(0.0, 1 - i / total)
        out.append(
            f"{{'loss': {loss(i):.4f}, 'grad_norm': {c.jitter(0.9, 0.2):.16f}, 'learning_rate': {rate:.4e}, 'epoch': {i / per_epoch:.2f}}}"
        )
    return out


def config_json(kind: str, values: Mapping[str, Any]) -> list[str]:
    return [f"Model config {kind} {json.dumps(values, indent=2, sort_keys=True)}", ""]


def pl_head(c: Case, world: int, per: int, rows: Sequence[tuple[str, str, str]], total: str) -> list[str]:
    """Lightning: devices, members, model summary."""
    out = [
        "GPU available: True (cuda), used: True",
        "TPU available: False, using: 0 TPU cores",
        "IPU available: False, using: 0 IPUs",
        "HPU available: False, using: 0 HPUs",
    ]
    order = list(range(world))
    c.rng.shuffle(order)
    out += [f"Initializing distributed: GLOBAL_RANK: {r}, MEMBER: {r + 1}/{world}" for r in order]
    out += [
        "-" * 100,
        "distributed_backend=nccl",
        f"All distributed processes registered. Starting with {world} processes",
        "-" * 100,
        "",
    ]
    gpus = ",".join(str(i) for i in range(per))
    out += [f"LOCAL_RANK: {r % per} - CUDA_VISIBLE_DEVICES: [{gpus}]" for r in order]
    a, b = max(len(r[0]) for r in rows) + 1, max(len(r[1]) for r in rows) + 1
    line = "-" * (a + b + 16)
    out += [f"  | {'Name':<{a}}| {'Type':<{b}}| Params", line]
    out += [f"{i} | {n:<{a}}| {k:<{b}}| {p:>6}" for i, (n, k, p) in enumerate(rows)]
    return [*out, line, f"{total:<10}Trainable params", "0         Non-trainable params", f"{total:<10}Total params"]


def pl_steps(
    c: Case,
    epoch: int,
    total: int,
    *,
    sec: float,
    loss: Curve,
    every: int = 50,
    last: int = 0,
    name: str = "train_loss",
) -> list[str]:
    out = []
    for i in range(every, (last or total) + 1, every):
        c.tick(sec * every)
        out.append(f"{bar(i, total, sec, f'Epoch {epoch}: ')[:-1]}, v_num=0, {name}={loss(epoch * total + i):.3f}]")
    return out


def titan_steps(
    c: Case,
    first: int,
    last: int,
    *,
    sec: float,
    loss: Curve,
    mem: tuple[float, float] = (61.3, 77.5),
    tps: int = 2300,
    mfu: float = 41.0,
    every: int = 10,
    rank: int = 0,
) -> list[str]:
    out = []
    for i in range(first, last + 1, every):
        c.tick(sec * every)
        head = f"[rank{rank}]:[titan] {c.t('%Y-%m-%d %H:%M:%S,%f3')} - root - INFO - "
        out.append(
            f"{head}step: {i:2d}  loss: {loss(i):7.4f}  memory: {mem[0]:.2f}GiB({mem[1]:.2f}%)  tps: {int(c.jitter(tps, 0.01)):,}  "
            f"tflops: {c.jitter(mfu * 9.89, 0.005):.2f}  mfu: {c.jitter(mfu, 0.005):.2f}%"
        )
    return out


def titan_head(c: Case, toml: str, dims: str, params: str) -> list[str]:
    i = lambda text: f"[rank0]:[titan] {c.t('%Y-%m-%d %H:%M:%S,%f3')} - root - INFO - {text}"  # noqa: E731
    return [
        i(f"Starting job: {toml}"),
        i("NVIDIA H100 80GB HBM3: peak FLOPS used for computing MFU: 9.890e+14"),
        i(f"Building {dims}"),
        i("Loading tokenizer from tokenizer.model"),
        i("CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory"),
        i(f"Model llama3 size: {params} total parameters"),
        i("Applied selective activation checkpointing to the model"),
        i("Applied FSDP to the model"),
        i("Peak FLOPS used for computing MFU: 9.890e+14"),
        i(
            "Training starts at step 1, with local batch size 1, global batch size 64, sequence length 8192, total steps 20000 (warmup 200)"
        ),
        i("Profiling active. Traces will be saved at ./outputs/profile_trace"),
    ]


def maxtext_steps(
    c: Case, first: int, last: int, *, sec: float, loss: Curve, tflops: float, tokens: float, weights: int
) -> list[str]:
    out = []
    for i in range(first, last + 1):
        s = c.jitter(sec, 0.006)
        c.tick(s)
        out.append(
            f"completed step: {i}, seconds: {s:.3f}, TFLOP/s/device: {c.jitter(tflops, 0.006):.3f}, Tokens/s/device: {c.jitter(tokens, 0.006):.3f}, "
            f"total_weights: {weights}, loss: {loss(i):.3f}"
        )
    return out


def tf_head(c: Case) -> list[str]:
    s = lambda: c.t("%Y-%m-%d %H:%M:%S.%f")  # noqa: E731
    return [
        f"{s()}: I tensorflow/core/util/port.cc:110] oneDNN custom operations are on. You may see slightly different numerical results due to floating-point "
        "round-off errors from different computation orders. To turn them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`.",
        f"{s()}: I tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is optimized to use available CPU instructions in "
        "performance-critical operations.",
        "To enable the following instructions: AVX2 AVX512F AVX512_VNNI FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.",
        f"{s()}: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
    ]


def ray_head(c: Case, address: str, actors: Sequence[tuple[int, str, int]]) -> list[str]:
    """actors: (pid, ip, world rank)."""
    now = c.t("%Y-%m-%d %H:%M:%S,%f3")
    master = actors[0]
    out = [
        f"{now}\tINFO worker.py:1567 -- Connecting to existing Ray cluster at address: {address}:6379...",
        f"{now}\tINFO worker.py:1743 -- Connected to Ray cluster. View the dashboard at \x1b[1m\x1b[32mhttp://127.0.0.1:8265 \x1b[39m\x1b[22m",
        f"(RayTrainWorker pid={master[0]}, ip={master[1]}) Setting up process group for: env:// [rank=0, world_size={len(actors)}]",
    ]
    lead = f"(TorchTrainer pid={c.n(2000, 9000)})"
    out.append(f"{lead} Started distributed worker processes: ")
    out += [
        f"{lead} - (node_id={c.hex(56)}, ip={ip}, pid={pid}) world_rank={r}, local_rank={r % 4}, node_rank={r // 4}"
        for pid, ip, r in actors
    ]
    return out
