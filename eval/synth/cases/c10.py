"""s045 to s048."""

from __future__ import annotations

from synth import nccl_text as nccl
from synth.frameworks import pl_head, pl_steps, titan_head, titan_steps, warning
from synth.hosts_text import Kernel, chatter, describe, events, pyspy, smi, table
from synth.kit import Case, Curve, case, tb


@case(
    "s045", "disk-full", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a model save that fails with an input/output error because the server's disk was full",
    why="The write of the checkpoint fails with EIO; the df that the script prints after each save shows the export going 93, 97, 100 %: the server is full and says it as an I/O error.",
    tags="misleading storage training", also="storage-error os-error", nodes="", gpus=4, mention=["full|space|100"], must_not="checkpoint-corrupt runtime-error",
)  # fmt: skip
def s045(c: Case) -> None:
    c.start("2020-11-09 18:00:27")
    c.site, c.root = "/home/yuki/miniconda3/lib/python3.7/site-packages", "/home/yuki/voc-gan"
    log = c.file("train.txt")
    log.add(
        "4 x GeForce RTX 2080 Ti",
        "generator 14.1M, discriminator 70.7M (MSD) + 41.1M (MPD)",
        warning(c, 6, "torch/optim/lr_scheduler.py"),
    )
    loss, used = Curve(c, 60, 21, 2000), 86
    for step in range(100, 40100, 100):
        c.tick(39, 41)
        log.add(
            f"Steps : {step:d}, Gen Loss Total : {loss(step):4.3f}, Mel-Spec. Error : {loss(step) / 45:4.3f}, s/b : {c.jitter(0.4):4.3f}"
        )
        if step % 5000 == 0:
            used += 2 if step < 35000 else 0
            if step == 40000:
                break
            log.add(
                f"Saving checkpoint to /mnt/nas2/vocgan/g_{step:08d}",
                "Complete.",
                f"Saving checkpoint to /mnt/nas2/vocgan/do_{step:08d}",
                "Complete.",
                f"nas2:/export/ml  11T   {11 * used / 100:.1f}T  {11 - 11 * used / 100:.1f}T  {used}% /mnt/nas2",
            )
    log.add("nas2:/export/ml  11T    11T     0 100% /mnt/nas2", e=True)
    log.add("Saving checkpoint to /mnt/nas2/vocgan/g_00040000", tb(c, """
        train.py:271 <module> | main()
        train.py:267 main | train(0, a, h)
        train.py:187 train | save_checkpoint(checkpoint_path, {'generator': (generator.module if h.num_gpus > 1 else generator).state_dict()})
        utils.py:51 save_checkpoint | torch.save(obj, filepath)
        $S/torch/serialization.py:376 _legacy_save | serialized_storages[key]._write_file(f, _should_read_directly(f))
        """, "RuntimeError: write(): fd 29 failed with Input/output error"), e="Input/output error")  # fmt: skip
    log.add(
        "terminate called after throwing an instance of 'c10::Error'",
        '  what():  owning_ptr == NullType::singleton() || owning_ptr->refcount_.load() > 0 INTERNAL ASSERT FAILED at "/pytorch/c10/util/intrusive_ptr.h":348, please report a bug to PyTorch. intrusive_ptr: Can only intrusive_ptr::reclaim() owning pointers that were created using intrusive_ptr::release().',
        "Aborted (core dumped)",
    )


@case(
    "s046", "connection-error", "config-error", "restart fix-and-resubmit",
    source="after the report of a worker that cannot resolve its master although the init container's look-up passed",
    why="Worker 2's init container saw the name once, then the trainer's TCPStore gets 'Name or service not known' for the headless service; the other workers time out waiting for it (3 of 4 joined).",
    tags="kubernetes multi-file", also="launch-failure network-error", also_cls="network-failure dependency-failure", nodes="", ranks="2", gpus=4, mention=["dns|resolve|name|host not found"], must_not="nccl-timeout node-failure",
)  # fmt: skip
def s046(c: Case) -> None:
    c.start("2021-03-01 09:15:12")
    c.site, c.root = "/opt/conda/lib/python3.7/site-packages", "/opt/mnist"
    frames = "dist_train.py:177 <module> | main()\ndist_train.py:91 main | dist.init_process_group(backend=args.backend)\n$S/torch/distributed/distributed_c10d.py:436 init_process_group | store, rank, world_size = next(rendezvous_iterator)\n$S/torch/distributed/rendezvous.py:179 _env_rendezvous_handler | store = TCPStore(master_addr, master_port, world_size, start_daemon, timeout)"
    w = c.file("worker-2.log")
    w.add(
        "[init-pytorch] Server:    10.96.0.10",
        "[init-pytorch] Address 1: 10.96.0.10 kube-dns.kube-system.svc.cluster.local",
        "[init-pytorch] nslookup: can't resolve 'ocr-dist-master-0': Name does not resolve",
        "[init-pytorch] waiting for master",
        "[init-pytorch] Name:      ocr-dist-master-0",
        "[init-pytorch] Address 1: 10.244.2.61 10-244-2-61.ocr-dist-master-0.cv.svc.cluster.local",
    )
    w.add(
        f"{c.t()} Using CUDA, backend nccl, MASTER_ADDR=ocr-dist-master-0 MASTER_PORT=23456 WORLD_SIZE=4 RANK=2",
        tb(c, frames, "ValueError: host not found: Name or service not known"),
        e="host not found",
    )
    for r in (0, 1, 3):
        f = c.file("master-0.log" if r == 0 else f"worker-{r}.log")
        f.add(f"{c.t()} Using CUDA, backend nccl, MASTER_ADDR={'localhost' if r == 0 else 'ocr-dist-master-0'} MASTER_PORT=23456 WORLD_SIZE=4 RANK={r}", *[f"{c.t(ago=-60 * i)} waiting in init_process_group ({i} min)" for i in range(1, 31)],
              tb(c, frames, "RuntimeError: connect() timed out." if r else "RuntimeError: Timed out after 1801 seconds waiting for clients. 3/4 clients joined."), e="3/4 clients" if r == 0 else False)  # fmt: skip
    c.tick(1815)
    p = c.file("pods.txt")
    p.add(
        table(
            [
                "NAME|READY|STATUS|RESTARTS|AGE",
                "ocr-dist-master-0|0/1|Error|0|31m",
                "ocr-dist-worker-0|0/1|Error|0|31m",
                "ocr-dist-worker-1|0/1|Error|0|31m",
                "ocr-dist-worker-2|0/1|Error|0|31m",
            ]
        )
    )


@case(
    "s047", "nvlink-error", "hardware-failure", "kill-and-restart restart-excluding escalate",
    source="after the report of an all-gather that never completes on new GPUs and looks like a deadlock, while the kernel log has NVLink errors",
    why="All ranks are in the same all-gather and no log of the job has an error; the kernel log of gb-14 has Xid 145 and 137 on link 11 of one GPU at the second of the last step.",
    tags="misleading hang hardware kernel multi-file multi-node", outcome="hung", also="hang", also_outcome="failed", nodes="gb-14", gpus=16, mention=["nvlink|xid"], must_not="nccl-timeout collective-mismatch storage-error",
)  # fmt: skip
def s047(c: Case) -> None:
    c.start("2025-11-12 20:00:01")
    log = c.file("job.log")
    names = ["gb-11", "gb-12", "gb-13", "gb-14"]
    log.add(
        nccl.init(c, names, 4, "2.27.3", "12.9", channels=2, rings=False),
        titan_head(c, "qwen3_30b_a3b.toml", "2-D device mesh with ['dp_shard', 'ep'], [4, 4]", "30,532,122,624"),
    )
    log.add(titan_steps(c, 1, 4161, sec=3.9, loss=Curve(c, 12.0, 2.2, 300), mem=(141.2, 76.1), tps=5100))
    k = Kernel(c, "gb-14")
    d = c.file("host/gb-14.dmesg")
    d.add(chatter(c, k, 40, 90000))
    d.add(
        k(
            "NVRM: Xid (PCI:0018:01:00): 145, pid=88121, name=python, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (0x00001000 0x80000000 0x00000000 0x00000000 0x00000000 0x00000000)",
            -1.2,
        ),
        k(
            "NVRM: Xid (PCI:0018:01:00): 137, pid=88121, name=python, RLW_RXPIPE interrupt hit on link 11 on GPU2: PRIV Error",
            -1.2,
        ),
        e=True,
    )
    d.add(
        k("NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Getting peer2's postRxDetLinkMask failed!", -1.3),
        k(
            "NVRM: Xid (PCI:0018:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            -1.3,
        ),
    )
    for name in names[:3]:
        c.file(f"host/{name}.dmesg").add(chatter(c, Kernel(c, name), 25, 90000))
    c.tick(2400)
    for r in range(16):
        c.file(f"stacks/rank{r:02d}.txt").add(pyspy(88100 + r % 4, f"/opt/venv/bin/python -u train.py --rank {r}", [
            (f"{88100 + r % 4} (active): \"MainThread\"", ["synchronize (torch/cuda/__init__.py:985)", "wait_for_unshard (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py:331)", "_pre_forward (torch/distributed/fsdp/_fully_shard/_fsdp_state.py:237)", "_call_impl (torch/nn/modules/module.py:1827)", "train_step (train.py:402)", "<module> (train.py:511)"]),
            (f"{88500 + r % 4} (idle): \"pt_data_pin\"", ["wait (threading.py:331)", "get (queue.py:180)", "do_one_step (torch/utils/data/_utils/pin_memory.py:37)"])], "3.12.11"))  # fmt: skip
    s = c.file("host/gb-14.smi.txt")
    s.add(
        smi(
            c,
            "NVIDIA GB200",
            [
                (g, f"000000{b}:01:00.0", c.n(41, 48), c.n(240, 270), c.n(151000, 152000), 100)
                for g, b in enumerate(("08", "09", "18", "19"))
            ],
            driver="580.65.06",
            cuda="13.0",
        )
    )


@case(
    "s048", "disk-full", "config-error", "fix-and-resubmit",
    source="after the report of a tuning pod that was evicted because its checkpoints filled the node's own disk",
    why="The pod was evicted for ephemeral storage: it used 1.4 TB on the node against a request of 0; the checkpoints went to /tmp/out. Exit 137 is the eviction, not memory.",
    tags="misleading kubernetes multi-file", also="launch-failure", also_outcome="interrupted", also_cls="resource-exhaustion", nodes="", gpus=8, mention=["ephemeral|disk|storage"], must_not="host-out-of-memory preempted node-failure cancelled",
)  # fmt: skip
def s048(c: Case) -> None:
    c.start("2024-04-03 11:40:00")
    log = c.file("logs-previous.txt")
    log.add(pl_head(c, 8, 8, [("model", "PeftModelForCausalLM", "13.1 B"), ("val_ppl", "Perplexity", "0")], "13.1 B"))
    loss = Curve(c, 1.8, 0.9, 300)
    for e in range(9):
        log.add(
            pl_steps(c, e, 400, sec=2.2, loss=loss, every=10),
            f"Epoch {e}, global step {400 * (e + 1)}: 'val_ppl' was not in top 20, saving last to '/tmp/out/epoch={e}-step={400 * (e + 1)}' (zero_to_fp32 folder 156.1 GB)",
        )
    log.add(pl_steps(c, 9, 400, sec=2.2, loss=loss, every=10, last=180))
    d = c.file("describe.txt")
    d.add(describe(c, "sft-llama13b-7c9f4", ns="tuning", node="gpu-worker-11.lab/10.9.0.31", ip="10.130.4.19", labels=["app=sft", "job-name=sft-llama13b"], status="Failed", container=["State:          Terminated", "  Reason:       Error", "  Exit Code:    137", f"  Started:      {c.begun:%a, %d %b %Y %H:%M:%S} +0000", f"  Finished:     {c.t('%a, %d %b %Y %H:%M:%S')} +0000", "Ready:          False", "Restart Count:  0", "Limits:", "  memory:          800Gi", "  nvidia.com/gpu:  8"],
                   requests=["memory:          800Gi", "nvidia.com/gpu:  8"], image="images.tuning.example/sft:2024.3", extra=["Reason:           Evicted", "Message:          The node was low on resource: ephemeral-storage. Threshold quantity: 189024337920, available: 184219920Ki. Container pytorch was using 1498072868Ki, request is 0, has larger consumption of ephemeral-storage. "]), e="ephemeral-storage")  # fmt: skip
    d.add(
        events(
            [
                "Warning|Evicted|6m|kubelet|The node was low on resource: ephemeral-storage. Threshold quantity: 189024337920, available: 184219920Ki. Container pytorch was using 1498072868Ki, request is 0, has larger consumption of ephemeral-storage.",
                "Normal|Killing|6m|kubelet|Stopping container pytorch",
                "Warning|ExceededGracePeriod|5m50s|kubelet|Container runtime did not kill the pod within specified grace period.",
            ]
        ),
        e="Evicted",
    )
