"""s049 to s052."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import bar
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s049", "model-loading-error", "software-bug", "restart fix-and-resubmit",
    source="after the report of ranks that cannot find checkpoint shards which lie on the disk, because each rank rewrites the cache's reference file",
    why="Three of 32 ranks find no shard at an empty revision while 29 load the same files from the same cache: the refs file was read while another rank rewrote it. The files are there (listing in the head).",
    tags="misleading training multi-node", also="file-not-found os-error", also_cls="dependency-failure", nodes="", ranks="6 14 29", gpus=32, mention=["cache|refs|revision|race"], must_not="permission-error connection-error",
)  # fmt: skip
def s049(c: Case) -> None:
    c.start("2025-12-03 05:42:16")
    c.site, c.root = "/opt/compress/lib/python3.12/site-packages", "/opt/compress/jobs"
    log = c.file("quant-job.log")
    snap = c.hex(40)
    log.add(
        "$ ls /mnt/hf/hub/models--meta-llama--Llama-3.1-405B/snapshots/*/ | wc -l",
        "199",
        "$ cat /mnt/hf/hub/models--meta-llama--Llama-3.1-405B/refs/main",
        snap,
        tt.omp(c, "2.6"),
    )
    rows = []
    for r in c.rng.sample(range(32), 32):
        head = [f"rank {r}: resolving meta-llama/Llama-3.1-405B (main) in /mnt/hf/hub"]
        if r in (6, 14, 29):
            head += tb(c, """
                gptq_405b.py:88 <module> | main()
                gptq_405b.py:41 main | model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype="auto", device_map=None)
                $S/transformers/models/auto/auto_factory.py:571 from_pretrained | return model_class.from_pretrained(
                $S/transformers/modeling_utils.py:4260 from_pretrained | checkpoint_files, sharded_metadata = _get_resolved_checkpoint_files(
                $S/transformers/utils/hub.py:1110 get_checkpoint_shard_files | cached_filenames = cached_files(
                $S/transformers/utils/hub.py:493 cached_files | raise EnvironmentError(
                """, f"OSError: /mnt/hf/hub/models--meta-llama--Llama-3.1-405B/snapshots/ does not appear to have a file named model-{c.n(1, 191):05d}-of-00191.safetensors. Checkout 'https://huggingface.co/meta-llama/Llama-3.1-405B/tree/' for available files.")  # fmt: skip
        else:
            head += [
                f"rank {r}: snapshot {snap[:12]}",
                *(f"Loading checkpoint shards: {bar(i, 191, 0.4)}" for i in (0, 40, 90, 150, 191)),
            ]
        rows.append(pre(f"[default{r % 8}]:", head))
    log.add(weave(c.rng, rows, 4), e="does not appear to have a file named")
    c.tick(60)
    for n, (r, pid) in enumerate(((6, 4206), (14, 4214), (29, 4229))):
        log.add(
            tt.sigterm(c, "2.6", [4200 + n * 8 + i for i in range(5)]),
            tt.exits(c, "2.6", 1, r % 8, pid),
            tt.child_failed(c, "gptq_405b.py", f"q-{n}", [(r, r % 8, 1, pid)]),
        )
    log.add(
        "[E1203 05:44:02.7 socket.cpp:1019] [c10d] The client socket has timed out after 60000ms while trying to connect to (q-0, 29500)."
    )


@case(
    "s050", "unknown", "unknown", "restart fix-and-resubmit escalate",
    source="after the report of a collective test that fails with 'unhandled system error' where the library says no more unless its debug level is raised",
    why="NCCL says only 'unhandled system error' on four ranks, without a WARN line: which call failed is not in the log. NCCL_DEBUG=WARN (or INFO) must be set and the run repeated.",
    tags="unknown misleading", status="unknown hypothesis", also="nccl-remote-error", also_outcome="unknown", nodes="", gpus=4, mention=["NCCL_DEBUG"], must_not="gpu-lost network-error native-crash",
)  # fmt: skip
def s050(c: Case) -> None:
    c.start("2021-02-16 21:18:09")
    c.site, c.root = "/opt/conda/lib/python3.8/site-packages", "/workspace/3dunet"
    log = c.file("docker-logs.txt")
    log.add(
        "# ./build/all_reduce_perf -b 8 -e 128M -f 2 -g 4",
        "# nThread 1 nGpus 4 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 validation: 1 ",
        "#",
        "# Using devices",
        *[
            f"#   Rank  {g} Pid     58 on 5d1fd3a1c0e2 device  {g} [0x{b}] GeForce RTX 3090"
            for g, b in enumerate(("01", "25", "41", "61"))
        ],
        "#",
    )
    log.add("5d1fd3a1c0e2: Test NCCL failure common.cu:777 'unhandled system error'", e=True)
    log.add(
        " .. 5d1fd3a1c0e2: Test failure all_reduce.cu:115",
        " .. 5d1fd3a1c0e2: Test failure common.cu:823",
        "# exit code 3, trying the training anyway",
    )
    c.tick(5)
    rows = [pre(f"[{r}] ", [f"INFO: fold 0, patch 128x128x128, case list of {c.n(380, 390)} volumes", *tb(c, """
        main.py:119 <module> | main()
        main.py:77 main | model = DDP(model, device_ids=[args.local_rank])
        $S/torch/nn/parallel/distributed.py:410 __init__ | self._sync_params_and_buffers(authoritative_rank=0)
        $S/torch/nn/parallel/distributed.py:417 _sync_params_and_buffers | self._distributed_broadcast_coalesced(
        $S/torch/nn/parallel/distributed.py:978 _distributed_broadcast_coalesced | dist._broadcast_coalesced(
        """, "RuntimeError: NCCL error in: /opt/conda/conda-bld/pytorch_1607370172916/work/torch/lib/c10d/ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8")]) for r in range(4)]  # fmt: skip
    log.add(weave(c.rng, rows, 5), e="unhandled system error, NCCL version")
    log.add(
        tb(
            c,
            "/opt/conda/lib/python3.8/runpy.py:194 _run_module_as_main | return _run_code(code, main_globals, None,\n$S/torch/distributed/launch.py:259 main | raise subprocess.CalledProcessError(returncode=process.returncode,",
            "subprocess.CalledProcessError: Command '['/opt/conda/bin/python', '-u', 'main.py', '--local_rank=3', '--fold', '0']' returned non-zero exit status 1.",
        )
    )


@case(
    "s051", "preempted", "operator-action", "restart fix-and-resubmit",
    source="after the report of a job that was preempted and requeued several times and began from epoch 0 each time",
    why="Each of the three runs in the file ends with a preemption; the last one too. Beside it: the script passes no checkpoint, so epochs start at 0 each time.",
    tags="multi-run interrupted scheduler slurm", nodes="", gpus=4, mention=["preempt"], must_not="time-limit cancelled node-failure",
    scheduler={"JobID": "4714782", "State": "PREEMPTED", "Restarts": 2},
)  # fmt: skip
def s051(c: Case) -> None:
    c.start("2023-11-29 03:02:11")
    log = c.file("everyvoice_fs2.out")
    for k, epochs in enumerate((17, 9, 4)):
        log.add(
            f"======== {c.t()} job 4714782 restart {k} on {hosts('ib14be-', 3 + k * 11, 1, 3)[0]} ========",
            "INFO     | everyvoice.base_cli.helpers:train_base_command:140 - Loading modules for training...",
            "INFO     | everyvoice.base_cli.helpers:train_base_command:180 - Starting training from scratch.",
            "GPU available: True (cuda), used: True",
            "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1,2,3]",
        )
        loss = Curve(c, 9.0, 1.3, 900)
        for e in range(epochs):
            for i in range(0, 301, 25):
                c.tick(34, 36)
                log.add(
                    f"{bar(max(i, 1), 301, 1.4, f'Epoch {e}: ')[:-1]}, v_num=base, training/total={loss(e * 301 + i):.3f}]"
                )
            log.add(
                f"Saved logs/FeaturePredictionExperiment/base/checkpoints/last{f'-v{k}' if k else ''}.ckpt (epoch {e})"
            )
        c.tick(20)
        log.add(
            f"slurmstepd: error: *** STEP 4714782.0 ON ib14be-{3 + k * 11:03d} CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} DUE TO PREEMPTION ***",
            e=k == 2,
        )
        log.add(
            f"slurmstepd: error: *** JOB 4714782 ON ib14be-{3 + k * 11:03d} CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} DUE TO PREEMPTION ***",
            e=k == 2,
        )
        log.add(f"[rank: {c.n(1, 3)}] Received SIGTERM: 15", "Bypassing SIGTERM: 15", "srun: error: task 0: Terminated")
        c.tick(3000, 9000)


@case(
    "s052", "out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of sweep jobs that each end in a broken pipe while the TPU's memory is what ran out",
    why="The allocator of TPU task 3 could not place 224 MB (77.6 MB free) at batch 1024; the driver's BrokenPipeError and the 'worker lost' lines of Ray are its consequences, and come last and most often.",
    tags="misleading cascade training", nodes="", gpus=32, mention=["memory|batch"], must_not="connection-error node-failure host-out-of-memory",
)  # fmt: skip
def s052(c: Case) -> None:
    c.start("2025-04-25 18:31:54")
    c.site, c.root = "/home/ray/venv/lib/python3.11/site-packages", "/opt/levanter"
    log = c.file("sweep-lr-wd.log")
    log.add(f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tINFO job_manager.py:531 -- Runtime env is setting up.")
    for trial, bs in enumerate((256, 512, 1024)):
        log.add(f"(execution pid=2210) launching trial sweep-lr{3 + trial}e-4-bs{bs} on v5litepod-32")
        loss = Curve(c, 10.9, 3.3, 150)
        if bs < 1024:
            for s in range(0, 1000, 20):
                c.tick(11, 13)
                log.add(
                    f"(train_lm_task pid=9{trial}07, ip=10.128.0.{40 + trial}) I{c.t('%m%d %H:%M:%S.%f')} levanter.callbacks progress on: train step {s}/1000 loss {loss(s):.3f} {c.f(1.6, 1.7):.2f}it/s"
                )
            log.add(
                f"(train_lm_task pid=9{trial}07, ip=10.128.0.{40 + trial}) wandb: Synced sweep-lr{3 + trial}e-4-bs{bs}"
            )
    c.tick(90)
    lead = "(train_lm_task pid=9207, ip=10.128.0.42) "
    log.add(
        lead
        + f"{c.t('%Y-%m-%d %H:%M:%S.%f')}: E external/xla/xla/pjrt/pjrt_stream_executor_client.cc:3077] TpuClient::AllocateBuffer returning error after 1 attempt(s): RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 224.00M. That was not possible. There are 77.60M free.; (1x1x0_HBM0)",
        e=True,
    )
    log.add(pre(lead, ["[OOM Summary: Reason: Not enough free memory. Largest free block 77.60M; in use 15.31G of 15.75G]", *tb(c, "src/levanter/main/train_lm.py:251 <module> | levanter.config.main(main)()\nsrc/levanter/trainer.py:404 train_step | info = self._jit_train_step_fn(state, *batch)\n$S/equinox/_jit.py:263 __call__ | return _call(self, False, args, kwargs)",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 224.00M. That was not possible. There are 77.60M free.; (1x1x0_HBM0)")]), e="RESOURCE_EXHAUSTED")  # fmt: skip
    for ip in range(43, 50):
        c.tick(0.3)
        log.add(
            f"(train_lm_task pid=9207, ip=10.128.0.{ip}) E{c.t('%m%d %H:%M:%S.%f')} coordination_service_agent.cc:332] Polled an error from coordination service (this can be an error from this or another task).",
            f"(raylet, ip=10.128.0.{ip}) A worker died or was killed while executing a task by an unexpected system error.",
        )
    log.add(
        pre(
            "(execution pid=2210) ",
            tb(c, "infra/run_on_ray.py:133 _run | proc.stdin.write(chunk)", "BrokenPipeError: [Errno 32] Broken pipe"),
        ),
        "(execution pid=2210) BrokenPipeError: [Errno 32] Broken pipe [repeated 31x across cluster]",
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tERROR cli.py:68 -- Job 'ray-run-sweep-lr-wd' failed",
        "Status message: Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):",
        "BrokenPipeError: [Errno 32] Broken pipe",
    )
