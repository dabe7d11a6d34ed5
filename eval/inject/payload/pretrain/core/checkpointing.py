import os
from pathlib import Path

import torch
import torch.distributed as dist

from core.utils import print_rank_0


def checkpoint_name(root, iteration):
    return Path(root) / f"iter_{iteration:07d}" / "mp_rank_00" / "model_optim_rng.pt"


def save_checkpoint(iteration, model, optimizer, args):
    print_rank_0(f"saving checkpoint at iteration {iteration:7d} to {args.save} in torch format")
    if dist.get_rank() == 0:
        name = checkpoint_name(args.save, iteration)
        name.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "args": args,
            "iteration": iteration,
            "model": model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "rng_state": torch.get_rng_state(),
        }
        torch.save(state, name)
        (Path(args.save) / "latest_checkpointed_iteration.txt").write_text(str(iteration))
    dist.barrier()
    print_rank_0(f"  successfully saved checkpoint from iteration {iteration:7d} to {args.save} [ t 1/1, p 1/1 ]")


def load_checkpoint(model, optimizer, args):
    tracker = Path(args.load) / "latest_checkpointed_iteration.txt"
    if not tracker.exists():
        print_rank_0(f"WARNING: could not find the metadata file {tracker}")
        print_rank_0("    will not load any checkpoints and will start from random")
        return 0
    iteration = int(tracker.read_text())
    name = checkpoint_name(args.load, iteration)
    print_rank_0(f" loading checkpoint from {args.load} at iteration {iteration}")
    state = torch.load(os.fspath(name), map_location="cpu", weights_only=False)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng_state"])
    print_rank_0(f"  successfully loaded checkpoint from {args.load} [ t 1/1, p 1/1 ] at iteration {iteration}")
    return iteration
