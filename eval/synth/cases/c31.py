"""s106 and s112."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import bar, pl_head
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave


@case(
    "s106", "dataloader-killed", "software-bug", "fix-and-resubmit restart",
    source="after two reports of loader workers that exit unexpectedly; here the kernel log shows the worker's crash in the video decoder",
    why="Rank 3's loader worker 71244 took a segmentation fault in libavcodec (kernel log); memory and /dev/shm are ample. The parent's 'exited unexpectedly' and the later Gloo and NCCL lines follow from it.",
    tags="misleading kernel training cascade", also="native-crash", also_cls="data-error dependency-failure", nodes="", ranks="3", gpus=4, mention=["worker|libavcodec|decod"], must_not="host-out-of-memory nccl-remote-error out-of-memory",
)  # fmt: skip
def s106(c: Case) -> None:
    c.start("2025-03-11 12:44:00")
    c.site, c.root = "/home/qwen/env/lib/python3.11/site-packages", "/home/qwen/qwen-vl-ft"
    log = c.file("video-ft.log")
    log.add(
        "               total        used        free      shared  buff/cache   available",
        "Mem:           1.0Ti       141Gi       611Gi        12Gi       255Gi       849Gi",
        "shm             504G   12G  492G   3% /dev/shm",
    )
    loss = Curve(c, 2.0, 0.9, 100)
    for s in range(1, 506):
        c.tick(6, 7)
        log.add(
            f"[rank0] {c.t('%m-%d %H:%M:%S')} step {s}/3000 loss {loss(s):.4f} frames {c.n(200, 900)} host used {c.f(150, 162):.0f} GB"
        )
        if s % 90 == 0:
            log.add(
                f"[h264 @ 0x55{c.hex(8)}] mmco: unref short failure",
                f"[rank{c.n(0, 3)}] decord: recovered from 1 broken frame in clip_{c.n(10000, 99999)}.mp4",
            )
    k = Kernel(c, "gx4")
    d = c.file("gx4-journal.txt")
    d.add(
        chatter(c, k, 40, 9000),
        k(
            "pt_data_worker[71244]: segfault at 7f2b18c00010 ip 00007f2c41d0a5e3 sp 00007f2be1ffa8c0 error 4 in libavcodec-bc7b6f0f.so.58.134.100[7f2c41400000+c71000] likely on CPU 44 (core 12, socket 0)",
            1,
        ),
        e="segfault at",
    )
    log.add(pre("[rank3]: ", tb(c, """
        $S/torch/utils/data/dataloader.py:1251 _try_get_data | data = self._data_queue.get(timeout=timeout)
        /usr/lib/python3.11/multiprocessing/connection.py:930 wait | ready = selector.select(timeout)
        $S/torch/utils/data/_utils/signal_handling.py:73 handler | _error_if_any_worker_fails()
        """, ["RuntimeError: DataLoader worker (pid 71244) is killed by signal: Segmentation fault. ", "", "The above exception was the direct cause of the following exception:", "", *tb(c, "train.py:181 <module> | trainer.train()\n$S/torch/utils/data/dataloader.py:1264 _try_get_data | raise RuntimeError(f'DataLoader worker (pid(s) {pids_str}) exited unexpectedly') from e", "RuntimeError: DataLoader worker (pid(s) 71244) exited unexpectedly")])), e="71244) is killed by signal")  # fmt: skip
    c.tick(3)
    log.add(
        weave(
            c.rng,
            [
                pre(
                    f"[rank{r}]: ",
                    [
                        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2251, remote process exited or there was a network error, NCCL version 2.21.5",
                        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
                    ],
                )
                for r in (0, 1, 2)
            ],
            1,
        )
    )
    pids = c.pids(4, 70900)
    log.add(
        tt.sigterm(c, "2.5", [pids[0], pids[1], pids[2]]),
        tt.exits(c, "2.5", 1, 3, pids[3]),
        tt.child_failed(c, "train.py", "gx4", [(3, 3, 1, pids[3])]),
    )


@case(
    "s112", "attribute-error", "software-bug", "fix-and-resubmit",
    source="after the report of ranks that die in a tracker's callback when training starts, because the tracker exists on rank 0 only",
    why="wandb.run is None on ranks 1 to 15 (the tracker is made on rank 0 only) and the callback takes its id: AttributeError on all but rank 0, which then waits and times out.",
    tags="training cascade multi-node", also="type-error", nodes="", gpus=16, mention=["wandb|rank 0|rank zero"], must_not="nccl-timeout connection-error",
)  # fmt: skip
def s112(c: Case) -> None:
    c.start("2025-02-12 04:10:00")
    c.site, c.root = "/opt/rslearn/lib/python3.11/site-packages", "/opt/rslearn_projects"
    logs = [c.file(f"beaker-replica-{n}.log") for n in range(2)]
    logs[0].add(
        pl_head(c, 16, 8, [("model", "SingleTaskModel", "88.0 M"), ("metrics", "MetricCollection", "0")], "88.0 M"),
        "wandb: Currently logged in as: olmoearth. Use `wandb login --relogin` to force relogin",
        "wandb: Tracking run with wandb version 0.19.6",
        "wandb: Syncing run landsat_vessels_512",
    )
    logs[0].add(f"Sanity Checking DataLoader 0: {bar(2, 2, 1.4)}")
    frames = """
        rslp/rslearn_main.py:31 <module> | main()
        $S/lightning/pytorch/trainer/trainer.py:1018 _run | call._call_callback_hooks(self, "on_fit_start")
        $S/lightning/pytorch/trainer/call.py:218 _call_callback_hooks | fn(trainer, trainer.lightning_module, *args, **kwargs)
        rslp/lightning_cli.py:66 on_fit_start | run_id = wandb.run.id"""
    for n, log in enumerate(logs):
        rows = [
            pre(f"[rank{r}]: ", tb(c, frames, "AttributeError: 'NoneType' object has no attribute 'id'"))
            for r in range(n * 8, n * 8 + 8)
            if r
        ]
        log.add(weave(c.rng, rows, 4), e="has no attribute 'id'")
    c.tick(605)
    logs[0].add(tt.watchdog(c, "2.5", 0, 5, "ALLREDUCE", numel=(1, 1)))
