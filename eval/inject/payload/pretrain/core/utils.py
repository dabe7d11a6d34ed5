import datetime

import torch.distributed as dist


def print_rank_0(message):
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(message, flush=True)


def print_rank_last(message):
    if not dist.is_initialized() or dist.get_rank() == dist.get_world_size() - 1:
        print(message, flush=True)


def print_datetime(what):
    dist.barrier()
    print_rank_0(f"[{what}] datetime: {datetime.datetime.now():%Y-%m-%d %H:%M:%S} ")
