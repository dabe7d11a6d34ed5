"""s141 to s144."""

from __future__ import annotations

from synth.frameworks import hf_head, hf_steps, maxtext_steps, warning
from synth.hosts_text import describe, events, table
from synth.kit import Case, Curve, case


@case(
    "s141", "healthy", "none", "none",
    source="after the notes on slow compiles that look like dead tasks, and on a run that ends after its last step",
    why="The first step took six minutes to compile and the allocator complained, but all 500 steps were done, the last checkpoint was written and each process said goodbye.",
    tags="healthy misleading multi-node", nodes="", gpus=32,
)  # fmt: skip
def s141(c: Case) -> None:
    c.start("2025-08-05 17:20:00")
    log = c.file("worker-0.log")
    t = lambda level: f"{level}0000 00:00:{c.now.timestamp():.6f}    {c.n(20, 400)}"  # noqa: E731
    log.add(
        f"{t('W')} xla_bridge.cc:812] Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory",
        f"I{c.t('%m%d %H:%M:%S.%f')} 140022 distributed.py:106] Connecting to JAX distributed service on worker-0.train:1234",
        f"{t('E')} cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
        f"{t('E')} cuda_blas.cc:1407] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered",
        "Config param: enable_checkpointing True", "Config param: abort_on_error False", "Config param: steps 500",
        "No existing checkpoints found, not restoring checkpoint.",
    )  # fmt: skip
    for _ in range(4):
        c.tick(45)
        log.add(
            f"{t('E')} slow_operation_alarm.cc:73] ",
            "*" * 32,
            "[Compiling module jit_train_step] Very slow compile? If you want to file a bug, run with envvar XLA_FLAGS=--xla_dump_to=/tmp/foo and attach the results.",
            "*" * 32,
        )
    c.tick(170)
    log.add(
        f"{t('E')} slow_operation_alarm.cc:140] The operation took 6m1.207s",
        f"{t('W')} bfc_allocator.cc:310] Allocator (GPU_0_bfc) ran out of memory trying to allocate 18.22GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.",
        f"{t('W')} hlo_rematerialization.cc:3005] Can't reduce memory use below 56.11GiB (60247218402 bytes) by rematerialization; only reduced to 60.02GiB (64446021120 bytes), down from 61.98GiB (66550517760 bytes) originally",
    )
    loss = Curve(c, 11.2, 3.3, 90)
    log.add(maxtext_steps(c, 0, 499, sec=3.1, loss=loss, tflops=371.0, tokens=8120.0, weights=524288))
    log.add(
        "Saved a checkpoint at step 499.",
        f"I{c.t('%m%d %H:%M:%S.%f')} 140022 checkpointer.py:167] Finished saving checkpoint to `/ckpt/500/items`.",
    )
    log.add(
        f"{t('I')} coordination_service_agent.cc:617] Coordination agent has initiated Shutdown().",
        f"{t('I')} coordination_service.cc:1411] Shutdown barrier in coordination service has passed.",
        f"{t('I')} coordination_service_agent.cc:638] Coordination agent has successfully shut down.",
        "all steps done, exit 0",
    )


@case(
    "s142", "unknown", "unknown", "restart escalate fix-and-resubmit",
    source="after the notes on exit code 137 of a container without OOMKilled: killed, cause unseen",
    why="The container ended with 137 (SIGKILL), the reason is Error and not OOMKilled, the events are gone and the log stops in the middle of training. Who sent the signal is not shown.",
    tags="unknown misleading kubernetes", status="unknown hypothesis", nodes="", gpus=8, mention=["137|sigkill|killed"], must_not="host-out-of-memory out-of-memory preempted node-failure cancelled healthy",
)  # fmt: skip
def s142(c: Case) -> None:
    c.start("2025-03-22 12:44:01")
    log, pod = c.file("trainer.log"), c.file("describe.txt")
    c.root, c.site = "/app", "/usr/local/lib/python3.11/dist-packages"
    log.add(
        hf_head(980221, 1, 4, 8, 2, 8030261248),
        warning(c, 0, "transformers/trainer.py"),
        warning(c, 5, "torch/utils/data/dataloader.py"),
    )
    loss = Curve(c, 2.0, 1.2, 300)
    log.add(hf_steps(c, 10, 4120, total=15315, per_epoch=15315, sec=2.6, loss=loss, every=10))
    stop = c.t("%a, %d %b %Y %H:%M:%S +0000", ago=-4)
    c.tick(3700)
    state = [
        "State:          Terminated",
        "  Reason:       Error",
        "  Exit Code:    137",
        "  Started:      Sat, 22 Mar 2025 12:43:58 +0000",
        f"  Finished:     {stop}",
        "Ready:          False",
        "Restart Count:  0",
        "Limits:",
        "  memory:          960Gi",
        "  nvidia.com/gpu:  8",
    ]
    pod.add(
        describe(
            c,
            "sft-8b-master-0",
            ns="nlp",
            node="node-a17/10.20.0.17",
            ip="10.244.9.31",
            labels=["app=sft-8b", "training.kubeflow.org/replica-type=master"],
            status="Failed",
            container=state,
            requests=["memory:          900Gi", "nvidia.com/gpu:  8"],
            image="registry.local/nlp/sft:1.9",
        ),
    )
    pod.rows = [
        "Start Time:       Sat, 22 Mar 2025 12:43:40 +0000" if r.startswith("Start Time") else r for r in pod.rows
    ]
    mark = [i for i, r in enumerate(pod.rows, 1) if "Exit Code:    137" in r or "Reason:       Error" in r]
    pod.marked.update({i: pod.rows[i - 1] for i in mark})
    pod.add(
        "QoS Class:       Burstable",
        "Tolerations:     node.kubernetes.io/not-ready:NoExecute op=Exists for 300s",
        "                 node.kubernetes.io/unreachable:NoExecute op=Exists for 300s",
        "Events:          <none>",
    )


@case(
    "s143", "launch-failure", "software-bug", "fix-and-resubmit escalate",
    source="after the report of a gang that stays pending in a nearly empty cluster because groups of finished jobs keep their reservation",
    why="The gang never started: the queue is said to be overused though 8 of 64 GPUs are in use; three PodGroups of jobs that are gone still hold 56 GPUs of it.",
    tags="misleading kubernetes scheduler", outcome="failed", also_outcome="hung unknown", also_cls="config-error resource-exhaustion dependency-failure", nodes="", mention=["podgroup|pod group|queue|gang"], must_not="node-failure gpu-lost",
)  # fmt: skip
def s143(c: Case) -> None:
    c.start("2025-05-14 08:00:00")
    pg, q = c.file("describe-podgroup.txt"), c.file("queue.txt")
    pg.add(
        "Name:         pretrain-v9-4f1d", "Namespace:    team-a", "API Version:  scheduling.volcano.sh/v1beta1", "Kind:         PodGroup", "Spec:",
        "  Min Member:  4", "  Min Resources:", "    nvidia.com/gpu:  32", "  Queue:  team-a", "Status:",
        "  Conditions:", "    Last Transition Time:  2025-05-14T08:00:03Z", "    Message:               4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 Unschedulable",
        "    Reason:                NotEnoughResources", "    Status:                True", "    Type:                  Unschedulable", "  Phase:                   Pending",
    )  # fmt: skip
    pg.marked.update({i: r for i, r in enumerate(pg.rows, 1) if "gang unschedulable" in r})
    pg.add(
        events(
            [
                "Warning|Unschedulable|2s (x16321 over 4h32m)|volcano|4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 Unschedulable",
                "Normal|Unschedulable|2s (x16321 over 4h32m)|volcano|resource in cluster is overused",
            ]
        ),
        e="overused",
    )
    q.add("$ kubectl get nodes -o custom-columns=NAME,GPU,USED")
    q.add(table(["NAME|GPU|USED", *[f"gpu-{i:02d}|8|{8 if i == 3 else 0}" for i in range(1, 9)]]))
    q.add("$ kubectl get podgroup -n team-a")
    q.add(
        table(
            [
                "NAME|STATUS|MINMEMBER|RUNNINGS|GPUS|AGE",
                "pretrain-v6-81cc|Running|3||24|9d",
                "pretrain-v7-0a37|Running|2||16|6d",
                "pretrain-v8-77de|Running|2||16|2d",
                "eval-nightly-1b2f|Running|1|1|8|3h",
                "pretrain-v9-4f1d|Pending|4||32|4h32m",
            ]
        )
    )
    q.add(
        "$ kubectl get vcjob -n team-a",
        *table(
            ["NAME|STATUS|MINAVAILABLE|RUNNINGS|AGE", "eval-nightly|Running|1|1|3h", "pretrain-v9|Pending|4||4h32m"]
        ),
    )
    q.add(
        "$ kubectl describe queue team-a | tail -12",
        "Spec:",
        "  Capability:",
        "    nvidia.com/gpu:  64",
        "  Weight:  1",
        "Status:",
        "  Allocated:",
        "    nvidia.com/gpu:  64",
        "  Inqueue:   0",
        "  Pending:   1",
        "  Running:   4",
        "  State:     Open",
    )
    q.marked.update(
        {i: r for i, r in enumerate(q.rows, 1) if r.startswith(("pretrain-v6", "pretrain-v7", "pretrain-v8"))}
    )


@case(
    "s144", "argument-error", "config-error", "fix-and-resubmit",
    source="after the notes on rejected arguments; an array of tasks that is longer than its table of parameters",
    why="The array runs from 0 to 11 and params.txt has ten lines: tasks 10 and 11 get an empty value for --lr and argparse refuses it. The warnings in the other tasks' logs are of runs that ended well.",
    tags="misleading slurm", nodes="", gpus=4, mention=["--lr|params|argument"], must_not="file-not-found host-out-of-memory healthy",
)  # fmt: skip
def s144(c: Case) -> None:
    c.start("2024-09-30 11:00:01")
    params = c.file("sweep/params.txt")
    params.add(*[f"{lr} {bs}" for lr in ("1e-5", "2e-5", "3e-5", "5e-5", "1e-4") for bs in (16, 32)])
    c.root, c.site = "/home/ml/sweep", "/home/ml/.venv/lib/python3.10/site-packages"
    for task in (0, 8, 9, 10, 11):
        log = c.file(f"sweep/fit_991204_{task}.out")
        log.add(
            f"SLURM_ARRAY_JOB_ID=991204 SLURM_ARRAY_TASK_ID={task} SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=11 SLURMD_NODENAME=a{task + 20}",
            '+ read -r LR BS < <(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" params.txt)',
        )
        if task > 9:
            log.add(
                "+ python fit.py --lr '' --bs ''",
                "usage: fit.py [-h] --lr LR --bs BS [--epochs EPOCHS] [--resume-on-error]",
            )
            log.add("fit.py: error: argument --lr: invalid float value: ''", e=True)
            log.add(f"srun: error: a{task + 20}: task 0: Exited with exit code 2", f"[epilog] task {task} ended with 2")
            continue
        lr, bs = params.rows[task].split()
        log.add(
            f"+ python fit.py --lr {lr} --bs {bs}",
            warning(c, 3, "transformers/training_args.py"),
            hf_head(24000, 1, 16, 1, 1, 109483778),
        )
        loss = Curve(c, 0.7, 0.2, 300)
        log.add(
            hf_steps(c, 20, 1500, total=1500, per_epoch=1500, sec=0.21, loss=loss, lr=float(lr), every=20, bars=False)
        )
        log.add(
            "wandb: WARNING Retry attempt failed: Network error (ReadTimeout), entering retry loop.",
            "wandb: Network error resolved after 0:00:14.201133, resuming normal operation.",
            f"{{'train_runtime': {c.f(300, 330):.4f}, 'train_samples_per_second': 76.2, 'train_loss': {loss(1500):.4f}, 'epoch': 1.0}}",
            f"[epilog] task {task} ended with 0",
        )
