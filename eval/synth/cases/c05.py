"""s021 to s025."""

from __future__ import annotations

from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import pl_steps
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts, sacct


@case(
    "s021", "healthy", "none", "none",
    source="the output of a distributed library's own test suite, which provokes time-outs, aborts and lost peers on purpose, and passes",
    why="All frightening lines are captured output of tests that provoke them; the summary counts 212 passed, 9 skipped, 3 expected failures and the command ends with 0.",
    tags="healthy", nodes="", gpus=8,
)  # fmt: skip
def s021(c: Case) -> None:
    c.start("2025-05-07 06:40:12")
    c.site, c.root = "/opt/py311/lib/python3.11/site-packages", "/builds/infra/elastic-comm"
    log = c.file("job-8813205.txt")
    log.add("+ nvidia-smi -L", *[f"GPU {i}: NVIDIA A10G (UUID: GPU-{c.hex(8)}-{c.hex(4)}-{c.hex(4)}-{c.hex(4)}-{c.hex(12)})" for i in range(8)], "+ python -m pytest -rA -x tests/gpu --forked", "=" * 29 + " test session starts " + "=" * 30,
            "platform linux -- Python 3.11.9, pytest-8.2.2, pluggy-1.5.0", "rootdir: /builds/infra/elastic-comm", "plugins: forked-1.6.0, timeout-2.3.1, xdist-3.6.1", "collected 224 items", "")  # fmt: skip
    words = [
        "allreduce",
        "allgather_uneven",
        "reduce_scatter",
        "broadcast_object",
        "barrier",
        "sendrecv_ring",
        "store_prefix",
        "subgroup_split",
        "coalesced",
        "fp8_quant",
        "lazy_init",
        "bucket_rebuild",
    ]
    done = 0
    for f in (
        "test_collectives",
        "test_store",
        "test_recovery",
        "test_watchdog",
        "test_flight_recorder",
        "test_membership",
    ):
        for i in range(36 if f != "test_membership" else 32):
            c.tick(0.4, 6)
            done += 1
            kind = (
                "SKIPPED (needs NVLink)"
                if done % 25 == 3
                else "XFAIL (known: slow on A10G)"
                if done % 80 == 41
                else "PASSED"
            )
            log.add(
                f"tests/gpu/{f}.py::test_{c.rng.choice(words)}[{c.rng.choice(['nccl', 'gloo'])}-{c.rng.choice([2, 4, 8])}-{i}] {kind}".ljust(
                    96
                )
                + f"[{done * 100 // 212 if done < 212 else 100:3d}%]"
            )
    log.add("", "=" * 36 + " PASSES " + "=" * 36)
    for name, rows in (
        ("test_watchdog_takes_process_down[nccl-4]", tt.watchdog(c, "2.5", 2, 17, "ALLREDUCE", numel=(1024, 1024), limit=2000)),
        ("test_peer_killed_is_noticed[nccl-8]", ["srun-like parent: sending SIGKILL to rank 5 (pid 4411)", *[f"[rank{r}]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error" for r in (0, 3, 6, 7)]]),
        ("test_store_port_in_use[gloo-2]", ["[W507 06:44:51.338 socket.cpp:464] [c10d] The server socket has failed to bind to [::]:29511 (errno: 98 - Address already in use).", "RuntimeError: The server socket has failed to listen on any local network address."]),
        ("test_oom_is_reported[nccl-2]", [tt.oom("2.5", 1, "512.00 GiB", "22.07 GiB", "21.40 GiB", "0.66 GiB", "0.12 GiB", "0.01 GiB")]),
        ("test_agent_summary[gloo-4]", tt.child_failed(c, "fixtures/exits_with_3.py", "runner-a10g-02", [(1, 1, 3, 4502)])),
    ):  # fmt: skip
        log.add(f"{'_' * 12} {name} {'_' * 12}", "-" * 29 + " Captured stderr call " + "-" * 29, rows)
    log.add("=" * 27 + " short test summary info " + "=" * 28, *[f"PASSED tests/gpu/test_recovery.py::test_{w}[nccl-8-{i}]" for i, w in enumerate(words)],
            "=" * 14 + " 212 passed, 9 skipped, 3 xfailed, 41 warnings in 724.18s (0:12:04) " + "=" * 14, "+ rc=0", "+ echo 'gpu tests rc=0'", "gpu tests rc=0", "Uploading artifacts for successful job", "Job succeeded")  # fmt: skip


@case(
    "s022", "collective-mismatch", "software-bug", "fix-and-resubmit",
    source="after the report of a segmentation training whose tracker hook does extra collective work on the master rank",
    why="At the time-out rank 0 stands at sequence number 7559 while the other seven stand at 7561: it is two collectives behind, after an image-logging hook that runs on the master only. The fabric did nothing wrong.",
    tags="misleading training hang", also="nccl-timeout", also_cls="config-error", nodes="", ranks="0", gpus=8, mention=["rank 0|hook|sequence|mismatch|two collectives|out of step"], must_not="network-error",
)  # fmt: skip
def s022(c: Case) -> None:
    c.start("2022-10-04 09:12:47")
    c.site = "/opt/conda/lib/python3.8/site-packages"
    log = c.file("20221004_091247.log")
    stamp = lambda: c.t("%Y-%m-%d %H:%M:%S,%f3")  # noqa: E731
    log.add(f"{stamp()} - mmseg - INFO - Distributed training: True", f"{stamp()} - mmseg - INFO - Set random seed to 1811739242, deterministic: False", f"{stamp()} - mmseg - INFO - Hooks will be executed in the following order:", "before_run:",
            "(VERY_HIGH   ) PolyLrUpdaterHook                  ", "(NORMAL      ) CheckpointHook                     ", "(LOW         ) DistEvalHook                       ", "(VERY_LOW    ) TextLoggerHook                     ", "(VERY_LOW    ) MMSegWandbHook                     ",
            " -------------------- ", "after_train_iter:", "(ABOVE_NORMAL) OptimizerHook                      ", "(NORMAL      ) CheckpointHook                     ", "(LOW         ) IterTimerHook                      ", "(LOW         ) DistEvalHook                       ",
            "(VERY_LOW    ) TextLoggerHook                     ", "(VERY_LOW    ) MMSegWandbHook                     ", " -------------------- ")  # fmt: skip
    loss = Curve(c, 3.2, 0.5, 500)
    for it in range(50, 4001, 50):
        c.tick(29, 31)
        log.add(
            f"{stamp()} - mmseg - INFO - Iter [{it}/160000]\tlr: {6e-5:.3e}, eta: 1 day, {c.n(1, 3)}:{c.n(10, 59)}:{c.n(10, 59)}, time: {c.jitter(0.6):.3f}, data_time: {c.f(0.01, 0.03):.3f}, memory: 21030, decode.loss_ce: {loss(it):.4f}, decode.acc_seg: {c.f(70, 90):.4f}, loss: {loss(it):.4f}"
        )
    log.add(
        f"{stamp()} - mmseg - INFO - Saving checkpoint at 4000 iterations",
        *[
            f"[{'>' * (k // 4)}{' ' * (50 - k // 4)}] {k * 10}/2000, {c.f(24, 27):.1f} task/s, elapsed: {k // 2}s, ETA: {100 - k // 2:5d}s"
            for k in range(4, 201, 4)
        ],
    )
    log.add(
        f"{stamp()} - mmseg - INFO - Iter(val) [250]\taAcc: 0.8114, mIoU: 0.4107, mAcc: 0.5290",
        "wandb: logging 100 evaluation images with predicted masks from the master process",
    )
    c.tick(1806)
    rows = [
        tt.watchdog(
            c, "1.12", r, 7559 if r == 0 else 7561, "_ALLGATHER_BASE", limit=1800000, ran=1800000 + c.n(900, 9000)
        )
        for r in c.rng.sample(range(8), 8)
    ]
    log.add(weave(c.rng, rows, 2), e="Watchdog caught collective operation timeout: WorkNCCL(SeqNum=75")
    pids = c.pids(8, 2200)
    log.add(
        tt.sigterm(c, "1.12", pids[1:]),
        tt.exits(c, "1.12", -6, 0, pids[0]),
        tt.child_failed(c, "tools/train.py", "8a1d3c07b2f4", [(0, 0, -6, pids[0])]),
    )


@case(
    "s023", "gpu-lost", "dependency-failure", "escalate restart-excluding",
    source="after the report of a GPU that stops answering under load with GSP time-outs; the job's log shows a launch failure and collective time-outs",
    why="The kernel log of nv-22 has Xid 119 (GSP RPC timeout) for 0000:4f:00.0 ten minutes before the watchdogs; rank 13 sits there and is the only rank without a watchdog line of its own.",
    tags="misleading hardware kernel multi-file multi-node", also="cuda-error node-failure", also_cls="hardware-failure", nodes="nv-22", ranks="13", gpus=24, mention=["gsp|xid 119"], must_not="nccl-timeout network-error collective-mismatch",
)  # fmt: skip
def s023(c: Case) -> None:
    c.start("2023-12-29 01:30:00")
    c.site = "/opt/venv/lib/python3.10/site-packages"
    names = ["nv-21", "nv-22", "nv-23"]
    log = c.file("lightning_logs.out")
    log.add(nccl.init(c, names, 8, "2.18.6", "12.1", net="RoCE", ifname="ens7", channels=2))
    loss = Curve(c, 0.88, 0.24, 900)
    for epoch in range(4):
        log.add(pl_steps(c, epoch, 3000, sec=0.42, loss=loss, every=25, name="train/mse"))
        log.add(
            f"Epoch {epoch}, global step {epoch * 3000 + 3000}: 'val/rmse' reached {loss(epoch * 3000):.5f} (best {loss(epoch * 3000):.5f}), saving model to '/ckpt/dyffusion/{epoch:02d}.ckpt' as top 2"
        )
    log.add(pl_steps(c, 4, 3000, sec=0.42, loss=loss, every=25, last=1225, name="train/mse"))
    k = Kernel(c, "nv-22")
    dm = c.file("nv-22.dmesg")
    dm.add(chatter(c, k, 90, 500000))
    dm.add(
        k("NVRM: GPU at PCI:0000:4f:00: GPU-5f0c1d7e-93b6-0b11-9a0c-2d61ce80a4f1"),
        k(
            "NVRM: Xid (PCI:0000:4f:00): 119, pid=1884210, name=python, Timeout after 45s of waiting for RPC response from GPU5 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8)."
        ),
        e="119",
    )
    for i in range(5):
        dm.add(
            k(
                f"NVRM: Xid (PCI:0000:4f:00): 119, pid=1884210, name=python, Timeout after {6 if i else 45}s of waiting for RPC response from GPU5 GSP! Expected function 76 (GSP_RM_CONTROL) (0x{c.hex(8)} 0x{c.hex(3)}).",
                ago=-45.0 * (i + 1),
            )
        )
    dm.add(
        k(
            "NVRM: Xid (PCI:0000:4f:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            ago=-280,
        )
    )
    other = c.file("nv-23.dmesg")
    other.add(chatter(c, Kernel(c, "nv-23"), 60, 400000))
    c.tick(602)
    log.add(
        weave(
            c.rng,
            [
                tt.watchdog(c, "2.2", r, 26451, "ALLREDUCE", numel=(25557032, 25557032))
                for r in c.rng.sample([r for r in range(24) if r != 13], 23)
            ],
            4,
        )
    )
    c.tick(30)
    log.add("Error: rank 13 (nv-22, local 5) did not answer the shutdown request within 30 s", e=True)
    log.add(*[f"[{names[r // 8]}] rank {r} exited with -6" for r in range(24) if r != 13])


@case(
    "s024", "disk-full", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a quota error that concerns the kernel cache in the home folder while the run's folder on scratch is nearly empty",
    why="The write that fails is Triton's cache under /home/b.okafor (quota full), seen in the last frames; scratch has 41 TB free. The compile error wrapper and the agents' lines are louder.",
    tags="misleading storage slurm", also="os-error", also_cls="config-error", nodes="", gpus=8, mention=["triton|home|cache", "quota"], must_not="runtime-error permission-error",
)  # fmt: skip
def s024(c: Case) -> None:
    c.start("2025-02-11 20:05:31")
    c.site, c.root = "/scratch/b.okafor/envs/mamba/lib/python3.11/site-packages", "/scratch/b.okafor/mamba-lm"
    log = c.file("run_0211.log")
    log.add(
        "$ df -h /scratch/b.okafor",
        "Filesystem                 Size  Used Avail Use% Mounted on",
        "10.12.0.1@o2ib:/scratch    1.2P  1.1P   41T  97% /scratch",
        "HF_HOME=/scratch/b.okafor/hf",
        "TORCHINDUCTOR_CACHE_DIR=/scratch/b.okafor/inductor",
        tt.omp(c, "2.6"),
    )
    log.add(
        weave(
            c.rng,
            [
                [
                    f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}][mamba_lm][INFO] - rank {r}: mamba2-1.3b, chunk 256, seq 4096",
                    f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}][mamba_lm][INFO] - rank {r}: autotuning _chunk_scan_fwd_kernel (48 configurations)",
                ]
                for r in range(8)
            ],
        )
    )
    c.tick(40)
    rows = []
    for r in c.rng.sample(range(8), 8):
        h = c.hex(52).upper()
        rows.append(pre(f"[rank{r}]: ", tb(c, """
            train.py:240 <module> | main()
            train.py:202 main | out = model(ids)
            $S/mamba_ssm/modules/mamba2.py:244 forward | y = mamba_chunk_scan_combined(
            $S/mamba_ssm/ops/triton/ssd_combined.py:560 mamba_chunk_scan_combined | return MambaChunkScanCombinedFn.apply(x, dt, A, B, C, chunk_size, D, z, dt_bias, initial_states)
            $S/triton/runtime/autotuner.py:166 _bench | return self.do_bench(kernel_call, quantiles=(0.5, 0.2, 0.8))
            $S/triton/compiler/compiler.py:297 compile | metadata_group[ir_filename] = fn_cache_manager.put(next_module, ir_filename)
            $S/triton/runtime/cache.py:116 put | with open(temp_path, mode) as f:
            """, f"OSError: [Errno 122] Disk quota exceeded: '/home/b.okafor/.triton/cache/{h}/tmp.pid_{c.n(90000, 99999)}_{c.hex(8)}/_chunk_scan_fwd_kernel.ttgir'")))  # fmt: skip
    log.add(weave(c.rng, rows, 11), e="Disk quota exceeded")
    pids = c.pids(8, 611000)
    log.add(
        tt.sigterm(c, "2.6", pids[2:]),
        tt.exits(c, "2.6", 1, 0, pids[0]),
        tt.child_failed(c, "train.py", "gn-0310", [(0, 0, 1, pids[0]), (1, 1, 1, pids[1])]),
        "srun: error: gn-0310: task 0: Exited with exit code 1",
    )


@case(
    "s025", "cancelled", "operator-action", "none restart",
    source="a healthy run that its owner cancelled; the ranks die loudly and a device's context error is printed on the way out",
    why="The step was cancelled by scancel (no reason in slurmstepd's line, sacct: CANCELLED by 30412) while the loss went on falling; all errors come after it.",
    tags="misleading interrupted scheduler slurm multi-node", nodes="", gpus=32, must_not="time-limit preempted nccl-timeout node-failure cuda-error",
    scheduler={"JobID": "7120077", "State": "CANCELLED by 30412", "ExitCode": "0:0"},
)  # fmt: skip
def s025(c: Case) -> None:
    c.start("2024-09-05 10:10:10")
    names = hosts("a", 901, 4, 4)
    log = c.file("fairseq_7120077.log")
    log.add(f"{c.t()} | INFO | fairseq.distributed.utils | distributed init (rank 0): tcp://a0901:14021", *[f"{c.t()} | INFO | fairseq.distributed.utils | initialized host {names[r // 8]} as rank {r}" for r in c.rng.sample(range(32), 32)],
            f"{c.t()} | INFO | fairseq_cli.train | task: HubertPretrainingTask", f"{c.t()} | INFO | fairseq_cli.train | num. shared model params: 964,320,000 (num. trained: 964,320,000)")  # fmt: skip
    loss = Curve(c, 6.7, 2.9, 6000)
    for up in range(200, 48200, 200):
        c.tick(128, 131)
        log.add(f"{c.t()} | INFO | train_inner | {{\"epoch\": {1 + up // 4100}, \"update\": {up / 4100:.3f}, \"loss\": \"{loss(up):.3f}\", \"ntokens\": \"{c.jitter(610000, 0.01):.1f}\", \"wps\": \"{c.jitter(94000):.0f}\", \"ups\": \"1.54\", \"num_updates\": \"{up}\", "
                f"\"lr\": \"{min(3e-3, up * 1e-7):.6g}\", \"gnorm\": \"{c.jitter(0.51, 0.1):.3f}\", \"loss_scale\": \"{2 ** c.n(0, 3)}\", \"train_wall\": \"{c.f(125, 129):.0f}\", \"gb_free\": \"21.2\", \"wall\": \"{up * 0.65:.0f}\"}}")  # fmt: skip
        if up % 2600 == 0:
            log.add(
                f"{c.t()} | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 1.0",
                f"{c.t()} | INFO | fairseq.trainer | Saving checkpoint to /flash/hubert_xl/checkpoint_last.pt",
            )
    c.tick(71)
    log.add(f"slurmstepd: error: *** STEP 7120077.0 ON a0901 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***", e=True)
    log.add(
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        f"slurmstepd: error: *** JOB 7120077 ON a0901 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***",
    )
    c.site = "/appl/soft/fairseq/lib/python3.9/site-packages"
    streams = [tb(c, "$S/fairseq_cli/train.py:574 <module> | cli_main()\n$S/fairseq_cli/train.py:205 main | valid_losses, should_stop = train(cfg, trainer, task, epoch_itr)\n$S/fairseq/trainer.py:871 train_step | grad_norm = self.clip_grad_norm(self.cfg.optimization.clip_norm)", e)
               for e in ("KeyboardInterrupt", "RuntimeError: CUDA error: driver shutting down", "RuntimeError: [Rank 11] NCCL communicator was aborted on rank 11.", "KeyboardInterrupt")]  # fmt: skip
    log.add(
        weave(c.rng, streams, 4),
        "terminate called after throwing an instance of 'c10::CUDAError'",
        "  what():  CUDA error: driver shutting down",
    )
    log.add(
        sacct(
            "JobID|State|ExitCode|Elapsed",
            ["7120077|CANCELLED by 30412|0:0|08:41:52", "7120077.0|CANCELLED by 30412|0:15|08:41:47"],
        ),
        e="7120077 CANCELLED by",
    )
