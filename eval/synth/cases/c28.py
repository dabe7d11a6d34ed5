"""s117 to s120."""

from __future__ import annotations

from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import tf_head
from synth.hosts_text import Kernel, chatter, describe, events, smi
from synth.kit import Case, Curve, case
from synth.slurm_text import hosts, sacct


@case(
    "s117", "unknown", "unknown", "restart escalate fix-and-resubmit",
    source="a pod that ended with code 1 whose log was rotated away, so that only the platform's tables are left",
    why="Container exit code 1, reason Error, and the log could not be read (rotated); back-off and the job's failure follow. Nothing says what the program met: the previous log or the archive must be fetched.",
    tags="unknown kubernetes misleading", status="unknown hypothesis", also="called-process-error", also_outcome="unknown", nodes="", gpus=8, mention=["log"], must_not="host-out-of-memory preempted node-failure launch-failure cancelled",
)  # fmt: skip
def s117(c: Case) -> None:
    c.start("2025-03-19 06:06:00")
    d = c.file("describe.txt")
    d.add(
        describe(
            c,
            "asr-joint-0",
            ns="voice",
            node="gpu-a-09/10.3.1.9",
            ip="10.244.1.77",
            labels=["job-name=asr-joint", "controller-uid=" + c.hex(8)],
            status="Failed",
            container=[
                "State:          Terminated",
                "  Reason:       Error",
                "  Exit Code:    1",
                f"  Started:      {c.t('%a, %d %b %Y %H:%M:%S')} +0000",
                f"  Finished:     {c.t('%a, %d %b %Y %H:%M:%S', ago=-25600)} +0000",
                "Ready:          False",
                "Restart Count:  0",
            ],
            requests=["nvidia.com/gpu:  8", "memory:  700Gi"],
            image="voice/asr:5.2.0",
        ),
        e="Exit Code:    1",
    )
    c.tick(25600)
    d.add(
        events(
            [
                'Normal|Pulled|7h8m|kubelet|Successfully pulled image "voice/asr:5.2.0" in 41.2s',
                "Normal|Started|7h8m|kubelet|Started container pytorch",
                "Warning|BackoffLimitExceeded|90s|job-controller|Job has reached the specified backoff limit",
            ]
        )
    )
    t = c.file("logs.txt")
    t.add(
        "$ kubectl -n voice logs asr-joint-0 --tail=-1",
        f'failed to try resolving symlinks in path "/var/log/pods/voice_asr-joint-0_{c.hex(8)}/pytorch/0.log": lstat /var/log/pods/voice_asr-joint-0_{c.hex(8)}/pytorch/0.log: no such file or directory',
        "$ kubectl -n voice logs asr-joint-0 --previous",
        'Error from server (BadRequest): previous terminated container "pytorch" in pod "asr-joint-0" not found',
    )
    m = c.file("metrics.csv")
    m.add("time,gpu_util_mean,host_mem_gb,net_rx_mb_s")
    for k in range(420):
        m.add(f"{c.t('%H:%M', 25600 - k * 60)},{c.f(93, 98):.1f},{c.f(301, 309):.1f},{c.f(180, 210):.0f}")


@case(
    "s118", "hang", "unknown", "kill-and-restart escalate",
    source="a job that stands still with all GPUs at full load and no error anywhere; what was collected does not tell the cause",
    why="Nothing was printed for more than two hours at five seconds a step while all 32 GPUs spin at low power inside a collective; kernel logs and links are clean. Which rank is behind is not shown: stacks of all ranks or a flight recorder are needed.",
    tags="hang unknown multi-node", outcome="hung", also="unknown nccl-timeout", also_outcome="unknown", status="hypothesis unknown", nodes="", gpus=32, mention=["progress|stack|py-spy|flight recorder|collective"], must_not="gpu-lost storage-error network-error ecc-error",
)  # fmt: skip
def s118(c: Case) -> None:
    c.start("2024-06-06 06:06:06")
    names = hosts("az-", 1, 4, 2)
    log = c.file("stdout.txt")
    log.add(
        nccl.init(c, names, 8, "2.19.4", "12.2", channels=2, rings=False),
        "watchdog is off (TORCH_NCCL_ASYNC_ERROR_HANDLING=0)",
    )
    loss = Curve(c, 10.0, 2.8, 300)
    for s in range(1, 1422):
        c.tick(5, 5.2)
        log.add(f"{c.t('%H:%M:%S')} s{s} ce {loss(s):.4f} {c.jitter(51.0, 0.01):.1f} k tok/s")
    log.marked[len(log.rows)] = log.rows[-1]
    c.tick(8000)
    for n, name in enumerate(names):
        f = c.file(f"smi-{name}.txt")
        f.add(
            smi(
                c,
                "NVIDIA H100 80GB HBM3",
                [
                    (
                        g,
                        f"00000000:{nccl.BUS_H100[g][:2].upper()}:00.0",
                        c.n(37, 43),
                        c.n(117, 126),
                        71000 + c.n(0, 400),
                        100,
                    )
                    for g in range(8)
                ],
                [(g, 5100 + g, "python", 70990) for g in range(8)],
            )
        )
        d = c.file(f"dmesg-{name}.txt")
        d.add(chatter(c, Kernel(c, name), 20 + n, 100000))


@case(
    "s119", "healthy", "none", "none",
    source="a finished TensorFlow run on a node whose kernel log has corrected PCIe and memory errors and single-bit notices of the switch",
    why="All hardware lines are corrected errors (AER corrected, EDAC CE, SXid of single-bit kind, no Xid); epoch 90 of 90 ended and accounting says COMPLETED 0:0.",
    tags="healthy kernel slurm", nodes="", gpus=8, scheduler={"JobID": "66021", "State": "COMPLETED", "ExitCode": "0:0"},
)  # fmt: skip
def s119(c: Case) -> None:
    c.start("2023-03-03 09:00:00")
    log = c.file("keras-r101.out")
    log.add(
        tf_head(c),
        f"{c.t('%Y-%m-%d %H:%M:%S.%f')}: E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:9342] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
        f"{c.t('%Y-%m-%d %H:%M:%S.%f')}: W tensorflow/core/grappler/optimizers/data/auto_shard.cc:784] AUTO sharding policy will apply DATA sharding policy as it failed to apply FILE sharding policy because of the following reason: Found an unshardable source dataset",
    )
    loss = Curve(c, 6.8, 0.9, 12)
    for e in range(1, 91):
        c.tick(205, 210)
        log.add(
            f"Epoch {e}/90",
            f"625/625 - {c.n(205, 210)}s - loss: {loss(e):.4f} - accuracy: 0.{c.n(4000, 7000)} - val_loss: {loss(e) * 1.2:.4f} - val_accuracy: 0.{c.n(4000, 7000)} - {c.n(205, 210)}s/epoch - 329ms/step",
        )
    log.add(
        "Final top-1: 0.7793",
        "Saved SavedModel to /data/out/r101",
        sacct("JobID|State|ExitCode|Elapsed", ["66021|COMPLETED|0:0|05:12:20"]),
    )
    k = Kernel(c, "dgxa-14")
    d = c.file("syslog-dgxa-14.txt")
    d.add(chatter(c, k, 60, 18000))
    rows = []
    for ago in (17000, 12000, 9000, 4000):
        rows += [
            k("pcieport 0000:00:03.1: AER: Corrected error received: 0000:01:00.0", ago),
            k("nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", ago),
            k("EDAC skx MC1: 1 CE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#1", ago - 20),
            k(
                "nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12023, Non-fatal, Link 30 egress nonposted single-bit error",
                ago - 40,
            ),
        ]
    rows.append(k("mce: [Hardware Error]: Machine check events logged", 3000))
    d.add(rows)


@case(
    "s120", "healthy", "none", "none",
    source="an elastic run in which a worker group failed once, was restarted from the last checkpoint by the agent and trained to the end",
    why="The agent restarted the group after the failure at step 610 (1 of 3 restarts used) and the run went on from step 600 to 2000 and ended with SUCCEEDED; the first failure was covered.",
    tags="healthy training", nodes="", gpus=8,
)  # fmt: skip
def s120(c: Case) -> None:
    c.start("2025-02-02 22:00:10")
    c.site = "/opt/el/lib/python3.11/site-packages"
    log = c.file("elastic.out")
    log.add(
        tt.agent(c, "2.5", "INFO", 717, "[default] starting workers for entrypoint: train_rec.py", "agent/server/api")
    )
    loss = Curve(c, 0.69, 0.44, 150)
    for first, last in ((0, 610), (600, 2000)):
        log.add(f"[rank0] {c.t()} resuming at step {first}" if first else f"[rank0] {c.t()} new run")
        for s in range(first + 1, last + 1, 3):
            c.tick(5, 6)
            log.add(f"[rank0] {c.t()} step {s} bce {loss(s):.5f} auc {0.8 - loss(s) / 20:.4f}")
        if last == 610:
            log.add("[rank6]: torch.distributed.DistNetworkError: failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?", tt.sigterm(c, "2.5", c.pids(7, 4000)), tt.exits(c, "2.5", 1, 6, 4006),
                    tt.agent(c, "2.5", "INFO", 896, "[default] Worker group FAILED. 3/3 attempts left; will restart worker group", "agent/server/api"), tt.agent(c, "2.5", "INFO", 699, "[default] Stopping worker group", "agent/server/api"), tt.agent(c, "2.5", "INFO", 678, "[default] Rendezvous'ing worker group", "agent/server/api"))  # fmt: skip
            c.tick(40)
    log.add(
        f"[rank0] {c.t()} training finished, best auc 0.7790",
        tt.agent(
            c,
            "2.5",
            "INFO",
            879,
            "[default] worker group successfully finished. Waiting 300 seconds for other agents to finish.",
            "agent/server/api",
        ),
        tt.agent(
            c,
            "2.5",
            "INFO",
            932,
            "Local worker group finished (WorkerState.SUCCEEDED). Waiting 300 seconds for other agents to finish",
            "agent/server/api",
        ),
    )
