"""Train a classifier: train.py CONFIG.yaml"""

import logging
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import yaml
from data import build_loaders
from network import build_model
from torch.nn.parallel import DistributedDataParallel
from tracker import Tracker

log = logging.getLogger("train")


def setup_logging(rank):
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format=f"[%(asctime)s][%(levelname)s][rank {rank}][%(filename)s:%(lineno)d] %(message)s",
    )


def reduce_mean(value):
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor)
    return tensor.item() / dist.get_world_size()


def evaluate(model, loader):
    model.eval()
    correct, total, loss_sum = 0, 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss_sum += torch.nn.functional.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(1) == y).sum().item()
            total += len(y)
    model.train()
    return loss_sum / total, correct / total


def save(path, epoch, model, optimizer):
    log.info("saving checkpoint to %s", path)
    start = time.time()
    state = {"epoch": epoch, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path)
    log.info("checkpoint saved in %.2f s (%d bytes)", time.time() - start, path.stat().st_size)


def resume(path, model, optimizer):
    log.info("resuming from %s", path)
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


def train_epoch(epoch, model, optimizer, loader, cfg):
    loader.sampler.set_epoch(epoch)
    start, seen = time.time(), 0
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(y)
        if step % cfg["log_every"] == 0:
            rate = seen / (time.time() - start)
            log.info(
                "epoch %d step %d/%d loss %.4f lr %.2e %.1f samples/s",
                epoch,
                step,
                len(loader),
                loss.item(),
                optimizer.param_groups[0]["lr"],
                rate,
            )


def main():
    cfg = yaml.safe_load(Path(sys.argv[1]).read_text())
    rank = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("SLURM_PROCID", "0"))))
    world = int(
        os.environ.get("WORLD_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))
    )
    setup_logging(rank)
    log.info("config: %s", cfg)
    log.info("rank %d of %d on %s, pid %d, torch %s", rank, world, os.uname().nodename, os.getpid(), torch.__version__)
    torch.set_num_threads(1)
    torch.manual_seed(cfg["seed"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    tracker = Tracker(cfg.get("tracker"), cfg, rank)
    train_loader, val_loader = build_loaders(cfg, rank, world)
    log.info(
        "train %d samples in %d batches, val %d samples",
        len(train_loader.dataset),
        len(train_loader),
        len(val_loader.dataset),
    )
    model = build_model(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)
    out = Path(cfg["out"])
    out.mkdir(parents=True, exist_ok=True)
    first = 0
    if cfg.get("resume") and (out / "last.pt").exists():
        first = resume(out / "last.pt", model, optimizer)
    ddp = DistributedDataParallel(model)
    for epoch in range(first, cfg["epochs"]):
        train_epoch(epoch, ddp, optimizer, train_loader, cfg)
        loss, accuracy = evaluate(ddp.module, val_loader)
        loss, accuracy = reduce_mean(loss), reduce_mean(accuracy)
        log.info("epoch %d done: val_loss %.4f val_acc %.4f", epoch, loss, accuracy)
        tracker.log(epoch, {"val_loss": loss, "val_acc": accuracy})
        if rank == 0:
            save(out / "last.pt", epoch, ddp, optimizer)
        dist.barrier()
    tracker.finish()
    log.info("training finished after %d epochs", cfg["epochs"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
