"""s073 to s076."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import ray_head
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import binds, head, hosts


@case(
    "s073", "collective-mismatch", "software-bug", "fix-and-resubmit",
    source="after the report of a second training stage that never starts after early stopping on several GPUs",
    why="Two ranks stop early (patience reached) and enter the checkpoint's all-gather while six go on with the all-reduce of the epoch: the fingerprint check names both. The stop decision is not shared among ranks.",
    tags="misleading slurm hang", also="nccl-timeout runtime-error", nodes="", ranks="2 7", gpus=8, mention=["early stop|patience|mismatch|stop"], must_not="network-error gpu-lost",
)  # fmt: skip
def s073(c: Case) -> None:
    c.start("2026-01-05 08:44:10")
    c.site, c.root = "/home/kp/mace-env/lib/python3.12/site-packages", "/home/kp/mace"
    log = c.file("mace_perov_run-7.log")
    log.add(
        head(c, 7704, ["k-gpu3"], 8, "mace-perov", "gpu", "24:00:00"),
        binds(c, ["k-gpu3"], 8),
        "TORCH_DISTRIBUTED_DEBUG=DETAIL",
    )
    st = lambda: c.t("%Y-%m-%d %H:%M:%S.%f3")  # noqa: E731
    log.add(
        f"{st()} INFO: ===========VERIFYING SETTINGS===========",
        f"{st()} INFO: MACE version: 0.3.14",
        f"{st()} INFO: Using gradient clipping with tolerance=10.000",
        f"{st()} INFO: stage one early stopping patience 25, stage two (SWA) from the best of stage one",
    )
    loss = Curve(c, 2.2, 0.02, 12)
    for e in range(96):
        c.tick(170, 180)
        log.add(
            f"{st()} INFO: Epoch {e}: head: default, loss={loss(e):11.8f}, RMSE_E_per_atom={loss(e) * 80:8.2f} meV, RMSE_F={loss(e) * 300:8.2f} meV / A"
        )
    log.add(
        f"[2] {st()} INFO: Stopping optimization after 25 epochs without improvement",
        f"[7] {st()} INFO: Stopping optimization after 25 epochs without improvement",
        f"[2] {st()} INFO: Training complete",
        f"[7] {st()} INFO: Training complete",
        e=True,
    )
    c.tick(12)
    text = ("RuntimeError: Detected mismatch between collectives on ranks. Rank {a} is running collective: CollectiveFingerPrint(SequenceNumber=633704, OpType={x}, TensorShape=[{n}], TensorDtypes={d}, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), requires_grad=false (default), "
            "pinned_memory=false (default), memory_format=(nullopt))), but Rank {b} is running collective: CollectiveFingerPrint(SequenceNumber=633704, OpType={y}, TensorShape=[{m}], TensorDtypes={f}).Collectives differ in the following aspects:  Op type: {x}vs {y}")  # fmt: skip
    rows = []
    for r in range(8):
        early = r in (2, 7)
        err = text.format(
            a=r,
            b=0 if early else 2,
            x="ALLGATHER" if early else "ALLREDUCE",
            y="ALLREDUCE" if early else "ALLGATHER",
            n=1 if early else 4713984,
            m=4713984 if early else 1,
            d="Long" if early else "Double",
            f="Double" if early else "Long",
        )
        where = (
            "mace/tools/checkpoint.py:212 load_latest | objs = gather_paths(path)"
            if early
            else "mace/tools/train.py:431 take_step | loss.backward()"
        )
        rows.append(
            pre(
                f"[rank{r}]: ",
                tb(
                    c,
                    f"mace/cli/run_train.py:1014 <module> | main()\n{where}\n$S/torch/distributed/distributed_c10d.py:2810 wrapper | work = group._collective(opts)",
                    err,
                ),
            )
        )
    log.add(weave(c.rng, rows, 4), e="Detected mismatch between collectives")
    c.tick(600)
    log.add(
        weave(c.rng, [tt.watchdog(c, "2.5", r, 372981, "ALLREDUCE", numel=(1, 1)) for r in (0, 1, 3)], 3),
        "srun: error: k-gpu3: tasks 0-7: Exited with exit code 1",
    )


@case(
    "s074", "cuda-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of an unhandled CUDA error across a Ray cluster that ended when one bad instance was removed",
    why="The first words come from 10.0.3.77 (its driver answers 'unknown error' to the first CUDA call inside NCCL, and its device query failed at start); Ray's '[repeated 6x across cluster]' hides that only that address printed it first.",
    tags="misleading cascade hardware multi-node", also="node-failure gpu-lost nccl-remote-error", also_cls="unknown", nodes="10.0.3.77", gpus=16, mention=["10.0.3.77"], must_not="network-error out-of-memory",
)  # fmt: skip
def s074(c: Case) -> None:
    c.start("2024-08-27 19:20:12")
    c.site = "/home/ray/anaconda3/lib/python3.10/site-packages"
    log = c.file("ray-job-submit.txt")
    ips = ["10.0.3.12", "10.0.3.41", "10.0.3.77", "10.0.3.90"]
    actors = [(1800 + r % 4 + 7 * (r // 4), ips[r // 4], r) for r in range(16)]
    log.add(ray_head(c, "10.0.3.12", actors))
    log.add(
        f"(RayTrainWorker pid=1814, ip=10.0.3.77) {c.site}/torch/cuda/__init__.py:654: UserWarning: Can't initialize NVML",
        '(RayTrainWorker pid=1814, ip=10.0.3.77)   warnings.warn("Can\'t initialize NVML")',
        e="Can't initialize NVML",
    )
    log.add(
        *[
            f"(RayTrainWorker pid={p}, ip={ip}) Moving model to device: cuda:{r % 4}"
            for p, ip, r in actors
            if ip != "10.0.3.77"
        ],
        "(RayTrainWorker pid=1801, ip=10.0.3.12) Wrapping provided model in DistributedDataParallel. [repeated 11x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html#log-deduplication for more options.)",
    )
    c.tick(11)
    log.add(
        "(RayTrainWorker pid=1815, ip=10.0.3.77) ip-10-0-3-77:1815:2240 [1] init.cc:1722 NCCL WARN Cuda failure 999 'unknown error'",
        "(RayTrainWorker pid=1815, ip=10.0.3.77) ip-10-0-3-77:1815:2240 [1] NCCL INFO init.cc:1755 -> 1",
        e="Cuda failure 999",
    )
    c.tick(1)
    log.add(pre("(RayTrainWorker pid=1808, ip=10.0.3.41) ", tb(c, "$S/ray/train/_internal/utils.py:176 discard_return_wrapper | train_func(*args, **kwargs)\n/tmp/ray/session/runtime_resources/working_dir_files/_ray_pkg_19/tune_llm.py:88 train_func | model = ray.train.torch.prepare_model(model)\n$S/torch/nn/parallel/distributed.py:827 __init__ | _sync_module_states(",
        ["torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5", "ncclUnhandledCudaError: Call to CUDA function failed.", "Last error:", "Cuda failure 999 'unknown error'"])),
        "(RayTrainWorker pid=1802, ip=10.0.3.12) RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details) [repeated 6x across cluster]", "(raylet, ip=10.0.3.90) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker.",
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tERROR tune_controller.py:1331 -- Trial task failed for trial TorchTrainer_{c.hex(5)}_00000", "ray.exceptions.RayTaskError(DistBackendError): ray::_Inner.train() (pid=9901, ip=10.0.3.12, actor_id=%s, repr=TorchTrainer)".replace("%s", c.hex(32)),
        "ray.train.base_trainer.TrainingFailedError: The Ray Train run failed. Please inspect the previous error messages for a cause. After fixing the issue (assuming that the error is not caused by your own application logic, but rather an error such as OOM), you can restart the run from scratch or continue this run.")  # fmt: skip


@case(
    "s075", "connection-error", "config-error", "fix-and-resubmit restart",
    source="after the report of an accelerator job that says 'Getting socket times out' two minutes after one rank could not listen on its port",
    why="The earliest error is rank 4's listen failure on port 16666 (used by another process on 172.22.8.14); the socket time-outs of ranks 5, 6 and 12 come exactly 120 s later.",
    tags="misleading network cascade", also="os-error launch-failure", nodes="", ranks="4", gpus=16, mention=["16666|port"], must_not="network-error nccl-timeout node-failure",
)  # fmt: skip
def s075(c: Case) -> None:
    c.start("2025-07-23 03:46:20")
    c.site, c.root = "/usr/local/python3.10/lib/python3.10/site-packages", "/home/ma-user/modellink"
    log = c.file("worker0-npu.log")
    st = lambda: c.t("%Y-%m-%d-%H:%M:%S.%f3") + f".{c.n(100, 999)}"  # noqa: E731
    log.add(
        *[
            f"[{c.t('%Y-%m-%d %H:%M:%S')}] rank {r} npu {r % 8} HCCL_CONNECT_TIMEOUT=120 HCCL_EXEC_TIMEOUT=1800"
            for r in range(16)
        ],
        "[W compiler_depend.ts:623] Warning: NPU warning, op_plugin warning: expandable segments is on",
        "> initialized tensor model parallel with size 8",
        "> initialized pipeline model parallel with size 2",
    )
    c.tick(60)
    h = lambda r, rest: f"[rank{r}] [ERROR] HCCL({2717284 + r},python3):{st()} {rest}"  # noqa: E731
    log.add(
        h(
            4,
            f"[hccl_socket.cc:100] [{2717284 + 4}][HcclSocket][Listen] socket type[1], listen on ip[172.22.8.14] and specific port[16666] fail. Please check the port status and whether the port is been using by other process.",
        ),
        e=True,
    )
    log.add(
        h(4, f"[hccl_socket_manager.cc:54] [{2717288}][ServerInit]call trace: hcclRet -> 19"),
        h(4, "[hccl_communicator.cc:2307] [2717288][InitNic]call trace: hcclRet -> 19"),
    )
    c.tick(120.1)
    rows = []
    for r in (5, 6, 12):
        rows.append([h(r, f"[hccl_socket_manager.cc:778] [{2734000 + r}][Wait][LinkEstablish]wait socket establish timeout, role[1] rank[4] timeout[120]"), h(r, f"[hccl_socket_manager.cc:830] [{2734000 + r}][Wait][LinksEstablishCompleted] is failed. ret[9]."), h(r, f"[hccl_socket_manager.cc:591] [{2734000 + r}]   _________________________LINK_ERROR_INFO___________________________"),
                     h(r, f"[hccl_socket_manager.cc:592] [{2734000 + r}]   |  comm error, device[{r % 8}]"), *pre(f"[rank{r}]: ", tb(c, "pretrain_gpt.py:201 <module> | main()\nmegatron/training/initialize.py:310 _initialize_distributed | torch.distributed.barrier()",
                     ["RuntimeError: createHCCLComm:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:1196 HCCL function error: HcclCommInitRootInfo(numRanks, &rootInfo, rank, hcclComm), error code is 9", f"[ERROR] 2025-07-23-03:49:2{r % 9} (PID:{2717284 + r}, Device:{r % 8}, RankID:{r}) ERR02200 DIST call hccl api failed.",
                      f"EI0006: [PID: {2717284 + r}] {st()} Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the rank being stuck"]))])  # fmt: skip
    log.add(weave(c.rng, rows, 4))
    pids = list(range(2717284, 2717292))
    log.add(
        tt.sigterm(c, "2.1", pids[:4]),
        tt.exits(c, "2.1", 1, 5, pids[5]),
        tt.child_failed(c, "pretrain_gpt.py", "worker0", [(5, 5, 1, pids[5]), (6, 6, 1, pids[6])]),
    )


@case(
    "s076", "syntax-error", "config-error", "fix-and-resubmit",
    source="after the report of a script with f-strings that an interpreter of version 3.5 cannot parse",
    why="All sixteen ranks stop at the same f-string: the batch job loaded Python 3.5 (its first lines), f-strings need 3.6.",
    tags="slurm cascade multi-node", also="version-mismatch", also_cls="dependency-failure operator-action software-bug", nodes="", gpus=16, mention=["python|3.5|f-string"], must_not="called-process-error",
)  # fmt: skip
def s076(c: Case) -> None:
    c.start("2019-11-14 11:05:05")
    log, names = c.file("unet.o18821"), hosts("tux", 7, 4, 2)
    log.add(
        "Loading python/3.5.2",
        "Loading cuda/10.1",
        "Loading nccl/2.4.8",
        "Python 3.5.2",
        *[f"{n}: 4 x Tesla V100-SXM2-16GB, driver 418.87.01" for n in names],
    )
    row = "    writer = SummaryWriter(comment=f'LR_{lr}_BS_{batch_size}_SCALE_{img_scale}_FOLD_{fold}')"
    log.add(
        weave(
            c.rng,
            [
                pre(
                    f"{r:2d}: ",
                    ['  File "train.py", line 52', row, " " * (len(row) - 1) + "^", "SyntaxError: invalid syntax"],
                )
                for r in range(16)
            ],
            4,
        ),
        e="SyntaxError",
    )
    log.add(
        *[f"srun: error: {n}: tasks {i * 4}-{i * 4 + 3}: Exited with exit code 1" for i, n in enumerate(names)],
        "srun: Terminating job step 18821.0",
        "slurmstepd: error: *** STEP 18821.0 ON tux07 CANCELLED AT 2019-11-14T11:05:12 ***",
    )
