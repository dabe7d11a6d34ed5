import datetime
import math
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from core.checkpointing import load_checkpoint, save_checkpoint
from core.data import build_datasets, build_iterator
from core.model import GPTModel
from core.utils import print_datetime, print_rank_0, print_rank_last


def initialize(args):
    if args.rank == 0:
        print("> initializing torch distributed ...", flush=True)
    dist.init_process_group(
        args.distributed_backend,
        rank=args.rank,
        world_size=args.world_size,
        timeout=datetime.timedelta(minutes=args.distributed_timeout_minutes),
    )
    print_rank_0("> initialized tensor model parallel with size 1")
    print_rank_0("> initialized pipeline model parallel with size 1")
    print_rank_0(f"> setting random seeds to {args.seed} ...")
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)


def setup_model_and_optimizer(args):
    print_rank_0("building GPT model ...")
    model = GPTModel(args)
    print_rank_0(f" > number of parameters on (tensor, pipeline) model parallel rank (0, 0): {model.num_parameters()}")
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=args.weight_decay)
    print_rank_0("> learning rate decay style: cosine")
    iteration = load_checkpoint(model, optimizer, args) if args.load else 0
    return model, optimizer, iteration


def learning_rate(iteration, args):
    if iteration < args.lr_warmup_iters:
        return args.lr * (iteration + 1) / args.lr_warmup_iters
    done = (iteration - args.lr_warmup_iters) / max(1, args.train_iters - args.lr_warmup_iters)
    return args.min_lr + 0.5 * (args.lr - args.min_lr) * (1 + math.cos(math.pi * min(1.0, done)))


def loss_func(losses, loss_mask):
    loss = torch.sum(losses * loss_mask) / loss_mask.sum()
    averaged = loss.detach().clone()
    dist.all_reduce(averaged)
    averaged /= dist.get_world_size()
    return loss, {"lm loss": averaged}


def forward_step(data_iterator, model):
    batch = next(data_iterator)
    losses = model(batch["tokens"], batch["labels"])
    return loss_func(losses, batch["loss_mask"])


def train_step(data_iterator, model, optimizer, iteration, args):
    lr = learning_rate(iteration, args)
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    for _ in range(args.num_micro_batches):
        loss, loss_dict = forward_step(data_iterator, model)
        if args.check_for_nan_in_loss_and_grad:
            assert not torch.isnan(loss), (
                f"Rank {dist.get_rank()}: found NaN in local forward loss calculation. "
                f"Device: cpu, node: {os.uname().nodename}"
            )
        (loss / args.num_micro_batches).backward()
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
    optimizer.step()
    return loss_dict, grad_norm, lr


def training_log(loss_dict, iteration, grad_norm, lr, elapsed, args):
    if dist.get_rank() != dist.get_world_size() - 1:
        return
    string = f" [{datetime.datetime.now():%Y-%m-%d %H:%M:%S}]"
    string += f" iteration {iteration:8d}/{args.train_iters:8d} |"
    string += f" consumed samples: {iteration * args.global_batch_size:12d} |"
    string += f" elapsed time per iteration (ms): {elapsed * 1000.0:.1f} |"
    string += f" learning rate: {lr:.6E} | global batch size: {args.global_batch_size:5d} |"
    for key, value in loss_dict.items():
        string += f" {key}: {value.item():.6E} |"
    nans = sum(int(torch.isnan(v).item()) for v in loss_dict.values())
    string += f" loss scale: 1.0 | grad norm: {grad_norm.item():.3f} |"
    string += f" number of skipped iterations: {0:3d} | number of nan iterations: {nans:3d} |"
    print(string, flush=True)


def evaluate(valid_iterator, model, args):
    model.eval()
    total = {}
    with torch.no_grad():
        for _ in range(args.eval_iters):
            _, loss_dict = forward_step(valid_iterator, model)
            for key, value in loss_dict.items():
                total[key] = total.get(key, 0.0) + value / args.eval_iters
    model.train()
    return total


def evaluate_and_print_results(prefix, valid_iterator, model, args):
    results = evaluate(valid_iterator, model, args)
    string = f" validation loss at {prefix} | "
    for key, value in results.items():
        string += f"{key} value: {value.item():.6E} | {key} PPL: {math.exp(min(20, value.item())):.6E} | "
    print_rank_last("-" * (len(string) + 1))
    print_rank_last(string)
    print_rank_last("-" * (len(string) + 1))


def train(model, optimizer, iteration, train_iterator, valid_iterator, args):
    print_rank_0("training ...")
    print_datetime("before the start of training step")
    start = time.time()
    while iteration < args.train_iters:
        loss_dict, grad_norm, lr = train_step(train_iterator, model, optimizer, iteration, args)
        iteration += 1
        if iteration % args.log_interval == 0:
            training_log(loss_dict, iteration, grad_norm, lr, (time.time() - start) / args.log_interval, args)
            start = time.time()
        if iteration % args.eval_interval == 0:
            evaluate_and_print_results(f"iteration {iteration}", valid_iterator, model, args)
        if args.save and iteration % args.save_interval == 0:
            save_checkpoint(iteration, model, optimizer, args)
    return iteration


def pretrain(args):
    initialize(args)
    print_datetime("after megatron is initialized")
    model, optimizer, iteration = setup_model_and_optimizer(args)
    print_datetime("after model, optimizer, and learning rate scheduler are built")
    train_ds, valid_ds = build_datasets(args)
    train_iterator = build_iterator(train_ds, args, skip=iteration * args.num_micro_batches)
    valid_iterator = build_iterator(valid_ds, args)
    print_datetime("after dataloaders are built")
    print_rank_0("done with setup ...")
    iteration = train(model, optimizer, iteration, train_iterator, valid_iterator, args)
    print_datetime("after training is done")
    evaluate_and_print_results("the end of training for val data", valid_iterator, model, args)
    if args.save and iteration % args.save_interval:
        save_checkpoint(iteration, model, optimizer, args)
    dist.destroy_process_group()
