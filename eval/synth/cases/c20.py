"""s085 to s088."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import config_json, warning
from synth.hosts_text import pyspy
from synth.kit import Case, Curve, case, pre, tb, weave


@case(
    "s085", "collective-mismatch", "software-bug", "kill-and-restart fix-and-resubmit",
    source="after the report of a vision-language training that stalls because text-only micro-batches skip the vision tower's gathers",
    why="Ranks 3, 11 and 12 (text-only micro-batches in their last line) stand in the gather of language layer 0, the others in gathers of the vision tower: they wait in different collectives. GPUs show 100 % at a third of the usual power.",
    tags="hang misleading multi-file multi-node", outcome="hung", also="hang nccl-timeout", also_outcome="failed", also_cls="data-error", nodes="", ranks="3 11 12", gpus=16, mention=["vision|text-only|different|modal"], must_not="gpu-lost network-error storage-error",
)  # fmt: skip
def s085(c: Case) -> None:
    c.start("2025-11-20 09:09:30")
    c.site = "/opt/miles/lib/python3.12/site-packages"
    text = (3, 11, 12)
    streams: dict[int, list[str]] = {r: [] for r in range(16)}
    main = c.file("out/driver.log")
    loss = Curve(c, 1.7, 0.8, 40)
    for s in range(1, 143):
        c.tick(21, 22)
        main.add(
            f"{c.t()} step {s} loss {loss(s):.4f} vision tokens/rank min {c.n(200, 900)} max {c.n(4000, 9000)} kind=log_gather success=true degraded=false"
        )
        for r in range(16):
            streams[r].append(f"{c.t()} rank {r} micro-batch {s}: {c.n(1, 4)} conversations, {c.n(1, 9)} images")
    c.tick(3)
    main.add(f"{c.t()} step 143 begins")
    for r in range(16):
        streams[r].append(
            f"{c.t()} rank {r} micro-batch 143: {c.n(1, 4)} conversations, {0 if r in text else c.n(1, 9)} images"
        )
        c.file(f"out/rank{r}.log").add(streams[r][:-1])
        c.file(f"out/rank{r}.log").add(streams[r][-1], e=r in text)
    c.tick(1500)
    for r in range(16):
        where = (
            ["language_model.layers.0 (models/qwen_vl.py:702)", "forward (models/qwen_vl.py:811)"]
            if r in text
            else ["visual.blocks.0 (models/qwen_vl.py:431)", "get_image_features (models/qwen_vl.py:655)"]
        )
        f = c.file(f"out/dump/py_{r:02d}.txt")
        f.add(
            pyspy(
                5200 + r % 8,
                f"python train.py --rank {r}",
                [
                    (
                        f'{5200 + r % 8} (active): "MainThread"',
                        [
                            "wait (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:380)",
                            "wait_for_unshard (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:331)",
                            "_pre_forward (torch/distributed/fsdp/_fully_shard/_fsdp_state.py:237)",
                            *where,
                            "train_step (train.py:388)",
                        ],
                    )
                ],
                "3.12.9",
            ),
            e=where[0] if r in (*text, 0) else False,
        )
    g = c.file("out/dump/gpus.txt")
    for n in range(2):
        g.add(
            f"# node {n}: index, utilization.gpu, power.draw (usual: 610 W)",
            *[f"{i}, 100 %, {c.f(118, 126):.1f} W" for i in range(8)],
        )


@case(
    "s086", "healthy", "none", "none",
    source="a run with an undefined mlx5 symbol, a missing plugin and GPU direct switched off in its NCCL lines, which did what it should",
    why="The undefined symbol is the probe for an optional function; training went over RoCE without GPU direct, reached its last step and printed its summary.",
    tags="healthy multi-node", nodes="", gpus=16,
)  # fmt: skip
def s086(c: Case) -> None:
    c.start("2025-10-02 13:00:00")
    log = c.file("pods.log")
    rows = []
    for r in range(16):
        h = f"pod-{r // 8} | pod-{r // 8}:{200 + r}:{240 + r} [{r % 8}] "
        rows.append([h + "NCCL INFO NET/Plugin: Could not find: libnccl-net.so.", h + "misc/ibvwrap.cc:94 NCCL WARN dlvsym failed on mlx5dv_get_data_direct_sysfs_path - /lib/x86_64-linux-gnu/libmlx5.so: undefined symbol: mlx5dv_get_data_direct_sysfs_path version MLX5_1.25" if r % 8 == 0 else h + "NCCL INFO /lib/x86_64-linux-gnu/libmlx5.so: undefined symbol: mlx5dv_get_data_direct_sysfs_path",
                     h + f"NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_{r % 8}'", h + "NCCL INFO Failed to open libibverbs.so[.1] symbol ibv_reg_dmabuf_mr, continuing without dmabuf", h + f"NCCL INFO ncclCommInitRank comm 0x55{c.hex(10)} rank {r} nranks 16 cudaDev {r % 8} nvmlDev {r % 8} busId {r}000 commId 0x{c.hex(16)} - Init COMPLETE"])  # fmt: skip
    log.add(weave(c.rng, rows, 3), warning(c, 5, "torch/utils/data/dataloader.py"))
    loss = Curve(c, 4.6, 0.9, 200)
    for s in range(10, 3010, 10):
        c.tick(14, 15)
        log.add(
            f"pod-0 | {c.t()} [rank 0] step {s}/3000 loss {loss(s):.4f} err_rate {c.f(0.1, 0.3):.3f} fail=0 nccl_errors=0"
        )
        if s % 700 == 0:
            log.add(f"pod-1 | {c.t()} [rank 8] prometheus push failed (connection refused), dropping 41 samples")
    log.add(
        f"pod-0 | {c.t()} [rank 0] finished 3000 steps in {c.f(1.1, 1.3):.2f} h, test CER 4.11",
        *[f"pod-{n} | {c.t()} exit 0" for n in range(2)],
    )


@case(
    "s087", "model-loading-error", "data-error", "fix-and-resubmit",
    source="after the report of a launcher summary that hides a tokenizer file which is no valid JSON",
    why="tokenizer.json does not parse at its first character; its listing in the head shows 133 bytes where the weights have gigabytes: a pointer file of the version control, not the content.",
    tags="misleading training", also="value-error runtime-error file-not-found", also_cls="operator-action config-error", nodes="", gpus=4, mention=["tokenizer|pointer|133"], must_not="checkpoint-corrupt out-of-memory",
)  # fmt: skip
def s087(c: Case) -> None:
    c.start("2023-06-11 20:44:44")
    c.site, c.root = "/root/.local/lib/python3.9/site-packages", "/root/Firefly"
    log = c.file("sft.log")
    log.add(
        "total 13G",
        "-rw-r--r-- 1 root root  687 Jun 11 18:01 config.json",
        "-rw-r--r-- 1 root root 9.2G Jun 11 18:40 pytorch_model-00001-of-00002.bin",
        "-rw-r--r-- 1 root root 3.9G Jun 11 18:52 pytorch_model-00002-of-00002.bin",
        "-rw-r--r-- 1 root root  133 Jun 11 18:01 tokenizer.json",
        e="tokenizer.json",
    )
    log.add(
        tt.omp(c, "2.0"),
        config_json(
            "BloomConfig",
            {
                "architectures": ["BloomForCausalLM"],
                "hidden_size": 4096,
                "n_head": 32,
                "n_layer": 30,
                "vocab_size": 46145,
            },
        ),
    )
    rows = [tb(c, """
        train_sft.py:123 <module> | main()
        train_sft.py:99 main | trainer = init_components(args, training_args)
        $S/transformers/models/auto/tokenization_auto.py:702 from_pretrained | return tokenizer_class_fast.from_pretrained(pretrained_model_name_or_path, *inputs, **kwargs)
        $S/transformers/tokenization_utils_fast.py:111 __init__ | fast_tokenizer = TokenizerFast.from_file(fast_tokenizer_file)
        """, "Exception: expected value at line 1 column 1") for _ in range(4)]  # fmt: skip
    log.add(weave(c.rng, rows, 5), e="expected value at line 1")
    pids = c.pids(4, 2100)
    log.add(
        tt.exits(c, "2.0", 1, 0, pids[0], "/usr/bin/python3"),
        tt.child_failed(c, "train_sft.py", "a5c0f1", [(r, r, 1, pids[r]) for r in range(4)]),
    )


@case(
    "s088", "launch-failure", "dependency-failure", "restart-excluding escalate restart",
    source="after the report of a coordination error that hides a TPU device still held by the container of a job that was preempted before",
    why="On worker 0 libtpu cannot open /dev/vfio/0 (device or resource busy, held by PID 3310 of an old container) and the task ends with SIGSEGV; the coordination errors of workers 1 to 7 follow twenty seconds later.",
    tags="misleading cascade multi-file multi-node", also="node-failure os-error native-crash runtime-error", also_cls="operator-action", nodes="", ranks="0", gpus=32, mention=["vfio|busy|held|in use"], must_not="connection-error network-error preempted",
)  # fmt: skip
def s088(c: Case) -> None:
    c.start("2026-03-14 22:10:10")
    c.site, c.root = "/app/.venv/lib/python3.11/site-packages", "/app"
    f0 = c.file("task0.log")
    f0.add(
        f"I{c.t('%m%d %H:%M:%S.%f')}      18 distributed.py:106] Starting JAX distributed service on [::]:8476",
        f"I{c.t('%m%d %H:%M:%S.%f')}      18 xla_bridge.py:889] Unable to initialize backend 'cuda': ",
    )
    f0.add(
        f"E{c.t('%m%d %H:%M:%S.%f')}     102 vfio_iommu.cc:211] open(/dev/vfio/0): Device or resource busy: [type.googleapis.com/util.ErrorSpacePayload='util::PosixErrorSpace::EBUSY']",
        "The TPU is already in use by process with pid 3310. Not attempting to load libtpu.so in this process.",
        e=True,
    )
    f0.add(
        "Fatal Python error: Segmentation fault",
        "",
        f"Thread 0x00007f{c.hex(10)} (most recent call first):",
        f'  File "{c.site}/jax/_src/xla_bridge.py", line 1091 in backends',
        f'  File "{c.root}/main.py", line 77 in main',
        "command exited with 139",
    )
    for i in range(1, 8):
        c.tick(0.3)
        f = c.file(f"task{i}.log")
        f.add(
            f"I{c.t('%m%d %H:%M:%S.%f')}      18 distributed.py:119] Connecting to JAX distributed service on 10.130.0.7:8476"
        )
        now = c.now
        c.tick(20)
        f.add(f"E{c.t('%m%d %H:%M:%S.%f')}     101 coordination_service_agent.cc:342] Polled an error from coordination service (this can be an error from this or another task).", f"F{c.t('%m%d %H:%M:%S.%f')}     101 client.h:80] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output. absl::Status: UNAVAILABLE: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.130.0.7:8476: Failed to connect to remote host: Connection refused", "",
              "RPC: /tensorflow.CoordinationService/PollForError [type.googleapis.com/tensorflow.CoordinationServiceError='']", *pre("", ["Fatal Python error: Aborted", "command exited with 134"]))  # fmt: skip
        c.now = now
    c.tick(21)
    s = c.file("worker0-ps.txt")
    s.add(
        "USER         PID %CPU %MEM     VSZ    RSS TTY   STAT START   TIME COMMAND",
        "root        3310  0.0  1.2 91245008 5204112 ?   Ssl  20:31   4:02 /app/.venv/bin/python main.py --job grug-17 (container 9c1e, stopping)",
        "root        8802  0.0  0.0   10072   3300 pts/0 R+   22:11   0:00 ps aux",
        e="3310",
    )
