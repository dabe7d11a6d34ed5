"""s113 to s116."""

from __future__ import annotations

from synth.frameworks import hf_head, hf_steps, titan_head, titan_steps
from synth.hosts_text import describe, events, table
from synth.kit import Case, Curve, case


@case(
    "s113", "loss-spike", "software-bug", "fix-and-resubmit rollback-and-skip",
    source="after the report of a loss that is worse after a resume than in the run that was not interrupted, because the state that was loaded is not the one saved",
    why="The last run resumes at step 4000 with loss 8.04 where the run before ended at 2.2, so the loaded state is wrong although loading reported no error; a guard in the script then stops the run.",
    tags="multi-run misleading training", also="checkpoint-corrupt value-error runtime-error", also_cls="unknown", nodes="", gpus=24, mention=["resume|loaded|checkpoint|state"], must_not="out-of-memory nccl-timeout",
)  # fmt: skip
def s113(c: Case) -> None:
    c.start("2025-09-16 11:25:00")
    log = c.file("titan-debug.log")
    loss = Curve(c, 12.0, 1.4, 300, 0.004)
    log.add(
        titan_head(c, "./llama3_8b_uneven.toml", "1-D device mesh with ['dp_shard'], [24]", "8,030,261,248"),
        titan_steps(c, 10, 4000, sec=2.2, loss=loss),
    )
    st = lambda: f"[rank0]:[titan] {c.t('%Y-%m-%d %H:%M:%S,%f3')} - root - INFO - "  # noqa: E731
    log.add(
        st() + "Saving the checkpoint (or staging if async is enabled).",
        st() + "Finished saving the checkpoint (or staging if async is enabled) in 9.87 seconds.",
        st() + "Sleeping 2 seconds for other ranks to complete",
        st() + "Training completed",
        st() + "Process group destroyed",
    )
    c.tick(600)
    log.add(
        titan_head(c, "./llama3_8b_uneven.toml", "1-D device mesh with ['dp_shard'], [24]", "8,030,261,248"),
        st() + "Loading the checkpoint from ./outputs/checkpoint/step-4000.",
        st() + "Finished loading the checkpoint in 21.04 seconds for step 4000.",
        st() + "state dict cache: on, 291 tensors, 12 unevenly sharded",
    )
    bad = Curve(c, 8.3, 4.6, 3, 0.001)
    log.add(titan_steps(c, 4001, 4007, sec=0.22, loss=lambda s: bad(s - 4000), every=1), e="step: 4001")  # type: ignore[arg-type]
    log.add(
        f"[rank0]:[titan] {c.t('%Y-%m-%d %H:%M:%S,%f3')} - root - ERROR - resume check: losses of steps 4001-4007 are above 1.5 times the last mean before the save (2.2); refusing to go on",
        e=True,
    )
    log.add("[rank0]: SystemExit: 17", *[f"[rank{r}]: SystemExit: 17" for r in c.rng.sample(range(1, 24), 23)])


@case(
    "s114", "healthy", "none", "none",
    source="a language model trained on console logs, whose printed samples look like failures; the run itself ends well",
    why="The frightening lines stand between 'sample' marks: they are text that the model wrote (it is trained on logs). The trainer's own lines go on to the last step and a clean end.",
    tags="healthy training", nodes="", gpus=8,
)  # fmt: skip
def s114(c: Case) -> None:
    c.start("2025-10-21 08:08:08")
    log = c.file("loglm-train.txt")
    log.add(
        "corpus: 41 GB of console logs of public CI systems, tokenizer byte-level",
        hf_head(1200000, 1, 16, 8, 1, 361000000),
    )
    loss = Curve(c, 5.0, 0.61, 400)
    samples = [
        "RuntimeError: CUDA error: uncorrectable ECC error encountered", "slurmstepd: error: *** JOB 81233 ON node07 CANCELLED AT 2021-03-02T11:20:01 DUE TO TIME LIMIT ***", "[rank3]:[E ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600099 milliseconds before timing out.",
        "Out of memory: Killed process 4121 (java) total-vm:8123456kB", "fatal error: cuda_runtime.h: No such file or directory", "Segmentation fault (core dumped)", "OSError: [Errno 28] No space left on device", "E: Unable to locate package libnccl2", "npm ERR! code ELIFECYCLE", "Error: Process completed with exit code 137.",
    ]  # fmt: skip
    for k in range(10):
        log.add(
            hf_steps(
                c, 900 * k + 30, 900 * k + 900, total=9000, per_epoch=9000, sec=0.9, loss=loss, every=30, bars=False
            )
        )
        log.add(
            f"----- sample at step {900 * k + 900} (temperature 0.8) -----",
            *c.rng.sample(samples, 4),
            "----- end of sample -----",
        )
    log.add(
        "{'train_runtime': 8101.3, 'train_samples_per_second': 148.1, 'train_loss': 0.8811, 'epoch': 1.0}",
        "saved /data/loglm/final (1.4 GB)",
        "all done, exit 0",
    )


@case(
    "s115", "healthy", "none", "none",
    source="a long tokenisation and training with thousands of slow-down answers of an object store, all retried, which completes",
    why="Every SlowDown and reset connection is followed by its retry, the summary says 0 failed shards and training ends with its final evaluation and code 0.",
    tags="healthy large storage", nodes="", gpus=16,
)  # fmt: skip
def s115(c: Case) -> None:
    c.start("2024-10-01 00:00:30")
    log = c.file("pipeline.log")
    for i in range(1, 6001):
        c.tick(0.4, 1.1)
        log.add(
            f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.convert shard {i:05d}: {c.n(30000, 34000)} documents, {c.n(60, 68)} MB"
        )
        if c.rng.random() < 0.12:
            log.add(
                f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} WARNING botocore.retries An error occurred (SlowDown) when calling the PutObject operation (reached max retries: 0): Please reduce your request rate.",
                f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.upload shard {i:05d}: attempt 2 of 10 succeeded after {c.f(0.5, 4):.1f} s",
            )
        if c.rng.random() < 0.01:
            log.add(
                f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} ERROR mosaic.upload ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer')) on shard {i:05d}, will retry",
                f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.upload shard {i:05d}: attempt 2 of 10 succeeded after 1.0 s",
            )
    log.add(f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.convert 6000 shards written, 0 failed, errors=0")
    loss = Curve(c, 10.8, 2.9, 300)
    for s in range(1, 3001):
        c.tick(1.4, 1.5)
        log.add(
            f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.train [{s}/3000] ce={loss(s):.4f} timeouts=0 nan=0 fail_rate=0.00"
        )
    log.add(
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.eval lambada 0.412 hellaswag 0.388",
        f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} INFO mosaic.main finished, exit code 0",
    )


@case(
    "s116", "gpu-lost", "hardware-failure", "escalate restart-excluding",
    source="after two reports of pods that are rejected with UnexpectedAdmissionError because one GPU of the node is lost",
    why="The device plugin of node cvm-27 cannot list its devices because GPU 5 is lost (nvml: GPU is lost), so the kubelet rejects each pod there; the manifest is fine, the workers on other nodes wait.",
    tags="kubernetes hardware misleading", also="node-failure launch-failure", nodes="cvm-27", gpus=16, mention=["cvm-27|lost"], must_not="argument-error connection-error out-of-memory",
)  # fmt: skip
def s116(c: Case) -> None:
    c.start("2021-01-14 01:50:12")
    d = c.file("describe-dlrm-worker-1.txt")
    d.add(describe(c, "dlrm-worker-1", ns="ads", node="cvm-27/10.8.3.27", ip="", labels=["pytorch-job-name=dlrm", "pytorch-replica-index=1"], status="Failed", container=["Limits:", "  nvidia.com/gpu:  8"], requests=["nvidia.com/gpu:  8"], image="reg.ads.example/dlrm:20.12", extra=["Reason:           UnexpectedAdmissionError",
        "Message:          Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = Unable to retrieve list of available devices: error creating nvml.Device 5: nvml: GPU is lost, which is unexpected"]), e="GPU is lost")  # fmt: skip
    d.add(
        events(
            [
                "Normal|Scheduled|14m|default-scheduler|Successfully assigned ads/dlrm-worker-1 to cvm-27",
                "Warning|UnexpectedAdmissionError|14m|kubelet|Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = Unable to retrieve list of available devices: error creating nvml.Device 5: nvml: GPU is lost, which is unexpected",
            ]
        ),
        e="GPU is lost",
    )
    p = c.file("all-pods.txt")
    p.add(
        table(
            [
                "NAME|READY|STATUS|RESTARTS|AGE|NODE",
                "dlrm-master-0|1/1|Running|0|14m|cvm-22",
                "dlrm-worker-0|1/1|Running|0|14m|cvm-24",
                "dlrm-worker-1|0/1|UnexpectedAdmissionError|0|14m|cvm-27",
                "dlrm-worker-2|0/1|Init:0/1|0|14m|cvm-29",
            ]
        )
    )
    m = c.file("master.log")
    for _ in range(70):
        c.tick(12)
        m.add(f"{c.t()} waiting for 4 workers, 2 have joined (missing: dlrm-worker-1, dlrm-worker-2)")
