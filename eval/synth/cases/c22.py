"""s093 to s096."""

from __future__ import annotations

from synth.frameworks import titan_head, titan_steps
from synth.hosts_text import Kernel, chatter, describe, events, table
from synth.kit import Case, Curve, case, pre, tb, weave


@case(
    "s093", "healthy", "none", "none",
    source="a job on Kubernetes that completed after its first pod had to wait for a volume and its sidecar restarted",
    why="The pod's trainer container ended Completed with code 0 after the last epoch; the failed mounts and probes lie in the first minutes, the restarts belong to a metrics sidecar.",
    tags="healthy kubernetes", nodes="", gpus=8,
)  # fmt: skip
def s093(c: Case) -> None:
    c.start("2025-01-29 07:00:00")
    log = c.file("logs.txt")
    log.add(
        "waiting for /data to appear ... not there yet",
        "waiting for /data to appear ... not there yet",
        "/data is there",
        "8 x L40S, model segformer-b5, 160 epochs",
    )
    loss = Curve(c, 1.9, 0.3, 30)
    for e in range(160):
        c.tick(58, 61)
        log.add(
            f"{c.t()} epoch {e + 1}/160 loss {loss(e):.4f} mIoU {0.84 - loss(e) / 10:.4f} lr {6e-5 * (1 - e / 160):.2e}"
        )
        if e in (30, 31, 90):
            log.add(
                f"{c.t()} WARNING: mlflow: POST /api/2.0/mlflow/runs/log-batch failed with 503, will retry",
                f"{c.t()} mlflow: retry succeeded",
            )
    log.add(f"{c.t()} best mIoU 0.8073 at epoch 157, exported to /data/out/segformer.onnx", f"{c.t()} done")
    d = c.file("describe.txt")
    d.add(
        describe(
            c,
            "segformer-train-x9k2p",
            ns="geo",
            node="edge-l40s-3/10.4.0.13",
            ip="10.42.7.18",
            labels=["job-name=segformer-train"],
            status="Succeeded",
            container=[
                "State:          Terminated",
                "  Reason:       Completed",
                "  Exit Code:    0",
                "Ready:          False",
                "Restart Count:  0",
            ],
            requests=["nvidia.com/gpu:  8"],
            image="registry.geo.example/segformer:3.1",
        )
    )
    d.add(
        "  metrics:",
        "    Image:          registry.geo.example/dcgm-push:0.9",
        "    State:          Terminated",
        "      Reason:       Completed",
        "      Exit Code:    0",
        "    Last State:     Terminated",
        "      Reason:       OOMKilled",
        "      Exit Code:    137",
        "    Restart Count:  4",
    )
    d.add(events(["Warning|FailedMount|162m (x3 over 164m)|kubelet|MountVolume.SetUp failed for volume \"data\" : rpc error: code = DeadlineExceeded desc = context deadline exceeded", "Normal|Pulled|161m|kubelet|Container image already present on machine", "Normal|Started|161m|kubelet|Started container pytorch",
                  "Warning|Unhealthy|159m (x2 over 160m)|kubelet|Readiness probe failed: Get \"http://10.42.7.18:9400/health\": dial tcp 10.42.7.18:9400: connect: connection refused", "Warning|BackOff|31m (x6 over 80m)|kubelet|Back-off restarting failed container metrics in pod segformer-train-x9k2p_geo"]))  # fmt: skip


@case(
    "s094", "launch-failure", "config-error", "fix-and-resubmit",
    source="after the report of a start barrier that names seven of eight tasks because only one process was launched",
    why="num_processes is 8 in the configuration but the launch line starts one process, on worker 0 (task 0 alone logs anything), so tasks 1 to 7 never joined.",
    tags="training", also="hang connection-error argument-error runtime-error", nodes="", ranks="1 2 3 4 5 6 7", gpus=8, mention=["num_processes|never|joined|task"], must_not="node-failure nccl-timeout preempted",
)  # fmt: skip
def s094(c: Case) -> None:
    c.start("2023-11-25 18:18:10")
    c.site, c.root = "/home/ayaka/llama-2-jax/venv/lib/python3.11/site-packages", "/home/ayaka/llama-2-jax"
    log = c.file("train-v4.log")
    log.add(
        "$ gcloud compute tpus tpu-vm ssh llama-v3 --worker=0 --command='cd llama-2-jax && python train.py --coordinator 10.164.0.5:1456 --num_processes 8 --process_id 0'",
        f"I{c.t('%m%d %H:%M:%S.%f')} 140042 distributed.py:79] Starting JAX distributed service on 10.164.0.5:1456",
        f"I{c.t('%m%d %H:%M:%S.%f')} 140042 distributed.py:96] Connecting to JAX distributed service on 10.164.0.5:1456",
        e="--num_processes 8",
    )
    c.tick(301)
    err = "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed out task names:"
    log.add(f"{c.t('%Y-%m-%d %H:%M:%S.%f')}: E external/tsl/tsl/distributed_runtime/coordination/coordination_service_agent.cc:493] Failed to connect to coordination service after 300 s", tb(c, "train.py:212 <module> | main()\ntrain.py:150 main | jax.distributed.initialize(args.coordinator, num_processes=args.num_processes, process_id=args.process_id)\n$S/jax/_src/distributed.py:171 initialize | global_state.initialize(coordinator_address, num_processes, process_id,\n$S/jax/_src/distributed.py:108 initialize | self.client.connect()",
            [err, *[f"/job:jax_worker/replica:0/task:{i}" for i in (3, 1, 7, 2, 5, 6, 4)]]), e="task")  # fmt: skip
    log.add(
        "terminate called without an active exception",
        "Fatal Python error: Aborted",
        "",
        "bash: line 1: 140042 Aborted (core dumped)",
        "ERROR: (gcloud.compute.tpus.tpu-vm.ssh) Command execution on worker 0 failed with exit status 134.",
    )


@case(
    "s095", "nvlink-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of ranks killed with Xid 45 on several GPUs after an NVLink event on one of them",
    why="The first Xid on b300-7 is 149 (link down, fatal) on 0000:dc:00; the 145 and 45 of the other seven GPUs say 'caused by previous Xid 149'. All ranks of the node died, the GPU at fault is dc:00.",
    tags="misleading cascade hardware kernel multi-file multi-node", also="cuda-error", nodes="b300-7", gpus=16, mention=["nvlink|149"], must_not="nccl-remote-error network-error node-failure ecc-error",
)  # fmt: skip
def s095(c: Case) -> None:
    c.start("2026-02-20 04:44:44")
    c.site, c.root = "/opt/titan/lib/python3.12/site-packages", "/opt/titan/src"
    log = c.file("train-combined.log")
    log.add(
        titan_head(
            c, "llama4_17bx16e.toml", "3-D device mesh with ['dp_shard', 'tp', 'ep'], [2, 8, 8]", "108,641,802,240"
        ),
        titan_steps(c, 1, 2901, sec=7.7, loss=Curve(c, 12.2, 2.3, 300), mem=(231.4, 86.2), tps=3100),
    )
    k = Kernel(c)
    d = c.file("b300-7.dmesg.txt")
    d.add(chatter(c, k, 30, 100000))
    d.add(
        k(
            "NVRM: Xid (PCI:0000:dc:00): 149, pid=3320911, name=python, NETIR_LINK_EVT Fatal XC0 i0 Link 06 (0x00a00246 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
        ),
        e=True,
    )
    bus = ("18", "29", "3a", "4b", "9a", "ab", "bc", "dc")
    for i, b in enumerate(bus[:7]):
        d.add(
            k(
                f"NVRM: Xid (PCI:0000:{b}:00): 145, pid={3320904 + i}, name=python, RLW_REMAP Nonfatal XC0 i0 Link {c.n(0, 17):02d} (0x00000004 0x80000000 0x00000000 0x00000000 0x00000000 0x00000000)",
                -0.1 - i * 0.01,
            )
        )
    for i, b in enumerate(bus):
        d.add(
            k(
                f"NVRM: Xid (PCI:0000:{b}:00): 45, pid={3320904 + i}, name=python, Ch 000000{c.n(10, 60):02x}, caused by previous Xid {149 if b == 'dc' else 145}",
                -0.4 - i * 0.01,
            )
        )
    d.add(
        k(
            "NVRM: Xid (PCI:0000:dc:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            -0.6,
        )
    )
    q = c.file("b300-7.nvlink.txt")
    q.add(
        "$ nvidia-smi nvlink -s",
        *[
            line
            for g in range(8)
            for line in (
                [f"GPU {g}: NVIDIA B300 (UUID: GPU-{c.hex(8)})"]
                + (
                    ["NVML:Unable to retrieve Nvlink information as all links are inActive"]
                    if g == 7
                    else [f"\t Link {i}: 53.125 GB/s" for i in range(18)]
                )
            )
        ],
        e="inActive",
    )
    c.tick(1)
    rows = [
        pre(
            f"[rank{r}]: ",
            tb(
                c,
                "torchtitan/train.py:610 train_step | loss.backward()\n$S/torch/_tensor.py:647 backward | torch.autograd.backward(",
                [
                    "torch.AcceleratorError: CUDA error: unspecified launch failure",
                    "Search for `cudaErrorLaunchFailure' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
                    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                ],
            ),
        )
        for r in range(8, 16)
    ]
    log.add(weave(c.rng, rows, 5))
    log.add(
        weave(
            c.rng,
            [
                pre(
                    f"[rank{r}]: ",
                    [
                        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.28.9",
                        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
                    ],
                )
                for r in range(8)
            ],
            2,
        )
    )
    log.add("[agent b300-6] ranks 0-7 exited with 1", "[agent b300-7] ranks 8-15 exited with -6")


@case(
    "s096", "cancelled", "operator-action", "none restart",
    source="a training on Kubernetes that somebody deleted; the pods end with 143 and lost connections",
    why="The audit lines show `kubectl delete` of the job by a person; SIGTERM, exit code 143 and lost connections come within the grace period after it. There was no failure before.",
    tags="misleading interrupted kubernetes scheduler", nodes="", gpus=32, mention=["delete|person|user|cancel"], must_not="preempted node-failure nccl-remote-error time-limit connection-error",
)  # fmt: skip
def s096(c: Case) -> None:
    c.start("2025-07-01 12:12:00")
    log = c.file("worker-0.log")
    loss = Curve(c, 5.5, 1.2, 300)
    for s in range(1, 900):
        c.tick(11, 12)
        log.add(
            f"{c.t('%Y-%m-%dT%H:%M:%SZ')} INFO whisper-ft step={s} wer={loss(s) / 10:.4f} loss={loss(s):.4f} gpu_util=97%"
        )
    c.tick(8)
    log.add(
        f"{c.t('%Y-%m-%dT%H:%M:%SZ')} WARN received SIGTERM (grace period 30 s)",
        f"{c.t('%Y-%m-%dT%H:%M:%SZ')} ERROR rank 17 unreachable: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.60.2.14]:20311",
        f"{c.t('%Y-%m-%dT%H:%M:%SZ')} ERROR torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
        "command terminated with exit code 143",
    )
    a = c.file("audit.jsonl")
    for k in range(40):
        a.add(
            f'{{"kind":"Event","stage":"ResponseComplete","verb":"{c.rng.choice(["get", "list", "watch", "patch"])}","user":{{"username":"system:serviceaccount:kubeflow:training-operator"}},"objectRef":{{"resource":"pods","namespace":"speech","name":"whisper-ft-worker-{c.n(0, 3)}"}},"responseStatus":{{"code":200}},"requestReceivedTimestamp":"{c.t("%Y-%m-%dT%H:%M:%SZ", 4000 - k * 98)}"}}'
        )
    a.add(
        f'{{"kind":"Event","stage":"ResponseComplete","verb":"delete","user":{{"username":"marta.ruiz@lab.example","groups":["speech-admins"]}},"userAgent":"kubectl/v1.30.2","objectRef":{{"resource":"pytorchjobs","namespace":"speech","name":"whisper-ft","apiGroup":"kubeflow.org"}},"responseStatus":{{"code":200}},"requestReceivedTimestamp":"{c.t("%Y-%m-%dT%H:%M:%SZ", 2)}"}}',
        e=True,
    )
    e = c.file("events.txt")
    e.add(
        table(
            [
                "LAST SEEN|TYPE|REASON|OBJECT|MESSAGE",
                *[f"38s|Normal|Killing|pod/whisper-ft-worker-{i}|Stopping container pytorch" for i in range(4)],
                "37s|Normal|SuccessfulDeletePod|pytorchjob/whisper-ft|Deleted pod: whisper-ft-worker-0",
            ]
        )
    )
