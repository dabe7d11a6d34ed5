"""How a framework is told to go on from a given checkpoint. Pure."""

from __future__ import annotations

from triage.recover.checkpoints.tree import Checkpoint


def resuming(found: Checkpoint, path: str) -> str:
    """In words or options; path: of the checkpoint itself."""
    unit = found.unit
    folder = path.rpartition("/")[0] or "."
    return {
        "Megatron": f"--load {folder} --ckpt-step {unit.step}",
        "DeepSpeed": f'load_checkpoint("{folder}", tag="{path.rpartition("/")[2]}")',
        "torch DCP": f"load it with torch.distributed.checkpoint from {path} (torchtitan: --checkpoint.load_step {unit.step})",
        "Hugging Face": f"--resume_from_checkpoint {path}",
        "Lightning": f'trainer.fit(..., ckpt_path="{path}")',
        "file": f"load {path}",
    }[unit.layout]
