"""Where a job goes on from, and how its framework is told: options quoted for a shell, calls for Python. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from triage.recover.checkpoints.tree import Checkpoint


@dataclass(frozen=True, slots=True)
class Resume:
    """A checkpoint to go on from. how: what the framework is told; lost: steps."""

    path: str
    step: int | None
    how: str
    lost: int | None = None


def resuming(found: Checkpoint, path: str) -> str:
    """In words or options; path: of the checkpoint itself."""
    unit = found.unit
    folder = path.rpartition("/")[0] or "."
    titan = f" (torchtitan: --checkpoint.load_step {unit.step})" if path.endswith(f"step-{unit.step}") else ""
    return {
        "Megatron": f"--load {shlex.quote(folder)} --ckpt-step {unit.step}",
        "DeepSpeed": f"load_checkpoint({folder!r}, tag={path.rpartition('/')[2]!r})",
        "torch DCP": f"load it with torch.distributed.checkpoint from {path!r}{titan}",
        "Hugging Face": f"--resume_from_checkpoint {shlex.quote(path)}",
        "Lightning": f"trainer.fit(..., ckpt_path={path!r})",
        "Orbax": f"CheckpointManager({folder!r}).restore({unit.step})",
        "folder": f"load all that lies in {path!r} (Accelerate: accelerator.load_state({path!r}))",
        "file": f"load {path!r}",
    }[unit.layout]
