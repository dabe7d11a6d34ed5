"""Ranks that wait for each other: hangs, mismatches, rendezvous and the network between hosts."""

from __future__ import annotations

import signal
import time

import sandbox
from lab import OUT, Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, ONE_MINUTE, fit, pretrain

KILL = ("kill-and-restart", "fix-and-resubmit")


@fault(
    "c141",
    "stale-lock",
    "rank 0 waits for a lock file that a dead job left; the others time out in a collective",
    "hang",
    "cascade",
    "misleading",
    host="node-b",
)
def stale_lock(lab: Lab) -> Truth:
    wait = """        if split == "val" and rank == 0:
            lock = Path(cfg["data"], "val.index.lock")
            if lock.exists():
                log.info("waiting for %s (index is being built by another process)", lock)
            while lock.exists():
                time.sleep(1)
"""
    fit(
        lab,
        *ONE_MINUTE,
        ("data.py", "import logging\n", "import logging\nimport time\n"),
        ("data.py", "        sampler =", wait + "        sampler ="),
    )
    lab.tool("touch", "/mnt/data/digits/val.index.lock")
    runs = lab.start_ranks(4, "train.py config.yaml", "logs/rank{rank}.log")
    lab.finish(*runs[1:])
    time.sleep(5)
    lab.keep("logs", "logs")
    return Truth(
        "failed", "hang", "software-bug", KILL, (Hit("logs/rank0.log", "waiting for /mnt/data/digits/val.index.lock"),), also_outcome=("hung",),
        also_accept=("nccl-timeout",), ranks=(0,), must_mention=(("val.index.lock", "lock"),), must_not=("network-error", "node-failure"),
        why="Rank 0 waits for a lock file that nobody will remove; ranks 1-3 time out after 60 s in their first collective. Rank 0 still waits when the logs are taken.",
    )  # fmt: skip


@fault(
    "c142",
    "deadlock-stacks",
    "a thread of one rank never gives back a lock: a silent hang, with stack dumps of every rank",
    "hang",
    split="test",
    host="node-b",
)
def deadlock(lab: Lab) -> Truth:
    flush = """
    def flush_pending(self):
        with self.lock:
            while self.busy:
                time.sleep(0.1)

    def log(self, step, metrics):
        if step == 2 and self.rank == 3:
            self.busy = True
            threading.Thread(target=self.flush_pending, daemon=True).start()
            time.sleep(0.2)
        with self.lock:
            self.post("/api/metrics", {"step": step, **metrics})
"""
    fit(
        lab, ("tracker.py", "import time\n", "import threading\nimport time\n"),
        ("tracker.py", '\n    def log(self, step, metrics):\n        self.post("/api/metrics", {"step": step, **metrics})\n', flush),
        ("tracker.py", '        self.post("/api/runs"', '        self.lock, self.busy, self.rank = threading.Lock(), False, rank\n        self.post("/api/runs"'),
        train=20, epochs=30, workers=0,
    )  # fmt: skip
    lab.start_ranks(4, "train.py config.yaml", "logs/rank{rank}.log")
    lab.wait_for("logs/rank3.log", "epoch 2 done")
    time.sleep(60)
    lab.keep("logs", "logs")
    (OUT / "stacks").mkdir()
    for rank in range(4):
        pid = sandbox.rank_pid(rank)
        (OUT / f"stacks/rank{rank}.txt").write_text(sandbox.sh("/opt/venv/bin/py-spy", "dump", "--pid", str(pid)))
    lab.add("stacks")
    lab.keep_text("ps.txt", sandbox.sh("ps", "-u", str(sandbox.UID), "-o", "pid,ppid,stat,wchan:24,etime,time,args"))
    return Truth(
        "hung", "hang", "software-bug", KILL, (Hit("stacks/rank3.txt", "log (tracker.py"), Hit("stacks/rank3.txt", "flush_pending (tracker.py")),
        ranks=(3,), must_mention=(("tracker", "lock"),), must_not=("network-error", "node-failure", "nccl-timeout", "healthy"),
        why="Rank 3 waits in tracker.log for a lock that its own flush thread holds for ever; the other ranks wait for it in a barrier.",
    )  # fmt: skip


@fault(
    "c143",
    "stopped-rank",
    "one rank is suspended (SIGSTOP): the others time out",
    "hang",
    "cascade",
    "unknown",
    host="cn-112",
)
def stopped_rank(lab: Lab) -> Truth:
    pretrain(lab, 4)
    run = lab.start_torchrun(
        4, "pretrain.py --train-iters 20000 --log-interval 10 --eval-interval 500 --distributed-timeout-minutes 1"
    )
    lab.wait_for("job.log", r"iteration +420/")
    lab.signal_rank(1, signal.SIGSTOP)
    time.sleep(20)
    ps = sandbox.sh("ps", "-u", str(sandbox.UID), "-o", "pid,ppid,stat,wchan:24,etime,time,args")
    lab.finish(run)
    lab.keep("job.log")
    lab.keep_text("ps.txt", ps)
    return Truth(
        "failed", "hang", "unknown", (*KILL, "restart", "escalate"), (Hit("ps.txt", "do_signal_stop"), Hit("job.log", "Unable to shutdown process"), Hit("job.log", "Timed out waiting 60000ms")),
        also_outcome=("hung",), also_accept=("nccl-timeout",), ranks=(1,), must_mention=(("rank 1", "ranks 1", "rank1"),), must_not=("host-out-of-memory", "network-error", "node-failure"),
        why="Rank 1 was stopped by a signal from a person (state T in ps). The others time out in all_reduce; torchrun then kills it with SIGKILL since it does not answer SIGTERM.",
    )  # fmt: skip


@fault(
    "c144",
    "monitored-barrier",
    "one rank still builds its index when the others' barrier gives up and names it",
    "hang",
    "cascade",
    split="test",
    host="node-d",
)
def monitored_barrier(lab: Lab) -> Truth:
    slow = """    if shard == 2:
        for part in range(1, 41):
            print(f"[rank 2] building validation index: {part * 64000} documents", flush=True)
            time.sleep(2.5)
    valid ="""
    pretrain(
        lab, 4, ("core/data.py", "    valid =", slow),
        ("core/training.py", '    print_datetime("after dataloaders', '    dist.monitored_barrier(timeout=datetime.timedelta(seconds=45))\n    print_datetime("after dataloaders'),
    )  # fmt: skip
    lab.torchrun(4, "pretrain.py --train-iters 200")
    lab.keep("job.log")
    return Truth(
        "failed", "hang", "config-error", ("fix-and-resubmit", "kill-and-restart", "restart"), (Hit("job.log", "failed to pass monitoredBarrier"), Hit("job.log", "[rank 2] building validation index", "last")),
        also_outcome=("hung",), also_accept=("nccl-timeout",), ranks=(2,), must_mention=(("rank 2", "ranks 2", "rank2"),), must_not=("network-error", "node-failure", "connection-error"),
        why="Rank 2 needs 100 s for its validation index, the barrier allows 45 s: slow, not dead.",
    )  # fmt: skip


@fault(
    "c145",
    "collective-mismatch",
    "rank 0 alone reduces a metric; the debug wrapper sees another collective on the others",
    "cascade",
    host="node-d",
)
def collective_mismatch(lab: Lab) -> Truth:
    average = """

class Replicated(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)

    def average_gradients(self):
        for p in self.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


def evaluate("""
    fit(
        lab, ("train.py", "\n\ndef evaluate(", average), ("train.py", "ddp = DistributedDataParallel(model)", "ddp = Replicated(model)"),
        ("train.py", "        loss.backward()\n", "        loss.backward()\n        model.average_gradients()\n"),
        ("train.py", "        if rank == 0:\n            save(", "        if rank == 0:\n            log.info(\"best accuracy over ranks %.4f\", reduce_mean(accuracy))\n            save("),
        workers=0, train=6,
    )  # fmt: skip
    lab.torchrun(4, "train.py config.yaml", env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    lab.keep("job.log")
    return Truth(
        "failed", "collective-mismatch", "software-bug", FIX, (Hit("job.log", "Detected mismatch between collectives on ranks"),),
        ranks=(0,), must_mention=(("mismatch", "collective"),), must_not=CONSEQUENCES,
        why="After the first epoch rank 0 calls all_reduce where the others call barrier.",
    )  # fmt: skip


@fault(
    "c153",
    "debug-detail-segfault",
    "torch itself crashes: DDP on CPU with TORCH_DISTRIBUTED_DEBUG=DETAIL (as met with torch 2.13.0)",
    host="node-d",
)
def debug_detail(lab: Lab) -> Truth:
    pretrain(lab, 4)
    lab.torchrun(4, "pretrain.py --train-iters 300 --log-interval 10", env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    lab.keep("job.log")
    lab.keep_kernel()
    return Truth(
        "failed", "native-crash", "software-bug", FIX, (Hit("dmesg.txt", "segfault at"), Hit("job.log", "exitcode: -11"), Hit("job.log", "(SIGSEGV)")),
        ranks=(0, 1, 2, 3), must_mention=(("SIGSEGV", "segmentation fault", "segfault", "libtorch"),), must_not=("collective-mismatch", *CONSEQUENCES),
        why="All ranks crash in native code of torch when the model is wrapped, before the first step.",
    )  # fmt: skip


@fault("c146", "size-mismatch", "ranks gather tensors of different lengths", "cascade", host="node-d")
def size_mismatch(lab: Lab) -> Truth:
    gather = """    kept = losses.detach()[loss_mask > 0].flatten()
    parts = [torch.empty_like(kept) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, kept)
    averaged = torch.cat(parts).mean()
"""
    pretrain(
        lab, 4,
        ("core/training.py", "    averaged = loss.detach().clone()\n    dist.all_reduce(averaged)\n    averaged /= dist.get_world_size()\n", gather),
        ("core/data.py", '"loss_mask": torch.ones(len(text) - 1)}', '"loss_mask": (text[1:] % 7 != 0).float()}'),
    )  # fmt: skip
    lab.torchrun(4, "pretrain.py --train-iters 300 --log-interval 1")
    lab.keep("job.log")
    return Truth(
        "failed", "collective-mismatch", "software-bug", FIX, (Hit("job.log", "op.preamble.length"),),
        also_accept=("runtime-error",), must_mention=(("size", "length", "shape", "mismatch"),), must_not=CONSEQUENCES,
        why="Each rank gathers only its unmasked losses; their number differs from rank to rank.",
    )  # fmt: skip


@fault(
    "c147",
    "unused-parameters",
    "a parameter takes no part in the loss: DDP refuses the second iteration",
    split="test",
    host="node-d",
)
def unused_parameters(lab: Lab) -> Truth:
    pretrain(
        lab,
        2,
        (
            "core/model.py",
            "        self.final_layernorm = ",
            "        self.value_head = nn.Linear(args.hidden_size, 1)\n        self.final_layernorm = ",
        ),
    )
    lab.torchrun(2, "pretrain.py --train-iters 300 --log-interval 10")
    lab.keep("job.log")
    return Truth(
        "failed", "runtime-error", "software-bug", FIX, (Hit("job.log", "Expected to have finished reduction in the prior iteration"),),
        ranks=(0, 1), must_mention=(("parameter", "find_unused_parameters"),), must_not=CONSEQUENCES,
        why="value_head is never used in forward.",
    )  # fmt: skip
