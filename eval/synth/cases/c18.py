"""s077 to s080."""

from __future__ import annotations

from synth import torch_text as tt
from synth.hosts_text import Kernel, chatter, pyspy, smi, table
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s077", "healthy", "none", "none",
    source="a file with three runs of one job: the first lost a node, the second was preempted, the third trained to the end",
    why="The last of the three runs resumes from step 14000, reaches step 20000, writes the final model and ends with 0; the node failure and the preemption belong to earlier runs.",
    tags="healthy multi-run slurm", nodes="", gpus=16, scheduler={"JobID": "310044", "State": "COMPLETED", "ExitCode": "0:0", "Restarts": 2},
)  # fmt: skip
def s077(c: Case) -> None:
    c.start("2025-01-20 06:00:03")
    log = c.file("esm-cell.310044.log")
    loss = Curve(c, 2.9, 1.4, 1500)
    for k, (first, last) in enumerate(((0, 9200), (9000, 14100), (14000, 20000))):
        nodes = hosts("ga", 20 + 4 * k, 4, 3)
        log.add(
            f"---- job 310044 begins at {c.t()} on {','.join(nodes)} (restart count {k}) ----",
            f"{c.t()} cellformer: 16 ranks, {'fresh weights' if k == 0 else f'resumed from /data/cf/step_{first}'}",
        )
        for s in range(first + 50, last + 1, 50):
            c.tick(41, 43)
            log.add(
                f"{c.t()} step {s:6d}/20000 mlm {loss(s):.4f} contact {loss(s) / 5:.4f} lr {2e-4 * (1 - s / 21000):.2e} {c.jitter(1.19):.2f} step/s"
            )
            if s % 1000 == 0:
                log.add(f"{c.t()} saved /data/cf/step_{s} (2.4 s)")
        if k == 0:
            log.add(
                "srun: error: Node failure on ga022",
                f"slurmstepd: error: *** STEP 310044.0 ON ga020 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
                weave(c.rng, [tt.watchdog(c, "2.4", r, 9211, "ALLREDUCE", numel=(8, 8)) for r in (0, 4, 12)], 4),
            )
            c.tick(900)
        elif k == 1:
            log.add(
                f"slurmstepd: error: *** JOB 310044 ON ga024 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} DUE TO PREEMPTION ***",
                "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
            )
            c.tick(4000)
    log.add(
        f"{c.t()} reached max_steps=20000, evaluating",
        f"{c.t()} test mlm 1.4121 perplexity 4.105",
        f"{c.t()} final model written to /data/cf/final",
        f"---- job 310044 ends at {c.t()} with 0 ----",
    )


@case(
    "s078", "hang", "config-error", "kill-and-restart escalate fix-and-resubmit",
    source="after the report of an all-reduce that never completes on a workstation because the IOMMU breaks the traffic between its GPUs",
    why="All four ranks stand in the same first all-reduce at 100 % load; the kernel runs with intel_iommu=on and logs DMAR faults of the GPUs from the moment P2P traffic began. Nobody is late, nothing in the job failed.",
    tags="hang kernel multi-file misleading", outcome="hung", also="nccl-timeout", also_outcome="failed", also_cls="hardware-failure", nodes="", gpus=4, mention=["iommu"], must_not="collective-mismatch storage-error network-error",
)  # fmt: skip
def s078(c: Case) -> None:
    c.start("2023-11-03 19:19:19")
    log = c.file("out.txt")
    log.add(f"started {c.t()} on atlas", "[./simpleP2P] - Starting...", "Checking for multiple GPUs...", *[f"> GPU{g} = \"   NVIDIA RTX A6000\" IS  capable of Peer-to-Peer (P2P)" for g in range(4)], "P2P Connectivity Matrix", "     D\\D     0     1     2     3", *[f"       {g}\t     1     1     1     1" for g in range(4)],
            "training: SDXL LoRA, 4 ranks", *[f"atlas:{7100 + g}:{7180 + g} [{g}] NCCL INFO Channel 00/0 : {g}[{g}] -> {(g + 1) % 4}[{(g + 1) % 4}] via P2P/CUMEM/read" for g in range(4)], *[f"atlas:{7100 + g}:{7180 + g} [{g}] NCCL INFO Connected all trees" for g in range(4)], "Steps:   0%|          | 0/1500 [00:00<?, ?it/s]")  # fmt: skip
    k = Kernel(c, up=190000)
    d = c.file("dmesg.txt")
    d.add(
        "[    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz-6.2.0-36-generic root=UUID=0d5b7c1e ro quiet splash intel_iommu=on",
        "[    0.412771] DMAR: IOMMU enabled",
        "[    1.002194] DMAR: Intel(R) Virtualization Technology for Directed I/O",
        e="intel_iommu=on",
    )
    d.add(chatter(c, k, 30, 150000))
    for i in range(24):
        d.add(
            k(
                f"DMAR: [DMA Write NO_PASID] Request device [{c.rng.choice(['17', '65', 'b3', 'ca'])}:00.0] fault addr 0x{c.hex(11)}000 [fault reason 0x05] PTE Write access is not set",
                -8 - i * 0.02,
            ),
            e=i == 0,
        )
    d.add(k("DMAR: DRHD: handling fault status reg 402", -9))
    c.tick(5400)
    for g in range(4):
        c.file(f"pyspy-{g}.txt").add(
            pyspy(
                7100 + g,
                f"python train_text_to_image_lora_sdxl.py (LOCAL_RANK={g})",
                [
                    (
                        f'{7100 + g} (active+gil): "MainThread"',
                        [
                            "synchronize (torch/cuda/streams.py:95)",
                            "step (accelerate/optimizer.py:145)",
                            "main (train_text_to_image_lora_sdxl.py:1211)",
                            "<module> (train_text_to_image_lora_sdxl.py:1311)",
                        ],
                    )
                ],
            )
        )
    c.file("smi.txt").add(
        smi(
            c,
            "NVIDIA RTX A6000",
            [(g, f"00000000:{b}:00.0", 51 + g, 98 + g, 40112, 100) for g, b in enumerate(("17", "65", "B3", "CA"))],
        )
    )


@case(
    "s079", "assertion-error", "config-error", "fix-and-resubmit",
    source="after the report of a device-side assertion in the loss because a label equals the number of classes",
    why="The loss kernel asserts t >= 0 && t < n_classes; the data set has labels up to 79077 and the model was made with num_classes 79077 (two lines of the head). THCudaCheck and the storage error are echoes.",
    tags="misleading training", also="index-error cuda-error", also_cls="data-error software-bug", nodes="", gpus=4, mention=["label|class"], must_not="native-crash out-of-memory",
)  # fmt: skip
def s079(c: Case) -> None:
    c.start("2017-09-06 20:12:00")
    c.site, c.root = "/home/hw/.local/lib/python2.7/site-packages", "/home/hw/LightCNN"
    log = c.file("train_lcnn29.txt")
    log.add(
        "LightCNN_29Layers(",
        "  (fc2): Linear(in_features=256, out_features=79077)",
        ")",
        "num_classes: 79077, train list: /data/msceleb/MS-Celeb-1M_clean.txt (5049824 images, labels 1..79077)",
        "4 x TITAN X (Pascal)",
        e="79077)",
    )
    loss = Curve(c, 11.3, 8.0, 2000)
    for i in range(0, 3900, 100):
        c.tick(50, 60)
        log.add(
            f"Epoch: [0][{i}/39452]\tTime {c.f(0.5, 0.6):.3f} ({0.55:.3f})\tData {c.f(0, 0.1):.3f} (0.012)\tLoss {loss(i):.4f} ({loss(i):.4f})\tPrec@1 {c.f(0, 2):.3f} (0.4)\tPrec@5 {c.f(0, 6):.3f} (1.1)"
        )
    log.add(
        *[
            "/b/wheel/pytorch-src/torch/lib/THCUNN/ClassNLLCriterion.cu:101: void cunn_ClassNLLCriterion_updateOutput_kernel(Dtype *, Dtype *, Dtype *, long *, Dtype *, int, int, int, int) [with Dtype = float, Acctype = float]: block: [0,0,0], thread: [%d,0,0] Assertion `t >= 0 && t < n_classes` failed.".replace(
                "%d", str(t)
            )
            for t in (11, 19, 27)
        ],
        e="t < n_classes",
    )
    log.add("THCudaCheck FAIL file=/b/wheel/pytorch-src/torch/lib/THC/generic/THCStorage.c line=32 error=59 : device-side assert triggered", tb(c, """
        train.py:291 <module> | main()
        train.py:160 main | train(train_loader, model, criterion, optimizer, epoch)
        train.py:204 train | losses.update(loss.data[0], input.size(0))
        """, "RuntimeError: cuda runtime error (59) : device-side assert triggered at /b/wheel/pytorch-src/torch/lib/THC/generic/THCStorage.c:32"))  # fmt: skip
    log.add(
        "terminate called after throwing an instance of 'std::runtime_error'",
        "  what():  cuda runtime error (59) : device-side assert triggered at /b/wheel/pytorch-src/torch/lib/THC/generic/THCStorage.c:182",
        "Aborted (core dumped)",
    )


@case(
    "s080", "preempted", "operator-action", "restart",
    source="a training on spot instances of which one was reclaimed by the provider while the others printed lost connections",
    why="The instance of worker 5 got a reclaim notice (node events: PreemptScheduled, taint, then deletion) two minutes before its pod ended; all lost connections of the other workers name it.",
    tags="misleading interrupted kubernetes scheduler multi-file multi-node", also="node-failure", also_outcome="failed", also_cls="none", nodes="aks-spot-000005", gpus=64, mention=["spot|preempt|reclaim|evict"], must_not="connection-error nccl-remote-error cancelled network-error",
)  # fmt: skip
def s080(c: Case) -> None:
    c.start("2024-12-19 15:30:00")
    c.site = "/usr/local/lib/python3.10/dist-packages"
    log = c.file("stern.txt")
    log.add(
        [
            f"vit22b-worker-{i} pytorch [rank{i * 8}]: {c.t()} up on aks-spot-{i:06d}, world 64"
            for i in c.rng.sample(range(8), 8)
        ]
    )
    loss = Curve(c, 6.9, 2.1, 400)
    for s in range(20, 4400, 20):
        c.tick(19, 21)
        log.add(f"vit22b-worker-0 pytorch {c.t()} step {s} loss {loss(s):.4f} images/s {c.jitter(5120, 0.02):.0f}")
        if s % 1000 == 0:
            log.add(f"vit22b-worker-0 pytorch {c.t()} checkpoint step_{s} uploaded to blob (412 s in the background)")
    gone = c.now
    c.tick(31)
    log.add(f"vit22b-worker-5 pytorch {c.t()} received SIGTERM, asking for a checkpoint at the next step", e=True)
    c.tick(30)
    rows = []
    for r in c.rng.sample([r for r in range(64) if r // 8 != 5], 30):
        rows.append(pre(f"vit22b-worker-{r // 8} pytorch [rank{r}]: ", [*tb(c, "/app/train.py:390 <module> | main()\n$S/torch/distributed/distributed_c10d.py:2219 all_reduce | work = group.allreduce([tensor], opts)", ["torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2027, remote process exited or there was a network error, NCCL version 2.20.5",
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "Last error:", f"socketProgress: Connection closed by remote peer aks-spot-000005.internal.cloudapp.net<{c.n(30000, 60000)}>"])]))  # fmt: skip
    log.add(weave(c.rng, rows, 7))
    e = c.file("kubectl-events.txt")
    ago = int((c.now - gone).total_seconds())
    e.add("$ kubectl get events -A --sort-by=.lastTimestamp | grep -E 'aks-spot-000005|vit22b'", table(["default|8m|Normal|NodeReady|node/aks-spot-000002|Node aks-spot-000002 status is now: NodeReady", f"default|{ago + 90}s|Warning|PreemptScheduled|node/aks-spot-000005|Preempt Scheduled: {c.t('%a, %d %b %Y %H:%M:%S GMT')}. DurationInSeconds: -1", f"default|{ago + 60}s|Normal|Drain|node/aks-spot-000005|node-termination-handler cordoned and drains the node",
          f"vision|{ago + 30}s|Normal|Killing|pod/vit22b-worker-5|Stopping container pytorch", f"default|{ago}s|Normal|DeletingNode|node/aks-spot-000005|Deleting node aks-spot-000005 because it does not exist in the cloud provider", "vision|9s|Warning|Restarting|pytorchjob/vit22b|PyTorchJob vit22b is restarting because 1 Worker replica(s) failed."]), e="node/aks-spot-000005")  # fmt: skip
