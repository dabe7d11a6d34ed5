"""s137 to s140."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import hf_head, hf_steps, ray_head, warning
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, tb
from synth.slurm_text import head, hosts


@case(
    "s137", "cancelled", "operator-action", "restart fix-and-resubmit",
    source="after the report of a fine-tune that ends with signal 1 when a connection closes",
    why="The launcher got signal 1, SIGHUP: the terminal it ran in went away. Nothing failed before it.",
    tags="misleading interrupted training", also_outcome="failed", nodes="", gpus=4, mention=["sighup|hang up|hangup|signal 1|ssh|terminal"], must_not="native-crash runtime-error host-out-of-memory preempted",
)  # fmt: skip
def s137(c: Case) -> None:
    c.start("2023-07-15 22:31:09")
    c.root, c.site = "/home/wang/ChatGLM2-6B/ptuning", "/home/wang/anaconda3/envs/glm/lib/python3.9/site-packages"
    log = c.file("train.log")
    log.add(
        tt.omp(c, "2.0"),
        hf_head(114599, 3, 4, 4, 4, 6243584000),
        warning(c, 7, "torch/utils/checkpoint.py"),
        warning(c, 6, "torch/optim/lr_scheduler.py"),
    )
    loss = Curve(c, 3.7, 2.1, 220)
    log.add(hf_steps(c, 10, 1600, total=5371, per_epoch=1790, sec=4.4, loss=loss, every=10))
    log.add(
        "Saving PrefixEncoder",
        "Configuration saved in output/checkpoint-1500/config.json",
        "Model weights saved in output/checkpoint-1500/pytorch_model.bin",
    )
    c.tick(12)
    pids = c.pids(4, 8690, 8700)
    log.add("WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers", e=True)
    log.add(
        *[
            f"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process {p} closing signal SIGHUP"
            for p in pids
        ],
        e=True,
    )
    log.add(tb(c, """
        /home/wang/anaconda3/envs/glm/bin/torchrun:8 <module> | sys.exit(main())
        $S/torch/distributed/run.py:794 main | run(args)
        $S/torch/distributed/elastic/agent/server/api.py:868 _invoke_run | time.sleep(monitor_interval)
        $S/torch/distributed/elastic/multiprocessing/api.py:62 _terminate_process_handler | raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
        """, "torch.distributed.elastic.multiprocessing.api.SignalException: Process 8665 got signal: 1"), e="got signal: 1")  # fmt: skip


@case(
    "s138", "healthy", "none", "none",
    source="after the list of lines that are never evidence, and of what classic solvers print when all is well",
    why="The solver reaches its end time, stops with STOP 0 and the job ends with 0. A rejected step, floating-point notes and transport warnings are part of a normal run.",
    tags="healthy misleading multi-node slurm", nodes="",
    scheduler={"JobID": "80944", "State": "COMPLETED", "ExitCode": "0:0", "Elapsed": "02:51:40", "NodeList": "cn[0201-0204]"},
)  # fmt: skip
def s138(c: Case) -> None:
    c.start("2025-06-02 13:10:02")
    names = hosts("cn", 201, 4, 4)
    log, err = c.file("job.out"), c.file("job.err")
    log.add(
        head(c, 80944, names, 64, "seis-elastic", "std", "06:00:00"),
        " SEM3D elastic wave propagation, 256 processes",
        " failed elements in mesh quality check: 0",
        " error tolerance for time integration: 1.0E-06",
    )
    for n in names:
        err.add(
            f"[{c.now.timestamp():.6f}] [{n}:{c.n(10000, 60000)}:0] ucp_context.c:1774 UCX  WARN  UCP version is incompatible, required: 1.15, actual: 1.13 (release 0 /lib64/libucp.so.0)"
        )
    err.add(
        "--------------------------------------------------------------------------",
        "WARNING: No preset parameters were found for the device that Open MPI",
        "detected:",
        "",
        "  Local host:            cn0201",
        "  Device name:           mlx5_0",
        "",
        "Default device parameters will be used, which may result in lower",
        "performance.",
        "--------------------------------------------------------------------------",
    )
    for n in range(1, 700):
        c.tick(14)
        log.add(
            f" step {n * 100:7d} of 70000  t {n * 0.05:9.4f} s  max|u| {c.f(1, 9):.4E}  energy error {c.f(1, 9):.2E}"
        )
        if n % 97 == 0:
            log.add(
                f" step rejected: error estimate {c.f(1.1, 3.9):.2E} above tolerance, dt halved and step repeated",
                f" WARNING: absorbing boundary instability check failed at {c.n(1, 9)} of 4096 points, damping increased",
            )
    log.add(" simulation reached t_end", " wall time per step 0.1402 s, 0 errors, 14 warnings", f" end of run {c.t()}")
    err.add(
        "Note: The following floating-point exceptions are signalling: IEEE_INVALID_FLAG IEEE_DIVIDE_BY_ZERO IEEE_UNDERFLOW_FLAG IEEE_DENORMAL",
        "STOP 0",
    )


@case(
    "s139", "healthy", "none", "none",
    source="after the notes on trainers that lose a worker, restore from a checkpoint by themselves and finish",
    why="One node went away at iteration 41; the trainer restored from checkpoint 40 on a spare node and finished all 80 iterations. The job as a whole succeeded.",
    tags="healthy misleading multi-node", nodes="", gpus=16,
)  # fmt: skip
def s139(c: Case) -> None:
    c.start("2025-04-03 09:00:44")
    c.root, c.site = "/home/ray/app", "/home/ray/anaconda3/lib/python3.10/site-packages"
    log = c.file("tune.log")
    ips = ["172.31.4.10", "172.31.4.11", "172.31.4.19", "172.31.4.23"]
    loss = Curve(c, 1.6, 0.7, 30)

    def rounds(first: int, last: int, pid: int) -> None:
        for i in range(first, last + 1):
            c.tick(55)
            log.add(
                f"(RayTrainWorker pid={pid}, ip={ips[0]}) iteration {i}/80 train_loss {loss(i):.4f} val_error {loss(i) / 4:.4f}"
            )
            if i % 5 == 0:
                log.add(
                    f"(RayTrainWorker pid={pid}, ip={ips[0]}) Checkpoint successfully created at: Checkpoint(filesystem=s3, path=exp/TorchTrainer_41f/checkpoint_{i:06d})"
                )

    log.add(ray_head(c, ips[0], [(c.n(1000, 9000), ips[r // 4], r) for r in range(16)]))
    rounds(1, 41, 4411)
    c.tick(20)
    log.add(
        f"(raylet) The node with node id: {c.hex(56)} and address: 172.31.4.19 and node name: 172.31.4.19 has been marked dead because the detector has missed too many heartbeats from it. This can happen when a \t(1) raylet crashes unexpectedly (OOM, etc.) ",
        "\t(2) raylet has lagging heartbeats due to slow network or busy workload.",
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tERROR tune_controller.py:1331 -- Trial task failed for trial TorchTrainer_41f_00000",
        tb(
            c,
            "$S/ray/air/execution/_internal/event_manager.py:110 resolve_future | result = ray.get(future)",
            [
                "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
                "The actor is dead because its node has died. Node Id: " + c.hex(56),
            ],
        ),
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tINFO tune_controller.py:1020 -- Restoring trial TorchTrainer_41f_00000 from checkpoint_000040, failure 1 of max_failures=3",
    )
    c.tick(90)
    ips[2] = "172.31.4.40"
    log.add(ray_head(c, ips[0], [(c.n(1000, 9000), ips[r // 4], r) for r in range(16)]))
    rounds(41, 80, 7730)
    log.add(
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tINFO tune.py:1041 -- Total run time: 5190.11 seconds (5188.02 seconds for the tuning loop).",
        "Training completed after 80 iterations. Number of errored trials: 0", f"Result(metrics={{'train_loss': {loss(80):.4f}, 'training_iteration': 80}}, path='exp/TorchTrainer_41f')",
        "job 'raysubmit_Vx81kQ' succeeded",
    )  # fmt: skip


@case(
    "s140", "healthy", "none", "none",
    source="after the notes on planned exits, on row remaps that a job outlives, and on noise at teardown",
    why="The run saves its checkpoint and leaves by its own rule (exit duration); the row remap, the corrected link errors and the closed connections cost nothing.",
    tags="healthy misleading multi-node kernel slurm", nodes="", gpus=32,
    scheduler={"JobID": "402276", "State": "COMPLETED", "ExitCode": "0:0", "Elapsed": "03:50:21", "NodeList": "p5-[11-14]"},
)  # fmt: skip
def s140(c: Case) -> None:
    c.start("2025-07-07 00:14:08")
    c.root = "/workspace/Megatron-LM"
    names = hosts("p5-", 11, 4, 2)
    log, dm = c.file("gpt-402276.out"), c.file("dmesg/p5-13.txt")
    k = Kernel(c)
    log.add(
        head(c, 402276, names, 8, "gpt-8b", "h100", "04:00:00"),
        nccl.init(c, names, 8, "2.21.5", "12.4", rings=False),
        mg.arguments({"exit_duration_in_mins": "225", "rerun_mode": "validate_results"}),
    )
    log.add(
        mg.startup(
            c, tp=4, pp=1, params=2009088000, micro=8, vocab=128256, data="/fsx/tok/dclm", load="/fsx/ckpt/8b", at=30000
        )
    )
    loss = Curve(c, 6.0, 1.9, 9000)
    log.add(mg.steps(c, 30001, 31000, total=200000, gbs=1024, sec=6.6, loss=loss, every=5))
    log.add(mg.saved(c, 31000, "/fsx/ckpt/8b"))
    dm.add(chatter(c, k, 30, 7000))
    dm.add(
        k(
            "NVRM: Xid (PCI:0000:ab:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate."
        ),
        k("pcieport 0000:a0:01.0: AER: Multiple Corrected error received: 0000:a0:01.0"),
        k("pcieport 0000:a0:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"),
        k(
            "EDAC MC3: 1 CE memory read error on CPU_SrcID#1_MC#1_Chan#0_DIMM#0 (channel:0 slot:0 page:0x7c1f2a offset:0x880 grain:32 syndrome:0x0)"
        ),
    )
    log.add(
        mg.steps(c, 31001, 31980, total=200000, gbs=1024, sec=6.6, loss=loss, every=5),
        mg.saved(c, 31980, "/fsx/ckpt/8b"),
    )
    log.add(f"[exiting program after 225.0{c.n(1, 9)} minutes] datetime: {c.t()} ")
    for i in range(0, 32, 3):
        log.add(
            f"{names[i // 8]}:{c.n(20000, 60000)}:{c.n(20000, 60000)} [{i % 8}] NCCL INFO [Service thread] Connection closed by localRank {c.n(0, 7)}"
        )
    log.add(
        "[rank0]:[W ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL. On normal program exit, the application should call destroy_process_group to ensure that any pending NCCL operations have finished in this process.",
        f"{names[1]}:{c.n(20000, 60000)}:{c.n(20000, 60000)} [3] proxy.cc:1523 NCCL WARN [Service thread] Accept failed Resource temporarily unavailable",
        "srun finished with exit code 0", f"END {c.t('%a %b %d %H:%M:%S UTC %Y')}",
    )  # fmt: skip
