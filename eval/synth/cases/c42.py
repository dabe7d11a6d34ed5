"""s125 to s128."""

from __future__ import annotations

from synth.frameworks import maxtext_steps, pl_head, pl_steps, warning
from synth.hosts_text import Kernel, chatter, events, table
from synth.kit import Case, Curve, case, tb, weave
from synth.slurm_text import head, hosts


def _xla(c: Case, level: str, where: str, text: str) -> str:
    c.tick(0, 0.02)
    return f"{level}0000 00:00:{c.now.timestamp():.6f}   {c.n(12, 400)} {where}] {text}"


@case(
    "s125", "connection-error", "config-error", "fix-and-resubmit restart restart-excluding kill-and-restart",
    source="after the report of a gang where one task cannot bind the coordinator's port and all siblings are marked failed",
    why="Task 0 could not bind port 8476 on its host (something else holds it) and crashed; the seven others were ended by the scheduler because a sibling failed.",
    tags="misleading cascade multi-node kubernetes", also="os-error", also_cls="dependency-failure operator-action software-bug", nodes="gke-h100-pool-3f1", ranks="0", gpus=64, mention=["8476", "port"], must_not="native-crash node-failure preempted",
)  # fmt: skip
def s125(c: Case) -> None:
    c.start("2025-04-17 14:31:07")
    c.root = "/app"
    pool = ["3f1", "3f7", "9ac", "b02", "b0e", "c41", "d77", "e15"]
    logs = [c.file(f"tasks/{i}.log") for i in range(8)]
    for i, log in enumerate(logs):
        log.add(
            f"host gke-h100-pool-{pool[i]} task {i}/8 image registry.local/lm/train:2f3c",
            "Setting XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true",
            _xla(
                c,
                "I",
                "cuda_executor.cc:1040",
                "successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so returning NUMA node zero.",
            ),
            f"I{c.t('%m%d %H:%M:%S.%f')} {c.n(100000, 900000)} distributed.py:106] Connecting to JAX distributed service on 10.64.8.21:8476",
        )
    logs[0].add(f"I{c.t('%m%d %H:%M:%S.%f')} 140213 distributed.py:84] Starting JAX distributed service on [::]:8476")
    c.tick(0.3)
    logs[0].add(
        _xla(
            c,
            "E",
            "add_port.cc:83",
            "Failed to add port to server: No address added out of total 1 resolved for '[::]:8476'",
        ),
        e=True,
    )
    logs[0].add(
        "Fatal Python error: Segmentation fault", "", f"Thread 0x00007f{c.hex(10)} (most recent call first):",
        f'  File "{c.site}/jax/_src/distributed.py", line 87 in initialize', f'  File "{c.site}/jax/_src/distributed.py", line 194 in initialize',
        '  File "/app/train.py", line 58 in main', '  File "/app/train.py", line 301 in <module>', "",
        "Extension modules: numpy.core._multiarray_umath, jaxlib.cpu_feature_guard (total: 41)", "Segmentation fault (core dumped)",
    )  # fmt: skip
    c.tick(9)
    for i, log in enumerate(logs[1:], 1):
        for _ in range(3):
            log.add(
                _xla(
                    c,
                    "W",
                    "coordination_service_agent.cc:404",
                    f"task /job:jax_worker/replica:0/task:{i} waits for the coordination service at 10.64.8.21:8476",
                )
            )
        log.add(f"{c.t()} received SIGTERM, shutting down")
    st = c.file("status.txt")
    st.add("JOB lm-8b-r4", "State: worker_failed  exit=0  failures=1", "reason: Coscheduled sibling failed")
    st.add(
        table(
            [
                "TASK|STATE|EXIT|DURATION|HOST|MESSAGE",
                f"0|failed|139|12s|gke-h100-pool-{pool[0]}|",
                *[f"{i}|worker_failed|0|23s|gke-h100-pool-{pool[i]}|Coscheduled sibling failed" for i in range(1, 8)],
            ]
        ),
        e="  139  ",
    )


@case(
    "s126", "host-out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the notes on coordination services that name a task whose heartbeat stopped: what ended that task is elsewhere",
    why="Task 5's heartbeat stopped because the kernel of ng-06 killed its process at the job's memory limit (memory cgroup); all other tasks report only the loss of task 5.",
    tags="misleading cascade multi-node kernel slurm", nodes="ng-06", ranks="5", gpus=64, mention=["memory"], must_not="node-failure network-error connection-error preempted",
)  # fmt: skip
def s126(c: Case) -> None:
    c.start("2025-02-11 02:14:30")
    c.root = "/opt/maxtext"
    names = hosts("ng-", 1, 8, 2)
    log, dm = c.file("mt-33918.out"), c.file("dmesg-ng-06.txt")
    k = Kernel(c)
    log.add(head(c, 33918, names, 1, "mt-8b", "h100", "3-00:00:00"))
    log.add(
        *[
            f"{i}: I{c.t('%m%d %H:%M:%S.%f')} {c.n(10**5, 9 * 10**5)} distributed.py:106] Connecting to JAX distributed service on ng-01:12345"
            for i in range(8)
        ]
    )
    log.add(
        "0: Per train step: Total TFLOPs: 418.91",
        "0: grain: 32 worker processes per host, read buffer 512, prefetch 64",
    )
    loss = Curve(c, 11.3, 2.6, 120)
    log.add(
        [f"0: {x}" for x in maxtext_steps(c, 0, 640, sec=7.3, loss=loss, tflops=402.0, tokens=9021.0, weights=1048576)]
    )
    dm.add(chatter(c, k, 22, 4200))
    for other in ("02", "07"):
        c.file(f"dmesg-ng-{other}.txt").add(chatter(c, Kernel(c), 16, 4200))
    pid = c.n(20000, 70000)
    c.tick(3)
    dm.add(
        k("grain_worker_17 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"),
        k("memory: usage 1006632960kB, limit 1006632960kB, failcnt 418823"),
        k(
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0-1,oom_memcg=/system.slice/slurmstepd.scope/job_33918,task_memcg=/system.slice/slurmstepd.scope/job_33918/step_0/user/task_0,task=python3,pid={pid},uid=20117"
        ),
        k(
            f"Memory cgroup out of memory: Killed process {pid} (python3) total-vm:1712344112kB, anon-rss:988122304kB, file-rss:120444kB, shmem-rss:8102400kB, UID:20117 pgtables:2011200kB oom_score_adj:0"
        ),
        e=True,
    )
    c.tick(1)
    dm.add(k("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing"))
    c.tick(101)
    task = "/job:jax_worker/replica:0/task:"
    hb = f"{task}5 heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly. Check the task logs for an earlier error to debug further."
    log.add(
        "0: "
        + _xla(
            c,
            "E",
            "coordination_service.cc:1227",
            f"{task}5 has been set to ERROR in coordination service: UNAVAILABLE: Task {hb}",
        ),
        e=True,
    )
    rows = []
    for i in (0, 1, 2, 3, 4, 6, 7):
        rows.append([
            f"{i}: " + _xla(c, "E", "coordination_service_agent.cc:332", f"Polled an error from coordination service (this can be an error from this or another task).: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats): {task}5"),
            f"{i}: " + _xla(c, "F", "client.h:80", "Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output. absl::Status: UNAVAILABLE: Failed to send RPC to coordination service. Either the leader task was preempted/died/restarted unexpectedly or this task is experiencing network issues."),
            f"{i}: *** Check failure stack trace: ***",
            *[f"{i}:     @     0x7f{c.hex(10)}  (unknown)" for _ in range(5)],
        ])  # fmt: skip
    log.add(weave(c.rng, rows, 2))
    log.add(
        "srun: error: ng-01: task 0: Aborted (core dumped)",
        "srun: error: ng-03: task 2: Aborted (core dumped)",
        "srun: error: ng-06: task 5: Killed",
        "srun: error: ng-08: task 7: Aborted (core dumped)",
    )


@case(
    "s127", "time-limit", "operator-action", "restart fix-and-resubmit",
    source="after the report of a launcher that words the signal before the time limit as preemption",
    why="The batch script asks for USR2 120 s before the limit of 24 h, and the signal comes at 23:58: it is the time limit, whatever the launcher calls it. The tracebacks and refused connections are the shutdown.",
    tags="misleading scheduler slurm interrupted training", nodes="", gpus=16, mention=["time limit|time-limit|walltime|wall time"], must_not="node-failure connection-error network-error cancelled",
    scheduler={"JobID": "61877", "State": "REQUEUED", "ExitCode": "0:0", "Elapsed": "23:58:11", "Timelimit": "1-00:00:00", "NodeList": "gn[12-13]"},
)  # fmt: skip
def s127(c: Case) -> None:
    c.start("2025-08-12 02:07:55")
    c.root = "/home/vis/seg"
    out, err = c.file("61877_0_log.out"), c.file("61877_0_log.err")
    err.add(
        "#SBATCH --signal=USR2@120", "#SBATCH --time=1440", "#SBATCH --nodes=2 --ntasks-per-node=8 --requeue", e=True
    )
    out.add(
        "submitit INFO ("
        + c.t("%Y-%m-%d %H:%M:%S,%f3")
        + ") - Starting with JobEnvironment(job_id=61877, hostname=gn12, local_rank=0(8), node=0(2), global_rank=0(16))"
    )
    out.add(
        pl_head(
            c,
            16,
            8,
            [("backbone", "SwinV2", "87.9 M"), ("decode", "UperHead", "31.2 M"), ("loss", "FocalLoss", "0")],
            "119 M",
        )
    )
    err.add(warning(c, 5, "lightning/pytorch/trainer/connectors/data_connector.py"))
    loss = Curve(c, 2.1, 0.31, 900)
    for epoch in range(31):
        out.add(pl_steps(c, epoch, 1250, sec=2.208, loss=loss, every=125))
        out.add(
            f"Epoch {epoch}, global step {(epoch + 1) * 1250}: 'val_miou' reached {0.4 + epoch / 100 + c.f(0, 0.01):.5f}, saving model to '/scratch/vis/seg/last-v{epoch}.ckpt' as top 3"
        )
    c.start("2025-08-13 02:05:59")
    stamp = c.t("%Y-%m-%d %H:%M:%S,%f3")
    err.add(
        f"submitit WARNING ({stamp}) - Caught signal SIGUSR2 on gn12: this job is preempted.",
        f"submitit WARNING ({stamp}) - Caught signal SIGUSR2 on gn13: this job is preempted.",
        e=True,
    )
    err.add(*[f"submitit WARNING ({c.t('%Y-%m-%d %H:%M:%S,%f3')}) - Bypassing signal SIGTERM" for _ in range(14)])
    c.tick(7)
    when = c.t("%Y-%m-%dT%H:%M:%S")
    err.add(
        f"slurmstepd: error: *** JOB 61877 ON gn12 CANCELLED AT {when} DUE TO JOB REQUEUE ***", f"slurmstepd: error: *** STEP 61877.0 ON gn12 CANCELLED AT {when} DUE TO JOB REQUEUE ***",
        "slurmstepd: error: Failed to send MESSAGE_TASK_EXIT: Connection refused", "slurmstepd: error: Failed to send MESSAGE_TASK_EXIT: Connection refused",
    )  # fmt: skip
    err.add(
        tb(
            c,
            "$S/submitit/core/submission.py:55 process_job | result = delayed.result()\ntrain.py:71 __call__ | trainer.fit(model, dm)\n$S/torch/distributed/distributed_c10d.py:2050 all_reduce | work = group.allreduce([tensor], opts)",
            "RuntimeError: Connection reset by peer",
        )
    )
    err.add("srun: error: gn12: tasks 2-3: Exited with exit code 1")


@case(
    "s128", "preempted", "operator-action", "restart",
    source="after the report of evictions by a queue that the job's controller books as failures until its retries are used up",
    why="The queue evicted the workload for one of higher priority each time (events); the controller saw only a pod that was gone, counted a failure, and gave up at the backoff limit.",
    tags="misleading scheduler kubernetes interrupted", also_outcome="failed", nodes="", gpus=32, mention=["preempt|evict|priority"], must_not="node-failure connection-error hang native-crash",
)  # fmt: skip
def s128(c: Case) -> None:
    c.start("2025-09-02 20:41:12")
    log, ev, ctl = c.file("pods/lm-7b-worker-0.log"), c.file("events.txt"), c.file("controller.log")
    loss = Curve(c, 3.4, 1.8, 300)
    rows = []
    step = 2400
    for attempt in range(1, 5):
        log.add(
            f"{c.t()} INFO rank 0 of 32 joined, attempt {attempt}",
            f"{c.t()} INFO resumed from gs://lm-ckpt/7b/step_{step}",
        )
        ctl.add(f"{c.t('%Y-%m-%dT%H:%M:%SZ')} INFO reconciler job=lm-7b attempt={attempt} state=running pods=4")
        for i in range(1, 60 + c.n(0, 30)):
            c.tick(11)
            log.add(f"{c.t()} INFO step {step + i} loss {loss(step + i):.4f} lr 2.1e-04 tok/s {c.n(91000, 93500)}")
        c.tick(4)
        log.add(f"{c.t()} WARNING received signal 15, flushing logs")
        rows += [
            f"Normal|EvictedDueToPreempted|{(5 - attempt) * 14}m|kueue-job-controller|Preempted to accommodate a workload (UID: {c.hex(8)}-{c.hex(4)}-4{c.hex(3)}-a{c.hex(3)}-{c.hex(12)}, JobUID: UNKNOWN) due to prioritization in the ClusterQueue",
            f"Normal|Killing|{(5 - attempt) * 14}m|kubelet|Stopping container trainer",
            f"Normal|Suspended|{(5 - attempt) * 14}m|pytorchjob-controller|PyTorchJob lm-7b is suspended.",
        ]
        ctl.add(
            f"{c.t('%Y-%m-%dT%H:%M:%SZ')} ERROR reconciler job=lm-7b attempt={attempt} pod lm-7b-worker-2: Pod not found",
            f"{c.t('%Y-%m-%dT%H:%M:%SZ')} ERROR reconciler job=lm-7b attempt={attempt} PodDeleted: pod was deleted while the attempt was active, failures={attempt}/4",
        )
        c.tick(60, 90)
    ctl.add(
        f"{c.t('%Y-%m-%dT%H:%M:%SZ')} ERROR reconciler job=lm-7b BackoffLimitExceeded: job has reached the specified backoff limit, state=Failed"
    )
    ev.add(events(rows), e="EvictedDueToPreempted")
