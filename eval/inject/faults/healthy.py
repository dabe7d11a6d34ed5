"""Runs that end well, many with lines that frighten; and two failures beside somebody else's trouble."""

from __future__ import annotations

from pathlib import Path

from lab import Lab, Truth, fault

from faults.common import finetune, fit, healthy, heat, pretrain


@fault("c221", "long-run", "a long run with every step logged", "healthy", "large", host="cn-112")
def long_run(lab: Lab) -> Truth:
    pretrain(lab, 4, tokens=120_000)
    lab.succeed(
        lab.torchrun(
            4,
            "pretrain.py --train-iters 3000 --log-interval 1 --eval-interval 250 --save /mnt/scratch/ckpt --save-interval 250",
        )
    )
    lab.keep("job.log")
    return healthy("All 3000 iterations, last validation and checkpoint.")


@fault(
    "c222",
    "tracker-down",
    "the experiment server refuses connections; training does not need it",
    "healthy",
    "misleading",
    split="test",
    host="node-b",
)
def tracker_down(lab: Lab) -> Truth:
    fit(lab, epochs=5, tracker="http://127.0.0.1:5000")
    lab.succeed(lab.finish(*lab.start_ranks(2, "train.py config.yaml", "logs/rank{rank}.log")))
    lab.keep("logs", "logs")
    return healthy("Metrics could not be sent (connection refused, retried, given up); all epochs done.")


@fault(
    "c223",
    "bad-samples-skipped",
    "broken samples are caught, logged with a traceback and skipped",
    "healthy",
    "misleading",
    host="node-b",
)
def bad_samples(lab: Lab) -> Truth:
    catch = """        try:
            return self.decode(index)
        except Exception:
            log.exception("sample %d cannot be decoded, taking the next one", index)
            return self[(index + self.per_shard) % len(self)]

    def decode(self, index):
"""
    fit(
        lab,
        ("data.py", "    def __getitem__(self, index):\n", "    def __getitem__(self, index):\n" + catch),
        train=24,
        per_shard=16,
        epochs=4,
        workers=1,
        batch=8,
        log_every=4,
    )
    for number in (3, 11):
        shard = Path(f"/mnt/data/digits/train/shard_{number:05d}.npz")
        shard.write_bytes(shard.read_bytes()[:900])
    lab.succeed(lab.torchrun(2, "train.py config.yaml"))
    lab.keep("job.log")
    return healthy(
        "Two shards cannot be read; their samples are replaced by others, all epochs done.", "dataset-loading-error"
    )


@fault(
    "c224",
    "overflow-skipped",
    "gradient overflows are met by skipping steps, as loss scaling does",
    "healthy",
    "misleading",
    host="cn-112",
)
def overflow(lab: Lab) -> Truth:
    scale = """    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
    if args.rank == 0 and iteration % 97 == 13:
        grad_norm = grad_norm * float("inf")
    found = torch.isinf(grad_norm).float()
    dist.all_reduce(found)
    if found.item():
        print_rank_0(f"[{datetime.datetime.now():%Y-%m-%d %H:%M:%S}] [INFO] OVERFLOW! Skipping step. Attempted loss scale: {2 ** (16 - iteration // 97)}, reducing to {2 ** (15 - iteration // 97)}")
        return loss_dict, torch.tensor(0.0), lr
"""
    pretrain(
        lab,
        4,
        (
            "core/training.py",
            "    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)\n",
            scale,
        ),
    )
    lab.succeed(lab.torchrun(4, "pretrain.py --train-iters 800 --log-interval 5 --eval-interval 200"))
    lab.keep("job.log")
    return healthy("Nine steps skipped for overflow, the loss falls all the same, training completes.")


@fault(
    "c229", "slow-phase", "a long silence for a legal reason: a slow evaluation", "healthy", "misleading", host="cn-112"
)
def slow_phase(lab: Lab) -> Truth:
    pretrain(
        lab, 2, ("core/training.py", "    model.eval()\n", "    model.eval()\n    time.sleep(args.eval_iters * 4)\n")
    )
    lab.succeed(lab.torchrun(2, "pretrain.py --train-iters 400 --log-interval 5 --eval-interval 200 --eval-iters 15"))
    lab.keep("job.log")
    return healthy("Each evaluation takes a minute without a line; the run completes.")


@fault("c230", "mpi-healthy", "an MPI solver that warns and finishes", "healthy", split="test", host="cn-112")
def mpi_healthy(lab: Lab) -> Truth:
    heat(
        lab,
        (
            "heat.c",
            "    double start = MPI_Wtime();\n",
            '    if (rank == 0 && in.nx % 96) fprintf(stderr, "WARNING (rank 0): no checkpoint found in ./restart, error estimate is not available, starting from step 0\\n");\n    double start = MPI_Wtime();\n',
        ),
        steps=30000,
        every=250,
    )
    lab.succeed(
        lab.start(
            "exec mpirun --oversubscribe --mca btl_base_warn_component_unused 1 -np 4 ./heat2d heat.in", "heat.out"
        ).wait()
    )
    lab.keep("heat.out")
    return healthy("All steps done.")


@fault(
    "c233",
    "optional-imports",
    "optional parts are missing and said so, with tracebacks; the run completes",
    "healthy",
    "misleading",
    host="gpu04",
)
def optional_imports(lab: Lab) -> Truth:
    probe = '''logger = logging.getLogger(__name__)


def optional(name):
    """A faster implementation, where it is installed."""
    try:
        return __import__(name)
    except ImportError as error:
        logger.warning("%s is not available (%s), using the slower default", name, error, exc_info=True)
        return None
'''
    finetune(
        lab,
        ("finetune.py", "logger = logging.getLogger(__name__)\n", probe),
        (
            "finetune.py",
            "    set_seed(args.seed)\n",
            '    for name in ("flash_attn", "apex", "bitsandbytes"):\n        optional(name)\n    set_seed(args.seed)\n',
        ),
    )
    lab.succeed(lab.torchrun(2, "finetune.py --max_steps 600 --save_steps 100 --eval_steps 100", "train.log"))
    lab.keep("train.log")
    return healthy(
        "Three optional packages are missing; training, evaluation and the last save completed.", "import-error"
    )
