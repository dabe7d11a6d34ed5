import argparse
import os


def parse_args():
    parser = argparse.ArgumentParser(description="GPT pretraining", allow_abbrev=False)
    g = parser.add_argument_group("network size")
    g.add_argument("--num-layers", type=int, default=2)
    g.add_argument("--hidden-size", type=int, default=64)
    g.add_argument("--num-attention-heads", type=int, default=4)
    g.add_argument("--seq-length", type=int, default=64)
    g.add_argument("--vocab-size", type=int, default=512)
    g = parser.add_argument_group("training")
    g.add_argument("--micro-batch-size", type=int, default=4)
    g.add_argument("--global-batch-size", type=int, default=None)
    g.add_argument("--train-iters", type=int, default=200)
    g.add_argument("--lr", type=float, default=3e-3)
    g.add_argument("--min-lr", type=float, default=3e-4)
    g.add_argument("--lr-warmup-iters", type=int, default=20)
    g.add_argument("--clip-grad", type=float, default=1.0)
    g.add_argument("--weight-decay", type=float, default=0.1)
    g.add_argument("--seed", type=int, default=1234)
    g.add_argument("--no-check-for-nan-in-loss-and-grad", action="store_false", dest="check_for_nan_in_loss_and_grad")
    g.add_argument("--distributed-backend", default="gloo")
    g.add_argument("--distributed-timeout-minutes", type=float, default=10)
    g = parser.add_argument_group("data")
    g.add_argument("--data-path", default="/mnt/data/corpus")
    g.add_argument("--num-workers", type=int, default=0)
    g.add_argument("--eval-interval", type=int, default=100)
    g.add_argument("--eval-iters", type=int, default=5)
    g = parser.add_argument_group("checkpointing and logging")
    g.add_argument("--save", default=None)
    g.add_argument("--load", default=None)
    g.add_argument("--save-interval", type=int, default=100)
    g.add_argument("--log-interval", type=int, default=10)
    args = parser.parse_args()
    args.rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
    args.world_size = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))
    return validate_args(args)


def validate_args(args):
    args.data_parallel_size = args.world_size
    if args.rank == 0:
        print(
            f"using world size: {args.world_size}, data-parallel size: {args.data_parallel_size}, "
            "context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1",
            flush=True,
        )
    per_step = args.micro_batch_size * args.data_parallel_size
    if args.global_batch_size is None:
        args.global_batch_size = per_step
        if args.rank == 0:
            print(f"setting global batch size to {args.global_batch_size}", flush=True)
    assert args.global_batch_size % per_step == 0, (
        f"global batch size ({args.global_batch_size}) is not divisible by micro batch size "
        f"({args.micro_batch_size}) times data parallel size ({args.data_parallel_size})"
    )
    assert args.hidden_size % args.num_attention_heads == 0
    args.num_micro_batches = args.global_batch_size // per_step
    if args.rank == 0:
        print("------------------------ arguments ------------------------", flush=True)
        for name in sorted(vars(args), key=str.lower):
            print(f"  {name} {'.' * (48 - len(name))} {getattr(args, name)}", flush=True)
        print("-------------------- end of arguments ---------------------", flush=True)
    return args
