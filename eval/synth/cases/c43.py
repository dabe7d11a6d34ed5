"""s129 to s132."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import hf_head, hf_steps, ray_head, titan_head, titan_steps, warning
from synth.hosts_text import smi
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import head, hosts


@case(
    "s129", "disk-full", "resource-exhaustion", "fix-and-resubmit restart-excluding escalate",
    source="after the notes on local disks that fill under an object store while the loudest lines are those of dead actors",
    why="On 10.0.3.14 the session folder's disk passed 95 %, objects could not be spilled any more and the ingest task of that node failed with OutOfDiskError; the aborted communicators and dead actors follow.",
    tags="misleading cascade multi-node storage", nodes="10.0.3.14", gpus=16, mention=["disk|space|spill"], must_not="nccl-remote-error nccl-timeout host-out-of-memory node-failure",
)  # fmt: skip
def s129(c: Case) -> None:
    c.start("2025-05-20 10:03:31")
    c.root, c.site = "/home/ray/app", "/home/ray/anaconda3/lib/python3.10/site-packages"
    log = c.file("driver.log")
    ips = ["10.0.3.11", "10.0.3.12", "10.0.3.14", "10.0.3.17"]
    actors = [(c.n(1000, 9000), ips[r // 4], r) for r in range(16)]
    log.add(ray_head(c, "10.0.3.11", actors))
    loss = Curve(c, 2.4, 0.9, 200)
    for i in range(1, 260):
        c.tick(7.1)
        r = c.n(0, 3)
        log.add(
            f"(RayTrainWorker pid={actors[0][0]}, ip={ips[0]}) step={i} loss={loss(i):.4f} samples/s={c.jitter(412):.1f}"
        )
        if i % 40 == 0:
            log.add(
                f"(raylet, ip={ips[r]}) Spilled {c.n(20000, 90000)} MiB, {c.n(500, 3000)} objects, write throughput {c.n(400, 900)} MiB/s."
            )
    node = c.hex(56)
    for n in range(5):
        c.tick(10)
        log.add(
            f"(raylet, ip=10.0.3.14) [{c.t('%Y-%m-%d %H:%M:%S,%f3')} E {c.n(200, 300)} {c.n(301, 400)}] (raylet) file_system_monitor.cc:111: /tmp/ray/session_2025-05-20_09-58-11_402911_1 is over 95% full, available space: {(5 - n) * 7.31:.3f} GB; capacity: 872.1 GB. Object creation will fail if spilling is required.",
            e=True,
        )
        log.add(
            f"(RayTrainWorker pid={actors[0][0]}, ip={ips[0]}) step={260 + n} loss={loss(260 + n):.4f} samples/s={c.jitter(300):.1f}"
        )
    c.tick(6)
    log.add(pre("(map_batches pid=5123, ip=10.0.3.14) ", tb(c, """
        $S/ray/data/_internal/execution/operators/map_operator.py:467 _map_task | for b_out in map_transformer.apply_transform(iter(blocks), ctx):
        $S/ray/_private/worker.py:2645 put | object_ref = worker.put_object(value, owner_address=serialize_owner_address)
        """, [
            "ray.exceptions.OutOfDiskError: Local disk is full",
            "The object cannot be created because the local object store is full and the local disk's utilization is over capacity (95% by default).Tip: Use `df` on this node to check disk usage and `ray memory` to check object store memory usage.",
        ])), e="OutOfDiskError")  # fmt: skip
    c.tick(3)
    pid = {r: p for p, _, r in actors}
    rows = []
    for r in (8, 9, 10, 11, 0, 1, 4, 5, 12):
        rows.append(pre(f"(RayTrainWorker pid={pid[r]}, ip={ips[r // 4]}) ", [
            f"{tt.stamp(c, '2.5', r, 632)} [Rank {r}] Work WorkNCCL(SeqNum={4101 + c.n(0, 1)}, OpType=ALLREDUCE, NumelIn=26214400, NumelOut=26214400, Timeout(ms)=1800000) was aborted: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        ]))  # fmt: skip
    log.add(weave(c.rng, rows, 2))
    log.add(
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')}\tERROR tune_controller.py:1331 -- Trial task failed for trial TorchTrainer_8d1f2_00000",
        tb(c, "$S/ray/air/execution/_internal/event_manager.py:110 resolve_future | result = ray.get(future)\n$S/ray/_private/worker.py:2623 get | values, debugger_breakpoint = worker.get_objects(object_refs, timeout=timeout)", [
            "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
            "\tclass_name: RayTrainWorker", f"\tactor_id: {c.hex(32)}", f"\tpid: {pid[0]}", f"\tip: {ips[0]}",
            f"The actor is dead because its owner has died. Owner Id: {c.hex(56)} Owner Ip address: 10.0.3.11 Owner worker exit type: SYSTEM_ERROR Worker exit detail: Owner's worker process has crashed. node_id: {node}",
        ]),
    )  # fmt: skip


@case(
    "s130", "storage-error", "config-error", "fix-and-resubmit restart",
    source="after the report of an object store whose refused request shows up as a copy into too small a buffer",
    why="The session's credentials ran out at 07:00:00Z; each request after that is answered with 400, and the error body did not fit its buffer. The copy error hides an expired token.",
    tags="misleading cascade multi-node storage", also="permission-error", also_cls="dependency-failure", nodes="", gpus=32, mention=["expire|credential|token"], must_not="nccl-timeout dataset-loading-error network-error",
)  # fmt: skip
def s130(c: Case) -> None:
    c.start("2025-02-26 19:02:40")
    c.root, c.site = "/opt/titan", "/opt/venv/lib/python3.11/site-packages"
    log = c.file("stdout.log")
    log.add("assumed role data-reader, session expires 2025-02-27T07:00:00Z (12h)", e=True)
    log.add(titan_head(c, "train_configs/llama3_8b.toml", "c4 dataset from s3://corp-tokens/c4/", "8,030,261,248"))
    loss = Curve(c, 11.9, 2.7, 260)
    log.add(titan_steps(c, 1, 10000, sec=4.3, loss=loss, every=20))
    c.start("2025-02-27 07:00:03")
    rows = []
    for r in (0, 3, 11, 12, 17, 26, 30):
        at = c.t("%Y-%m-%dT%H:%M:%SZ")
        rows.append(pre(f"[rank{r}]:", [
            f"[INFO] [{at}] [00007f{c.hex(10)}] [S3MetaRequest] - id=0x7f{c.hex(10)} Request finished with error code 14343 (aws-c-s3: AWS_ERROR_S3_INVALID_RESPONSE_STATUS)",
            f"[DEBUG] [{at}] [00007f{c.hex(10)}] [http-stream] - id=0x7f{c.hex(10)}: Incoming response status: 400 (Bad Request).",
            f"[ERROR] [{at}] [00007f{c.hex(10)}] [S3MetaRequest] - id=0x7f{c.hex(10)} could not append to response body due to error 26 (Destination of copy is too small.)",
            *tb(c, """
            torchtitan/train.py:361 train | batch = next(data_iterator)
            $S/torch/utils/data/dataloader.py:708 __next__ | data = self._next_data()
            $S/s3torchconnector/s3reader/sequential.py:93 read | self._buffer.write(next(self._stream))
            """, "s3torchconnectorclient._mountpoint_s3_client.S3Exception: Client error: Internal S3 client error: CRT error 26: AWS_ERROR_DEST_COPY_TOO_SMALL, Destination of copy is too small."),
        ]))  # fmt: skip
    log.add(weave(c.rng, rows, 3), e="Incoming response status: 400")
    c.tick(2)
    pids = c.pids(8, 300)
    log.add(tt.sigterm(c, "2.6", [p for i, p in enumerate(pids) if i not in (0, 3)]), tt.exits(c, "2.6", 1, 0, pids[0]))
    c.tick(5)
    log.add(
        tt.nccl_error(
            3384,
            "remote process exited or there was a network error",
            "2.21.5",
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            "NET/OFI Request completed with error. RC: 21. Error: Is a directory",
        )
    )
    log.add(tt.child_failed(c, "./torchtitan/train.py", "ip-10-9-4-21", [(0, 0, 1, pids[0]), (3, 3, 1, pids[3])]))


@case(
    "s131", "loss-spike", "config-error", "rollback-and-skip fix-and-resubmit",
    source="after the report of a division by zero that is a loss scale of zero",
    why="Every step from 7031 on overflowed and the dynamic loss scale was halved until it was zero; the division by it is only where the divergence ends the program.",
    tags="misleading cascade multi-node slurm training", also="zero-division-error", also_cls="data-error software-bug unknown", nodes="", gpus=32, mention=["loss scale|overflow|diverge"], must_not="nccl-remote-error cancelled",
)  # fmt: skip
def s131(c: Case) -> None:
    c.start("2020-06-04 11:20:13")
    c.root, c.site = "/workspace/bert", "/opt/conda/lib/python3.6/site-packages"
    names = hosts("dgx", 1, 4, 2)
    log = c.file("lamb-17733.log")
    log.add(
        head(c, 17733, names, 8, "bert-lamb", "batch", "1-00:00:00"),
        "learning_rate 0.012 warmup_proportion 0.01 fp16 True allreduce_post_accumulation True train_batch_size 2048",
    )
    loss = Curve(c, 11.2, 3.1, 700)
    for i in range(10, 7030, 10):
        c.tick(8)
        if i in (40, 70, 4010):
            log.add(
                f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {2.0 ** (19 - i // 40 % 3)}"
            )
        log.add(
            f"DLL {c.t('%Y-%m-%d %H:%M:%S.%f')} - Training Epoch: 0 Training Iteration: {i}  average_loss : {loss(i):.6f}  step_loss : {loss(i):.6f}  learning_rate : {0.012 * min(1, i / 70):.7f} "
        )
    for j, v in enumerate((4.81, 7.72, 9.93, 10.41, 10.88)):
        c.tick(8)
        log.add(
            f"DLL {c.t('%Y-%m-%d %H:%M:%S.%f')} - Training Epoch: 0 Training Iteration: {7030 + j}  average_loss : {v:.6f}  step_loss : {v + 0.2:.6f}  learning_rate : 0.0120000 "
        )
    scale = 131072.0
    while scale:
        c.tick(0.7)
        scale /= 2.0
        if scale < 1e-44:
            scale = 0.0
        log.add(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}", e=True)
    c.tick(1)
    rows = [pre("", tb(c, """
        run_pretraining.py:592 <module> | args, final_loss, train_time_raw = main()
        run_pretraining.py:528 main | scaled_loss.backward()
        $S/apex/amp/handle.py:123 scale_loss | optimizer._post_amp_backward(loss_scaler)
        $S/apex/amp/scaler.py:113 unscale | 1./scale)
        """, "ZeroDivisionError: float division by zero")) for _ in range(32)]  # fmt: skip
    log.add(weave(c.rng, rows, 12), e="ZeroDivisionError")
    for name in names[1:]:
        log.add(
            f"{name}:{c.n(300, 900)}:{c.n(901, 1900)} [0] include/socket.h:390 NCCL WARN Connection closed by remote peer"
        )
    log.add(*[f"srun: error: {n}: tasks {8 * i}-{8 * i + 7}: Exited with exit code 1" for i, n in enumerate(names)])


@case(
    "s132", "out-of-memory", "operator-action", "restart-excluding escalate",
    source="after the report of a node where each job fails to allocate because a process of an earlier job still holds a GPU",
    why="On cn112 process 1395, which started before the job, holds 25 GiB of GPU 0; rank 16 alone runs out of memory, with a batch that fits on the other 31 GPUs.",
    tags="misleading multi-node slurm hardware", also_cls="dependency-failure resource-exhaustion", nodes="cn112", ranks="16", gpus=32, mention=["1395|leftover|orphan|stale|other process|another process"], must_not="nccl-timeout nccl-remote-error ecc-error",
)  # fmt: skip
def s132(c: Case) -> None:
    c.start("2024-11-19 06:14:02")
    c.root, c.site = "/gpfs/home/nlp/sft", "/gpfs/home/nlp/env/lib/python3.10/site-packages"
    names = ["cn108", "cn109", "cn112", "cn113"]
    log, pro = c.file("slurm-2274018.out"), c.file("prolog/cn112.txt")
    bus = [f"00000000:{b}:00.0" for b in ("1B", "1C", "3D", "3E", "B1", "B2", "DB", "DC")]
    for other in ("cn108", "cn109", "cn113"):
        c.file(f"prolog/{other}.txt").add(
            smi(c, "NVIDIA H100 80GB HBM3", [(i, bus[i], 32 + i, 70, 4, 0) for i in range(8)])
        )
    pro.add(
        smi(
            c,
            "NVIDIA H100 80GB HBM3",
            [(i, bus[i], 33 + i, 71 if i else 118, 25092 if i == 0 else 4, 0) for i in range(8)],
            [(0, 1395, "python", 25081)],
        ),
        e="1395",
    )
    log.add(
        [
            x.replace("cn[108-113]", "cn[108-109,112-113]")
            for x in head(c, 2274018, names, 8, "sft-70b", "gpu", "12:00:00")
        ]
    )
    log.add(
        hf_head(412118, 2, 2, 32, 4, 7615616512),
        warning(c, 1, "huggingface_hub/file_download.py"),
        warning(c, 5, "torch/utils/data/dataloader.py"),
    )
    loss = Curve(c, 1.9, 1.1, 60)
    log.add(hf_steps(c, 1, 6, total=3219, per_epoch=1610, sec=11.8, loss=loss, every=1))
    c.tick(4)
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 79.11 GiB of which 611.19 MiB is free. Process 1395 has 24.49 GiB memory in use. "
        "Including non-PyTorch memory, this process has 53.99 GiB memory in use. Of the allocated memory 50.21 GiB is allocated by PyTorch, and 1.12 GiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )
    log.add(pre("[rank16]: ", tb(c, """
        sft.py:188 <module> | main()
        sft.py:171 main | trainer.train()
        $S/transformers/trainer.py:3318 training_step | loss = self.compute_loss(model, inputs)
        $S/transformers/models/qwen2/modeling_qwen2.py:1191 forward | logits = logits.float()
        """, text)), e="Process 1395")  # fmt: skip
    c.tick(600)
    for r in (0, 8, 17, 24, 31):
        log.add(tt.watchdog(c, "2.5", r, 812, "_ALLGATHER_BASE", numel=(7372800, 235929600), last=(814, 811)))
    pids = c.pids(8, 40000)
    log.add(
        tt.exits(c, "2.5", -6, 1, pids[1]),
        tt.child_failed(c, "sft.py", "cn112", [(16, 0, 1, pids[0]), (17, 1, -6, pids[1])]),
    )
    log.add(tt.child_failed(c, "sft.py", "cn108", [(0, 0, -6, pids[2])]))
    log.add(
        "srun: error: cn112: task 2: Exited with exit code 1",
        "srun: error: cn108: task 0: Exited with exit code 1",
        "srun: error: cn113: task 3: Exited with exit code 1",
    )
