"""s035 and s040."""

from __future__ import annotations

from synth import megatron as mg
from synth.hosts_text import events, table
from synth.kit import Case, Curve, case, pre, weave


@case(
    "s035", "preempted", "operator-action", "restart",
    source="after the report of pods that a queueing controller preempted for a higher priority while the job's controller saw only that they vanished",
    why="Kueue evicted the workload to make room for one of higher priority; 'pod not found' and the broken connections in the launcher's log are the pods going away.",
    tags="misleading interrupted kubernetes scheduler multi-file", also_cls="none", nodes="", gpus=64, mention=["preempt"], must_not="node-failure cancelled connection-error launch-failure",
)  # fmt: skip
def s035(c: Case) -> None:
    c.start("2025-09-30 04:00:21")
    log = c.file("controller.log")
    loss = Curve(c, 11.0, 2.2, 300)
    for step in range(10, 2200, 10):
        c.tick(55, 57)
        log.add(
            f"{c.t('%Y-%m-%dT%H:%M:%SZ')} train-llm-0 | step={step} loss={loss(step):.4f} tokens_per_s={int(c.jitter(2.1e6, 0.01))}"
        )
    c.tick(31)
    for i in c.rng.sample(range(8), 8):
        c.tick(0.2, 1)
        log.add(
            f"{c.t('%Y-%m-%dT%H:%M:%SZ')} train-llm-{i} | grpc: UNAVAILABLE: Socket closed",
            f"{c.t('%Y-%m-%dT%H:%M:%SZ')} controller | ERROR attempt 0 of train-llm-{i}: Pod not found",
        )
    log.add(
        f"{c.t('%Y-%m-%dT%H:%M:%SZ')} controller | ERROR job train-llm FAILED: 8 task(s) failed, retry budget (0) exhausted"
    )
    ev = c.file("workload.txt")
    ev.add("$ kubectl -n research describe workload jobset-train-llm-3f1c2", "Name:         jobset-train-llm-3f1c2", "Namespace:    research", "Spec:", "  Priority:              100", "  Priority Class Name:   batch-low", "  Queue Name:            research-lq", "Status:", "  Conditions:",
           f"    Last Transition Time:  {c.t('%Y-%m-%dT%H:%M:%SZ', 40)}", "    Message:               Preempted to accommodate a workload (UID: 9f0bd1f1-55a6-4a3c-8a43-0e6d1a9c57f2, JobUID: 2e6c8a51-9a0e-4a0b-b1c7-77d8a5f5a901) due to prioritization in the ClusterQueue",
           "    Reason:                Preempted", "    Status:                True", "    Type:                  Evicted", e="Preempted to accommodate")  # fmt: skip
    ev.add(events(["Normal|QuotaReserved|3h26m|kueue-admission|Quota reserved in ClusterQueue h100-cq, wait time since queued was 412s", "Normal|Admitted|3h26m|kueue-admission|Admitted by ClusterQueue h100-cq, wait time since reservation was 0s",
                   "Normal|EvictedDueToPreempted|72s|kueue-workload-controller|Preempted to accommodate a workload (UID: 9f0bd1f1-55a6-4a3c-8a43-0e6d1a9c57f2, JobUID: 2e6c8a51-9a0e-4a0b-b1c7-77d8a5f5a901) due to prioritization in the ClusterQueue",
                   "Warning|Pending|44s (x3 over 70s)|kueue-admission|couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor h100, 64 more needed"]), e="EvictedDueToPreempted")  # fmt: skip
    pods = c.file("pods.txt")
    pods.add(
        "$ kubectl -n research get pods -l jobset.sigs.k8s.io/jobset-name=train-llm",
        "No resources found in research namespace.",
        "$ kubectl get nodes -l pool=h100",
        table(
            [
                "NAME|STATUS|ROLES|AGE|VERSION",
                *[f"gke-h100-{c.hex(4)}|Ready|<none>|{c.n(3, 90)}d|v1.31.6-gke.1020000" for _ in range(8)],
            ]
        ),
    )


@case(
    "s040", "loss-spike", "config-error", "fix-and-resubmit rollback-and-skip",
    source="a half-precision run whose loss scale goes down step by step to its minimum and which then gives up",
    why="From step 3080 on each step overflows, the loss scale falls to 1 and DeepSpeed ends the run; the launcher's kill messages and the other ranks' exits say nothing about the cause.",
    tags="training cascade misleading", also="runtime-error value-error", also_cls="data-error software-bug unknown", nodes="", gpus=16, mention=["loss scale|overflow|diverg|fp16"], must_not="nccl-remote-error out-of-memory",
)  # fmt: skip
def s040(c: Case) -> None:
    c.start("2023-06-30 22:14:18")
    c.site, c.root = "/usr/local/lib/python3.9/dist-packages", "/ws/chatglm-pt"
    log = c.file("p-tune.log")
    log.add(
        mg.ds_start(
            c, ["worker-0", "worker-1"], 8, "main.py", "--deepspeed ds_fp16.json --lr 2e-2 --fp16 --pre_seq_len 128"
        ),
        mg.ds_config(
            c,
            2,
            2,
            8,
            16,
            fp16_enabled="auto",
            bfloat16_enabled="False",
            initial_dynamic_scale="65536",
            dynamic_loss_scale_args="{'init_scale': 65536, 'scale_window': 1000, 'delayed_shift': 2, 'min_scale': 1}",
        ),
    )
    loss, scale = Curve(c, 4.9, 2.0, 200), 65536
    for step in range(10, 3080, 10):
        c.tick(16, 18)
        if c.rng.random() < 0.02 and scale > 8192:
            log.add(
                mg.ds(
                    c,
                    f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}",
                    "loss_scaler.py:190:update_scale",
                )
            )
            scale //= 2
        log.add(
            f"{{'loss': {loss(step):.4f}, 'learning_rate': {2e-2 * (1 - step / 9000):.6f}, 'epoch': {step / 1500:.2f}}}"
        )
    log.add(
        f"{{'loss': {5.8411:.4f}, 'learning_rate': 0.013156, 'epoch': 2.05}}",
        "{'loss': 37.1178, 'learning_rate': 0.013133, 'epoch': 2.06}",
        e=True,
    )
    while scale > 1:
        c.tick(1.7)
        log.add(
            mg.ds(
                c,
                f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}",
                "loss_scaler.py:190:update_scale",
            )
        )
        scale //= 2
        if scale % 64 == 0:
            log.add("{'loss': 0.0, 'learning_rate': 0.013133, 'epoch': 2.06}")
    rows = [pre(f"worker-{r // 8}: ", ["Traceback (most recent call last):", '  File "/ws/chatglm-pt/main.py", line 431, in <module>', "    main()", '  File "/usr/local/lib/python3.9/dist-packages/deepspeed/runtime/zero/stage_1_and_2.py", line 1778, in step', "    self._update_scale(self.overflow)",
            '  File "/usr/local/lib/python3.9/dist-packages/deepspeed/runtime/fp16/loss_scaler.py", line 175, in update_scale', "    raise Exception(", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."]) for r in range(16)]  # fmt: skip
    log.add(weave(c.rng, rows, 8), e="already at minimum")
    log.add(
        pre(
            "worker-0: ",
            mg.ds_killed(
                c,
                c.pids(8, 9100),
                "['/usr/bin/python', '-u', 'main.py', '--local_rank=7', '--deepspeed', 'ds_fp16.json', '--lr', '2e-2', '--fp16']",
                1,
            ),
        ),
        "pdsh@launcher: worker-0: ssh exited with exit code 1",
        "pdsh@launcher: worker-1: ssh exited with exit code 1",
    )
