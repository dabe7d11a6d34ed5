"""s065 to s068."""

from __future__ import annotations

from synth import megatron as mg
from synth.frameworks import hf_head, hf_steps
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave


@case(
    "s065", "connection-error", "config-error", "fix-and-resubmit restart",
    source="after the report of a heartbeat time-out in a job of one process, where allocating a huge pinned host buffer blocked the heartbeats",
    why="There is only one task and it declares itself dead: the allocation of 1.6 TB of pinned host memory took 140 s, longer than the heartbeat limit. Nothing died and there is no network involved.",
    tags="misleading training", also="hang runtime-error launch-failure", also_cls="software-bug dependency-failure resource-exhaustion", nodes="", gpus=8, mention=["pinned|heartbeat"], must_not="node-failure preempted network-error",
)  # fmt: skip
def s065(c: Case) -> None:
    c.start("2024-10-09 15:44:50")
    c.site, c.root = "/opt/jax/lib/python3.11/site-packages", "/srv/easylm"
    log = c.file("offload-run.err")
    s = lambda: c.t("%Y-%m-%d %H:%M:%S.%f")  # noqa: E731
    log.add(f"{s()}: I external/xla/xla/tsl/distributed_runtime/coordination/coordination_service.cc:553] /job:jax_worker/replica:0/task:0 has connected to coordination service. Incarnation: {c.n(10**17, 10**18)}", f"{s()}: I external/xla/xla/tsl/distributed_runtime/coordination/coordination_service_agent.cc:305] Coordination agent has successfully connected.",
            "optimizer state goes to pinned_host (memory_kind), 8 devices, parameters 70.6e9", f"{s()}: I external/xla/xla/service/service.cc:152] XLA service 0x55{c.hex(10)} initialized for platform CUDA (this does not guarantee that XLA will be used). Devices:", *[f"{s()}: I external/xla/xla/service/service.cc:160]   StreamExecutor device ({g}): NVIDIA H100 80GB HBM3, Compute Capability 9.0" for g in range(8)])  # fmt: skip
    c.tick(3)
    log.add(
        f"{s()}: I external/xla/xla/pjrt/gpu/se_gpu_pjrt_client.cc:1041] Using BFC allocator for pinned host memory, limit 1649267441664 bytes",
        e=True,
    )
    c.tick(140)
    log.add(
        f"{s()}: W external/xla/xla/stream_executor/cuda/cuda_driver.cc:1061] cuMemHostAlloc of 1649267441664 bytes took 139.7s",
        e=True,
    )
    log.add(f"{s()}: E external/xla/xla/tsl/distributed_runtime/coordination/coordination_service.cc:1170] /job:jax_worker/replica:0/task:0 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:0 heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly. "
            "Check the task logs for an earlier error to debug further. [type.googleapis.com/tensorflow.CoordinationServiceError='']", e=True)  # fmt: skip
    log.add(f"{s()}: E external/xla/xla/tsl/distributed_runtime/coordination/coordination_service_agent.cc:332] Polled an error from coordination service (this can be an error from this or another task).", f"{s()}: F external/xla/xla/pjrt/distributed/client.h:77] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output.",
            "Fatal Python error: Aborted", "", f"Current thread 0x00007f{c.hex(10)} (most recent call first):", f'  File "{c.site}/jax/_src/interpreters/pxla.py", line 1298 in __call__', f'  File "{c.root}/train.py", line 190 in main', "Aborted (core dumped)")  # fmt: skip


@case(
    "s066", "model-loading-error", "config-error", "fix-and-resubmit",
    source="after the report of a checkpoint that refuses to load since the number of nodes changed",
    why="The optimizer state was saved for a data-parallel size of 32 and the run has 64; DeepSpeed says so on each rank. Nothing is wrong with the files.",
    tags="training multi-node cascade", also="runtime-error checkpoint-corrupt argument-error", nodes="", gpus=64, mention=["world size|32|64"], must_not="nccl-timeout file-not-found",
)  # fmt: skip
def s066(c: Case) -> None:
    c.start("2023-06-26 06:30:31")
    c.site, c.root = "/opt/ds/lib/python3.10/site-packages", "/data/step3-rlhf"
    names = [f"aml{i:02d}" for i in range(8)]
    log = c.file("aml-driver-log.txt")
    log.add(
        mg.ds_start(c, names, 8, "train_rm.py", "--resume_from_checkpoint /data/rm13b/ck --zero_stage 2", "0.9.3"),
        mg.ds_config(c, 2, 4, 2, 64),
    )
    log.add(
        [
            f"{n}: {r}"
            for n in names
            for r in (
                f"[{c.t()}] rank base {names.index(n) * 8}: reward model 13 B, critic head 1",
                "Attempting to resume from /data/rm13b/ck/global_step8000",
            )
        ],
        [
            mg.ds(
                c,
                "[Torch] Loading checkpoint from /data/rm13b/ck/global_step8000/mp_rank_00_model_states.pt...",
                "torch_checkpoint_engine.py:23:load",
            ),
            mg.ds(
                c,
                "[Torch] Loaded checkpoint from /data/rm13b/ck/global_step8000/mp_rank_00_model_states.pt.",
                "torch_checkpoint_engine.py:25:load",
            ),
        ],
    )
    c.tick(22)
    rows = [pre(f"{names[r // 8]}: ", tb(c, """
        train_rm.py:420 <module> | main()
        train_rm.py:288 main | path, client = engine.load_checkpoint(args.resume_from_checkpoint)
        $S/deepspeed/runtime/engine.py:2639 load_checkpoint | success = self._load_zero_checkpoint(
        $S/deepspeed/runtime/engine.py:2810 _load_zero_checkpoint | self.optimizer.load_state_dict(state_dict_list=zero_sd_list,
        $S/deepspeed/runtime/engine.py:2850 _get_all_zero_checkpoints | raise ZeRORuntimeException("The checkpoint being loaded used a DP " \\
        """, "deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP world size of 32 but the current world size is 64. Automatic adjustment of ZeRO's optimizer state partitioning with a new world size is not currently supported.")) for r in c.rng.sample(range(64), 64)]  # fmt: skip
    log.add(weave(c.rng, rows, 10), e="used a DP world size of 32")
    for n in names:
        log.add(
            pre(
                f"{n}: ",
                mg.ds_killed(
                    c,
                    c.pids(8, 11000),
                    "['/opt/ds/bin/python', '-u', 'train_rm.py', '--local_rank=7', '--resume_from_checkpoint', '/data/rm13b/ck']",
                    1,
                ),
            ),
            f"pdsh@aml00: {n}: ssh exited with exit code 1",
        )


@case(
    "s067", "ecc-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of a training on eight accelerators that stops with a GPU hang while the kernel log has uncorrectable hardware errors",
    why="The kernel log has an uncorrectable error interrupt (ERREVENT_ATHUB_INTERRUPT) and uncorrectable errors in the umc block of 0000:c1:00.0 in the second before the 'GPU Hang' exception of rank 5.",
    tags="misleading hardware kernel multi-file", also="gpu-lost cuda-error", nodes="frontier-b12", ranks="5", gpus=8, mention=["uncorrectable|ras|ecc"], must_not="nccl-timeout hang native-crash",
)  # fmt: skip
def s067(c: Case) -> None:
    c.start("2024-11-11 11:00:00")
    log = c.file("olmo-mi250x.log")
    log.add(
        *[
            f"2024-11-11 11:00:{30 + g}.{c.n(100, 999)}\tfrontier-b12:{g}\tolmo.util:168\tINFO\tSeed {6198 + g}, device HIP {g} (gfx90a), RCCL 2.18.3"
            for g in range(8)
        ]
    )
    loss = Curve(c, 11.0, 2.7, 500)
    for i in range(1, 5200):
        c.tick(9, 9.3)
        if i % 4 == 0:
            log.add(
                f"{c.t('%Y-%m-%d %H:%M:%S.%f3')}\tfrontier-b12:0\tolmo.train:966\tINFO\t[step={i}/739328]",
                f"    train/CrossEntropyLoss={loss(i):.3f}",
                f"    train/Perplexity={2.718 ** loss(i):.1f}",
                f"    throughput/device/tokens_per_second={c.jitter(2100, 0.01):.0f}",
            )
    k = Kernel(c)
    d = c.file("dmesg-frontier-b12.txt")
    d.add(chatter(c, k, 35, 60000))
    d.add(
        k("amdgpu 0000:c1:00.0: amdgpu: no uncorrectable hardware errors detected in sdma block", 41000),
        k("amdgpu 0000:c1:00.0: amdgpu: 3 correctable hardware errors detected in total in umc block", 3000),
    )
    d.add(
        k("amdgpu 0000:c1:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!", 0.8),
        k(
            "amdgpu 0000:c1:00.0: amdgpu: socket: 0, die: 0, 2 new uncorrectable hardware errors detected in umc block",
            0.7,
        ),
        e=True,
    )
    d.add(
        k("amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!", 0.5),
        k("amdgpu: qcm fence wait loop timeout expired", -3),
        k("amdgpu: The cp might be in an unrecoverable state due to an unsuccessful queues preemption", -3),
        k("amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) succeeded!", -9),
        k("amdgpu 0000:c1:00.0: amdgpu: VRAM is lost due to GPU reset!", -9),
    )
    log.add(
        "HW Exception by GPU node-9 (Agent handle: 0x55ea2f0c1d90) reason :GPU Hang",
        ":0:rocdevice.cpp            :2874: %d us: [pid:88125 tid:0x7f20] Callback: Queue 0x7f1f3c000000 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016".replace(
            "%d", str(c.n(10**9, 10**10))
        ),
        e="HW Exception",
    )
    c.tick(12)
    log.add(
        *[
            f"[rank{g}]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1969, remote process exited or there was a network error, NCCL version 2.18.3"
            for g in (0, 1, 2, 3, 4, 6, 7)
        ],
        "frontier-b12: task 5: Aborted (core dumped)",
        "frontier-b12: tasks 0-4,6-7: Exited with exit code 1",
    )


@case(
    "s068", "cancelled", "operator-action", "restart",
    source="after the report of a fine-tuning that stops with signal 1 when the ssh session of its owner ends",
    why="The agent got signal 1 (SIGHUP): the terminal that started it went away (client_loop: send disconnect). Training itself was fine; the workers were only told to stop.",
    tags="interrupted misleading training", also_cls="config-error", nodes="", gpus=4, mention=["sighup|hangup|signal 1|terminal|session"], must_not="native-crash node-failure preempted",
)  # fmt: skip
def s068(c: Case) -> None:
    c.start("2023-04-08 16:02:44")
    c.site = "/root/miniconda3/envs/glm/lib/python3.9/site-packages"
    log = c.file("terminal.txt")
    log.add(
        "(glm) root@gpu-box:~/ChatGLM-6B/ptuning# bash train.sh 2>&1 | tee terminal.txt",
        "WARNING:torch.distributed.run:",
        hf_head(114599, 1, 4, 4, 4, 29360128),
    )
    log.add(hf_steps(c, 10, 1600, total=1790, per_epoch=1790, sec=3.3, loss=Curve(c, 4.6, 2.7, 200), lr=2e-2))
    c.tick(21)
    log.add("WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers", e=True)
    log.add(*[f"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process {p} closing signal SIGHUP" for p in c.pids(4, 8670)], tb(c, """
        /root/miniconda3/envs/glm/bin/torchrun:8 <module> | sys.exit(main())
        $S/torch/distributed/run.py:788 run | elastic_launch(
        $S/torch/distributed/elastic/agent/server/api.py:850 _invoke_run | time.sleep(monitor_interval)
        $S/torch/distributed/elastic/multiprocessing/api.py:62 _terminate_process_handler | raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
        """, "torch.distributed.elastic.multiprocessing.api.SignalException: Process 8665 got signal: 1"), e="got signal: 1")  # fmt: skip
    log.add("client_loop: send disconnect: Broken pipe")
