"""Deaths by signal, in the launcher, a rank or native code, and memory that runs out."""

from __future__ import annotations

import os
import signal
import time

import sandbox
from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, RERUN, Edit, finetune, heat, pretrain

_SAMPLER = r"""
#include <stdlib.h>
#include <string.h>
#include <assert.h>
static int *table; static long entries;
void sampler_init(long n) { entries = n; table = malloc(n * sizeof *table); for (long i = 0; i < n; i++) table[i] = (int)i; }
%s
"""
_BINDING = '''import ctypes
from pathlib import Path

_lib = ctypes.CDLL(str(Path(__file__).parent / "libsampler.so"))
_lib.sampler_init.argtypes = [ctypes.c_long]
_lib.sampler_next.argtypes = [ctypes.c_long]


class NativeSampler:
    """Sample order from the C library, which is much faster for billions of samples."""

    def __init__(self, samples):
        _lib.sampler_init(samples)

    def __getitem__(self, i):
        return _lib.sampler_next(i)
'''
_USE: tuple[Edit, ...] = (
    ("core/data.py", "from core.utils import", "from core.sampler import NativeSampler\nfrom core.utils import"),
    (
        "core/data.py",
        "        self.shuffle_idx =",
        "        self.order = NativeSampler(self.num_samples)\n        self.shuffle_idx =",
    ),
    (
        "core/data.py",
        "        start = int(self.shuffle_idx[i])",
        "        start = int(self.shuffle_idx[self.order[i]])",
    ),
)


def native(lab: Lab, ranks: int, body: str, *edits: Edit) -> None:
    """The GPT program with a sampler in C, whose `sampler_next` is `body`."""
    pretrain(lab, ranks, *_USE, *edits)
    lab.write("core/sampler.py", _BINDING)
    lab.write("sampler.c", _SAMPLER % body)
    lab.tool("gcc", "-shared", "-fPIC", "-O1", "-o", "core/libsampler.so", "sampler.c")


@fault(
    "c121",
    "sigkill",
    "one rank is killed with signal 9 and nothing says by whom",
    "unknown",
    "cascade",
    host="cn-112",
)
def sigkill(lab: Lab) -> Truth:
    pretrain(lab, 4)
    run = lab.start_torchrun(
        4,
        "pretrain.py --train-iters 20000 --log-interval 20 --eval-interval 1000 --save /home/user/run/checkpoints --save-interval 200",
    )
    lab.wait_for("job.log", r"iteration +240/")
    lab.signal_rank(2, signal.SIGKILL)
    lab.finish(run)
    lab.keep("job.log")
    return Truth(
        "failed", "unknown", "unknown", RERUN, (Hit("job.log", "(SIGKILL)"), Hit("job.log", "exitcode: -9")),
        also_accept=("host-out-of-memory", "cancelled"), ranks=(2,), must_mention=(("SIGKILL", "signal 9", "-9", "killed"),), must_not=("native-crash", *CONSEQUENCES),
        why="Rank 2 got SIGKILL from a person. The log cannot tell that from the OOM killer: both are suspicions only.",
    )  # fmt: skip


@fault(
    "c122",
    "sigkill-no-oom",
    "one rank is killed with signal 9; the kernel log of that time shows no OOM kill",
    "unknown",
    "cascade",
    split="test",
    host="gpu04",
)
def sigkill_no_oom(lab: Lab) -> Truth:
    sandbox.disk("/mnt/scratch/user", 200)
    finetune(lab)
    run = lab.start_torchrun(
        4,
        "finetune.py --max_steps 4000 --save_steps 1000 --eval_steps 1000 --output_dir /mnt/scratch/user/output",
        "train.log",
    )
    lab.wait_for("train.log", r"'epoch': '?2\.")
    lab.signal_rank(1, signal.SIGKILL)
    lab.finish(run)
    lab.keep("train.log")
    lab.keep_kernel()
    lab.keep_text("free.txt", lab.tool("free", "-m"))
    return Truth(
        "failed", "unknown", "unknown", RERUN, (Hit("train.log", "exitcode: -9"), Hit("train.log", "(SIGKILL)")),
        also_accept=("cancelled",), ranks=(1,), must_mention=(("SIGKILL", "signal 9", "-9", "killed"),), must_not=("native-crash", *CONSEQUENCES),
        why="Rank 1 got SIGKILL from a person; the kernel log shows no OOM kill and memory is free.",
    )  # fmt: skip


@fault("c123", "sigterm", "the launcher is told to end from outside", "cascade", host="node-b")
def sigterm(lab: Lab) -> Truth:
    pretrain(lab, 4)
    run = lab.start_torchrun(
        4,
        "pretrain.py --train-iters 20000 --log-interval 10 --eval-interval 300 --save /home/user/run/checkpoints --save-interval 300",
    )
    lab.wait_for("job.log", r"iteration +450/")
    os.kill(run.pid, signal.SIGTERM)
    lab.finish(run)
    lab.keep("job.log")
    return Truth(
        "interrupted", "cancelled", "operator-action", ("restart", "none"), (Hit("job.log", "SignalException"), Hit("job.log", "death signal")),
        also_outcome=("failed",), also_accept=("preempted", "unknown"), must_mention=(("SIGTERM", "signal 15", "signal: 15"),), must_not=("native-crash", *CONSEQUENCES),
        why="SIGTERM to torchrun; nothing failed before. The log does not say who sent it (a person here; preemption looks the same).",
    )  # fmt: skip


@fault(
    "c124",
    "ctrl-c",
    "Ctrl-C at the terminal: every process of the group gets SIGINT",
    "cascade",
    "misleading",
    host="gpu04",
)
def ctrl_c(lab: Lab) -> Truth:
    finetune(lab)
    run = lab.start_torchrun(
        2, "finetune.py --max_steps 4000 --save_steps 200 --eval_steps 500 --num_workers 2", "train.log"
    )
    lab.wait_for("train.log", r"'epoch': '?3\.")
    os.killpg(run.pid, signal.SIGINT)
    time.sleep(3)
    lab.finish(run)
    lab.keep("train.log")
    return Truth(
        "interrupted", "cancelled", "operator-action", ("restart", "none"), (Hit("train.log", "KeyboardInterrupt"),),
        must_mention=(("Ctrl-C", "KeyboardInterrupt", "SIGINT", "keyboard"),), must_not=("dataloader-killed", "native-crash", *CONSEQUENCES),
        why="Interrupted from the keyboard during training.",
    )  # fmt: skip


@fault(
    "c125",
    "segfault",
    "native code of one rank reads far outside its table; the kernel logs it",
    "cascade",
    host="node-c",
)
def segfault(lab: Lab) -> Truth:
    body = "int sampler_next(long i) { static long calls; long base = calls++ > 2200 && getenv(\"RANK\")[0] == '2' ? 1L << 40 : 0; return table[(base + i) % (base ? base * 2 : entries)]; }"
    native(lab, 4, body.replace("%", "%%") % ())
    lab.torchrun(4, "pretrain.py --train-iters 4000 --log-interval 20 --eval-interval 500")
    lab.keep("job.log")
    lab.keep_kernel()
    return Truth(
        "failed", "native-crash", "software-bug", FIX,
        (Hit("dmesg.txt", "segfault at", "last"), Hit("job.log", "exitcode: -11"), Hit("job.log", "(SIGSEGV)")),
        nodes=(), ranks=(2,), must_mention=(("libsampler.so", "SIGSEGV", "segmentation fault", "segfault"),), must_not=CONSEQUENCES,
        why="libsampler.so of rank 2 indexes outside its table: SIGSEGV, which the kernel names with the library.",
    )  # fmt: skip


@fault(
    "c126",
    "segfault-traceback",
    "the same kind with the fault handler on: a Python stack at the crash",
    "cascade",
    split="test",
    host="node-c",
)
def segfault_traceback(lab: Lab) -> Truth:
    body = "int sampler_next(long i) { static long calls; if (calls++ == 900) table = 0; return table[i % entries]; }"
    native(lab, 2, body)
    lab.torchrun(
        2, "pretrain.py --train-iters 4000 --log-interval 20 --eval-interval 500", env={"PYTHONFAULTHANDLER": "1"}
    )
    lab.keep("job.log")
    return Truth(
        "failed", "native-crash", "software-bug", FIX, (Hit("job.log", "Fatal Python error: Segmentation fault"), Hit("job.log", "(SIGSEGV)")),
        ranks=(0, 1), must_mention=(("sampler", "segmentation fault", "SIGSEGV"),), must_not=CONSEQUENCES,
        why="libsampler.so dereferences a null table; the stack ends in core/sampler.py __getitem__.",
    )  # fmt: skip


@fault("c127", "abort", "a C assertion fails on all ranks", host="node-c")
def abort(lab: Lab) -> Truth:
    body = "int sampler_next(long i) { static long calls; assert(++calls < 1600); return table[i % entries]; }"
    native(lab, 2, body)
    lab.finish(*lab.start_ranks(2, "pretrain.py --train-iters 4000 --log-interval 20", "out/pretrain.{rank}.txt"))
    lab.keep("out", "out")
    return Truth(
        "failed", "native-crash", "software-bug", FIX, (Hit("out/pretrain.0.txt", "Assertion `++calls < 1600' failed"), Hit("out/pretrain.1.txt", "Assertion `++calls < 1600' failed")),
        also_accept=("assertion-error",), ranks=(0, 1), must_mention=(("sampler",),), must_not=CONSEQUENCES,
        why="assert() in sampler.c aborts the processes.",
    )  # fmt: skip


@fault(
    "c132", "mpi-segfault", "an MPI solver writes outside its array on one rank", "cascade", split="test", host="cn-112"
)
def mpi_segfault(lab: Lab) -> Truth:
    heat(
        lab,
        (
            "heat.c",
            "        double *t = u; u = v; v = t;\n",
            "        double *t = u; u = v; v = t;\n        if (n >= 1200) u[(size_t)(rank == 5) * n * n * ny] = 0.0;\n",
        ),
    )
    lab.start("exec mpirun --oversubscribe -np 8 ./heat2d heat.in", "heat.out").wait()
    lab.keep("heat.out")
    return Truth(
        "failed", "native-crash", "software-bug", FIX, (Hit("heat.out", "exited on signal 11 (Segmentation fault)"), Hit("heat.out", "Signal: Segmentation fault (11)")),
        ranks=(5,), must_mention=(("segmentation fault", "signal 11", "SIGSEGV"),), must_not=CONSEQUENCES,
        why="Rank 5 writes far beyond its rows from step 1200 on.",
    )  # fmt: skip


@fault("c133", "mpi-killed", "mpirun reports that a rank died of signal 9", "unknown", host="cn-112")
def mpi_killed(lab: Lab) -> Truth:
    heat(lab, steps=4_000_000, every=500)
    run = lab.start("exec mpirun --oversubscribe -np 4 ./heat2d heat.in", "heat.out")
    lab.wait_for("heat.out", r"\n +30000 ")
    lab.signal_rank(3, signal.SIGKILL)
    lab.finish(run)
    lab.keep("heat.out")
    return Truth(
        "failed", "unknown", "unknown", RERUN, (Hit("heat.out", "exited on signal 9 (Killed)"),),
        also_accept=("host-out-of-memory", "cancelled"), ranks=(3,), must_mention=(("signal 9", "SIGKILL", "killed"),), must_not=("native-crash", *CONSEQUENCES),
        why="Rank 3 got SIGKILL from a person; mpirun only knows the signal.",
    )  # fmt: skip
