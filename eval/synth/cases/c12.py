"""s053 to s056."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth.frameworks import hf_head, hf_steps, warning
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import head, hosts, sacct


@case(
    "s053", "out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a model that fails on a pod slice with a very long log of graph dumps in which one line says that device memory is exhausted",
    why="Buried in twenty thousand lines of graph dumps one line says that 180.59 MB could not be allocated with 142.58 MB free of HBM; the mesh and RPC errors at the end come from the peers.",
    tags="misleading large training", also_cls="config-error", nodes="", gpus=32, mention=["memory|hbm|exhausted"], must_not="connection-error node-failure nccl-timeout",
)  # fmt: skip
def s053(c: Case) -> None:
    c.start("2020-10-21 01:14:22")
    c.site, c.root = "/usr/local/lib/python3.6/dist-packages", "/usr/share/torch-xla-nightly/fairseq-tpu"
    log = c.file("xla_dist.log")
    ips = [f"10.164.0.{i}" for i in (12, 17, 21, 33)]
    for ip in ips:
        log.add(
            f"{c.t()} {ip} [{ips.index(ip)}] | INFO | fairseq_cli.train | model roberta_large, criterion masked_lm (MaskedLmLoss)",
            f"{c.t()} {ip} [{ips.index(ip)}] {c.site}/torch_xla/distributed/xla_multiprocessing.py:{c.n(200, 330)}: UserWarning: devices requested: 8",
        )
    ops = [
        "xla::_op",
        "aten::add",
        "aten::mul",
        "aten::mm",
        "aten::permute",
        "aten::view",
        "aten::expand",
        "aten::native_layer_norm_backward",
        "aten::_softmax",
        "xla::device_data",
        "aten::gelu",
        "aten::select",
        "xla::cross_replica_sum",
        "aten::transpose",
    ]
    shape = lambda: ",".join(str(c.rng.choice([8, 16, 128, 512, 1024, 4096])) for _ in range(c.n(1, 4)))  # noqa: E731
    hit = False
    for dump in range(4):
        ip = ips[(dump + 2) % 4]
        c.tick(60, 70)
        log.add(
            f"{c.t()} {ip} [{ips.index(ip)}] 2020-10-21 01:{16 + dump}:11.{c.n(100000, 999999)}: E    {c.n(800, 3000)} tensorflow/compiler/xla/xla_client/xla_util.cc:76] >>> Dumping Computation {dump}"
        )
        log.add(
            f"{c.t()} {ip} [{ips.index(ip)}] 2020-10-21 01:{16 + dump}:11.{c.n(100000, 999999)}: E    {c.n(800, 3000)} tensorflow/compiler/xla/xla_client/xla_util.cc:76] HloModule SyncTensorsGraph.{c.n(10000, 60000)}, input_output_alias={{ {{0}}: (12, {{}}, must-alias) }}"
        )
        for i in range(4900):
            log.add(
                f"  %{c.rng.choice(ops).split('::')[1].replace('_', '-')}.{dump * 4900 + i} = f32[{shape()}]{{1,0}} {c.rng.choice(('add', 'multiply', 'dot', 'reshape', 'broadcast', 'reduce', 'select'))}(%p{c.n(0, 900)}, %t{c.n(0, 9000)})"
            )
            if dump == 2 and i == 3111:
                log.add(
                    f"{c.t()} {ip} [{ips.index(ip)}] 2020-10-21 01:18:11.{c.n(100000, 999999)}: E    {c.n(800, 3000)} tensorflow/compiler/xla/xla_client/xla_util.cc:76] Resource exhausted: Attempting to allocate 180.59M. That was not possible. There are 142.58M free.; (0x3x0_HBM1)",
                    e=True,
                )
                hit = True
    assert hit
    for ip in ips:
        log.add(f"{c.t()} {ip} [{ips.index(ip)}] " + row for row in tb(c, "train.py:10 <module> | cli_main()\n$S/torch_xla/distributed/xla_multiprocessing.py:330 _mp_start_fn | _start_fn(index, pf_cfg, fn, args)\n$S/torch_xla/core/xla_model.py:700 mark_step | wait=xu.getenv_as('XLA_SYNC_WAIT', bool, False))",
                "RuntimeError: tensorflow/compiler/xla/xla_client/mesh_service.cc:377 : Failed to meet rendezvous 'torch_xla.core.xla_model.mark_step': Socket closed (14)"))  # fmt: skip
    log.add(
        f"{c.t()} 10.164.0.12 [0] Exception in device=TPU:3: tensorflow/compiler/xla/xla_client/mesh_service.cc:377 : Failed to meet rendezvous 'torch_xla.core.xla_model.mark_step': Socket closed (14)",
        f"{c.t()} 10.164.0.12 [0] https://symbolize.stripped_domain/r/?trace=7f2c1f&map=",
        f"{c.t()} 10.164.0.12 [0] *** SIGTERM received by PID 1811 (TID 1811) on cpu 41 from PID 1790; stack trace: ***",
    )


@case(
    "s054", "loss-spike", "data-error", "fix-and-resubmit rollback-and-skip",
    source="after the report of NaN gradients at irregular steps that pass on a resume, where one follow-up found samples of zeros only",
    why="Rank 21 finds NaN in its local gradient norm; its data loader says just before that sample 1883021 is all padding, so the masked mean divides by zero. The same GPU passed that iteration after the first resume with the sample order changed.",
    tags="misleading training multi-node multi-run slurm", also="assertion-error dataset-loading-error zero-division-error value-error", also_cls="hardware-failure unknown software-bug", nodes="", ranks="21", gpus=32, mention=["nan"], must_not="nccl-timeout ecc-error",
)  # fmt: skip
def s054(c: Case) -> None:
    c.start("2024-04-17 16:00:09")
    c.root, c.site = "/lustre/gpt/Megatron-LM", "/opt/conda/lib/python3.10/site-packages"
    log, names = c.file("gpt7b-1.5T.out"), hosts("ln", 41, 4, 3)
    loss = Curve(c, 10.2, 1.9, 900, 0.004)
    frames = """
        pretrain_gpt.py:226 <module> | pretrain(train_valid_test_datasets_provider,
        megatron/training/training.py:270 pretrain | iteration, num_floating_point_operations_so_far = train(
        megatron/training/training.py:990 train | train_step(forward_step_func,
        megatron/core/distributed/param_and_grad_buffer.py:117 start_grad_sync | assert not norm.isnan(), ("""
    for k, (first, last, rank, dev) in enumerate(((40001, 40910, 9, 1), (40501, 41822, 21, 5))):
        log.add(
            head(c, 61190 + k, names, 8, "gpt7b", "lrz", "2-00:00:00"),
            mg.startup(
                c,
                tp=2,
                pp=1,
                params=3438280704,
                micro=64,
                vocab=100352,
                data="/lustre/gpt/idx/mix15",
                load="/lustre/gpt/ckpt7b",
                at=first - 1,
            ),
        )
        log.add(
            mg.steps(
                c,
                first,
                last,
                total=700000,
                gbs=1024,
                sec=9.8,
                loss=loss,
                every=3,
                core=False,
                save=(500, "/lustre/gpt/ckpt7b"),
            )
        )
        if k:
            log.add(
                "[rank 21 loader] sample 1883021 (doc 77120, offset 0): 4096 of 4096 tokens are pad, loss mask sum is 0",
                e=True,
            )
        else:
            log.add(
                "[rank 9 loader] sample 1240883 (doc 50931, offset 0): 4096 of 4096 tokens are pad, loss mask sum is 0"
            )
        c.tick(2)
        log.add(
            pre(
                f"{rank}: ",
                tb(
                    c,
                    frames,
                    f"AssertionError: Rank {rank}: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: {dev}, node: {names[rank // 8]}",
                ),
            ),
            e="found NaN" if k else False,
        )
        streams = [pre(f"{r}: ", [f"[E ProcessGroupNCCL.cpp:475] [Rank {r}] Some NCCL operations have failed or timed out.", f"{names[r // 8]}:{c.n(2000, 9000)}:{c.n(9001, 12000)} [{r % 8}] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer {names[rank // 8]}<{c.n(30000, 60000)}>",
                   f"RuntimeError: NCCL communicator was aborted on rank {r}."]) for r in range(32) if r != rank]  # fmt: skip
        log.add(weave(c.rng, streams))
        log.add(
            f"srun: error: {names[rank // 8]}: task {rank}: Exited with exit code 1",
            f"srun: launch/slurm: _step_signal: Terminating StepId={61190 + k}.0",
            *[
                f"srun: error: {n}: tasks {i * 8}-{i * 8 + 7}: Terminated"
                for i, n in enumerate(names)
                if i != rank // 8
            ],
        )
        c.tick(1200)
    log.add(sacct("JobID|State|ExitCode", ["61190|FAILED|1:0", "61191|FAILED|1:0"]))


@case(
    "s055", "network-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of a training over several nodes that stops with connection resets because some nodes had InfiniBand faults",
    why="The kernel log of kx-0187 shows mlx5_3 going down seconds before the first completion error with status 12; all blamed pairs have kx-0187 on one side. The resets are its processes dying.",
    tags="misleading cascade network hardware kernel multi-file multi-node", also="nccl-remote-error", nodes="kx-0187", gpus=32, mention=["kx-0187|mlx5_3|infiniband|link"], must_not="nccl-timeout connection-error cuda-error",
)  # fmt: skip
def s055(c: Case) -> None:
    c.start("2025-10-16 23:10:40")
    c.site, c.root = "/opt/venv/lib/python3.12/site-packages", "/code/video-dit"
    names = ["kx-0102", "kx-0133", "kx-0187", "kx-0201"]
    log = c.file("rank-all.log")
    log.add(nccl.init(c, names, 8, "2.21.5", "12.4", channels=2, subnet="10.66.3", bus=nccl.BUS_H100))
    loss = Curve(c, 1.1, 0.42, 800)
    for s in range(1, 1500, 2):
        c.tick(21, 22)
        log.add(
            f"[default0]:[{c.t()}] step {s} loss {loss(s):.5f} grad {c.jitter(0.09, 0.2):.4f} lr 8.0e-05 frames/s {c.jitter(1404, 0.02):.0f} epoch 0"
        )
    k = Kernel(c, "kx-0187")
    d = c.file("kx-0187-kernel.txt")
    d.add(chatter(c, k, 45, 200000))
    d.add(
        k("mlx5_core 0000:5d:00.0: Port module event[error]: module 3, Cable error, Cable is unplugged", -1),
        k("mlx5_core 0000:5d:00.0 ibp93s0: Link down", -1.1),
        e=True,
    )
    for name in names[:2]:
        c.file(f"{name}-kernel.txt").add(chatter(c, Kernel(c, name), 30, 200000))
    c.tick(9)
    pairs = [(0, 2), (1, 2), (3, 2), (2, 0), (2, 3), (2, 1)]
    for a, b in pairs:
        g = 3
        log.add(
            f"[default{g}]:{names[a]}:{c.n(2000, 6000)}:{c.n(6001, 9000)} [{g}] transport/net_ib.cc:2170 NCCL WARN NET/IB: Got completion from peer 10.66.3.{20 + b}<{c.n(30000, 60000)}> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::b83f:d2ff:fe{c.hex(2)}:{c.hex(4)} remoteGidsfe80::b83f:d2ff:fe{c.hex(2)}:{c.hex(4)} hca mlx5_3",
            e=True,
        )
    rows = []
    for r in c.rng.sample(range(32), 32):
        peer = 22 if r // 8 != 2 else 20
        rows.append(pre(f"[default{r % 8}]:[rank{r}]: ", tb(c, "train.py:517 <module> | main()\ntrain.py:440 main | dist.all_reduce(loss_avg)\n$S/torch/distributed/c10d_logger.py:83 wrapper | return func(*args, **kwargs)\n$S/torch/distributed/distributed_c10d.py:2501 all_reduce | work = group.allreduce([tensor], opts)",
            ["torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2251, remote process exited or there was a network error, NCCL version 2.21.5", "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "Last error:",
             f"socketProgressOpt: Call to recv from 10.66.3.{peer}<{c.n(30000, 60000)}> failed : Connection reset by peer"])))  # fmt: skip
    log.add(weave(c.rng, rows, 6))


@case(
    "s056", "healthy", "none", "none",
    source="a run whose settings and help texts speak of watchdogs and time-outs, with retried downloads and warnings, which ends well",
    why="'Watchdog', 'timeout' and 'abort' stand in the dumped settings; the hub answered after three tries and one evaluation was skipped; training ended with the model pushed and exit code 0.",
    tags="healthy training slurm", nodes="", gpus=8,
)  # fmt: skip
def s056(c: Case) -> None:
    c.start("2025-05-30 10:05:00")
    c.site = "/opt/hf/lib/python3.12/site-packages"
    log = c.file("sft-gemma.out")
    log.add(
        "env | sort | grep -i -E 'nccl|torch'",
        "NCCL_DEBUG=WARN",
        "NCCL_IB_RETRY_CNT=7",
        "NCCL_IB_TIMEOUT=20",
        "TORCH_DIST_INIT_BARRIER=1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1",
        "TORCH_NCCL_ENABLE_MONITORING=1",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=1800",
        "TORCH_NCCL_TRACE_BUFFER_SIZE=4000",
        "TORCH_SHOW_CPP_STACKTRACES=1",
    )
    log.add("SFTConfig(", *[f"_{k}={v}," if k == "n_gpu" else f"{k}={v}," for k, v in (("n_gpu", 1), ("abort_on_nan", "True"), ("ddp_timeout", 1800), ("dataloader_drop_last", False), ("deepspeed", None), ("eval_on_failure", "skip"), ("full_determinism", False), ("hub_strategy", "HubStrategy.EVERY_SAVE"), ("ignore_data_skip", False), ("include_tokens_per_second", True),
            ("logging_nan_inf_filter", True), ("max_grad_norm", 1.0), ("on_error", "'raise'"), ("restore_callback_states_from_checkpoint", False), ("watchdog_action", "'kill the process after Watchdog caught collective operation timeout'"), ("weight_decay", 0.0))], ")")  # fmt: skip
    for k in range(3):
        log.add(
            f"'(MaxRetryError(\"HTTPSConnectionPool(host='hub.example.org', port=443): Max retries exceeded with url: /api/models/google/gemma-3-12b (Caused by ConnectTimeoutError)\"), '(Request ID: {c.hex(8)}-{c.hex(4)}-{c.hex(4)})')' thrown while requesting HEAD https://hub.example.org/google/gemma-3-12b/resolve/main/config.json",
            f"Retrying in {2**k}s [Retry {k + 1}/5].",
        )
    log.add(
        *[
            f"Loading checkpoint shards: 100%|██████████| 5/5 [00:0{c.n(3, 9)}<00:00,  1.{c.n(10, 90)}s/it]"
            for _ in range(8)
        ],
        warning(c, 7, "torch/utils/checkpoint.py"),
        hf_head(96000, 2, 2, 8, 8, 12187325040),
    )
    loss = Curve(c, 1.9, 0.82, 120)
    for first in (10, 510, 1010):
        log.add(hf_steps(c, first, first + 490, total=1500, per_epoch=750, sec=4.4, loss=loss))
        log.add(
            f"Saving model checkpoint to /scratch/gemma/checkpoint-{first + 490}",
            "eval: generation of 2 of 64 prompts failed (tokenizer returned an empty string), skipped"
            if first < 1000
            else f"{{'eval_loss': {loss(1500):.4f}, 'epoch': 2.0}}",
        )
    log.add(
        "Training completed. Do not forget to share your model on huggingface.co/models =)",
        "{'train_runtime': 6702.1, 'train_samples_per_second': 28.6, 'train_loss': 0.9714, 'epoch': 2.0}",
        "model pushed to team/gemma3-12b-sft (revision main)",
        "+ rc=0",
        "job finished with exit code 0",
    )
