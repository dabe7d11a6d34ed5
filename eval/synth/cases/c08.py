"""s036 to s040."""

from __future__ import annotations

from synth import megatron as mg
from synth.frameworks import tf_head
from synth.hosts_text import events, table
from synth.kit import Case, Curve, case
from synth.slurm_text import hosts, sacct


@case(
    "s036", "unknown", "unknown", "restart escalate fix-and-resubmit",
    source="a log that ends in the middle of a line while the accounting says FAILED 1:0 and keeps no more",
    why="The log breaks off in the middle of a step line; sacct says only FAILED with code 1 on one step. No line shows a cause: the rank files, stderr and the kernel log must be fetched.",
    tags="unknown slurm", status="unknown hypothesis", also_outcome="unknown", nodes="", gpus=16, must_not="host-out-of-memory time-limit cancelled node-failure nccl-timeout", also="called-process-error",
    scheduler={"JobID": "233190", "State": "FAILED", "ExitCode": "1:0"},
)  # fmt: skip
def s036(c: Case) -> None:
    c.start("2021-11-24 13:20:55")
    log = c.file("resnet_imagenet.o233190")
    log.add(
        "Resource allocation granted",
        "module purge; module load tensorflow/2.6 horovod/0.22",
        tf_head(c),
        *[f"[1,{r}]<stdout>: rank {r} local {r % 4} on v{12 + r // 4:02d}" for r in c.rng.sample(range(16), 16)],
    )
    log.add(
        *[
            f"[1,{r}]<stderr>:{c.t('%Y-%m-%d %H:%M:%S.%f')}: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1510] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 30988 MB memory:  -> device: {r % 4}, name: Tesla V100-SXM2-32GB, pci bus id: 0000:{(3, 4, 130, 131)[r % 4]:02x}:00.0, compute capability: 7.0"
            for r in range(16)
        ]
    )
    loss = Curve(c, 6.9, 1.7, 3000)
    for epoch in range(1, 31):
        log.add(f"[1,0]<stdout>:Epoch {epoch}/90")
        for s in range(100, 1252, 230):
            c.tick(40, 43)
            log.add(
                f"[1,0]<stdout>:{s:4d}/1251 [{'=' * (s * 30 // 1251)}>{'.' * (29 - s * 30 // 1251)}] - ETA: {(1251 - s) // 6}s - loss: {loss(epoch * 1251 + s):.4f} - top_5: {c.f(0.4, 0.9):.4f}"
            )
        log.add(
            f"[1,0]<stdout>:1251/1251 - 226s - loss: {loss(epoch * 1251):.4f} - top_5: 0.{c.n(4000, 9000)} - val_loss: {loss(epoch * 1251) * 1.1:.4f} - lr: {0.8 * 0.97**epoch:.6f}"
        )
    log.add("[1,0]<stdout>:Epoch 31/90", "[1,0]<stdout>: 100/1251 [==>...........................] - ETA: 3:")
    log.marked[len(log.rows)] = log.rows[-1]
    acc = c.file("sacct.txt")
    acc.add(
        sacct(
            "JobID|State|ExitCode|DerivedExitCode|NodeList|Elapsed",
            [
                "233190|FAILED|1:0|1:0|v[12-15]|01:58:02",
                "233190.batch|FAILED|1:0||v12|01:58:02",
                "233190.extern|COMPLETED|0:0||v[12-15]|01:58:02",
                "233190.0|FAILED|1:0||v[13-15]|01:57:40",
            ],
        ),
        e="233190.0",
    )


@case(
    "s037", "native-crash", "software-bug", "fix-and-resubmit",
    source="an MPI code of molecular dynamics in which one rank takes a segmentation fault and the launcher ends the rest",
    why="Rank 41 took SIGSEGV in libplumedKernel on ib0-c33 (backtrace and mpirun's notice); the PMIx and OOB lines that follow are the others being told to stop.",
    tags="cascade misleading multi-node", also_cls="unknown hardware-failure", nodes="", ranks="41", mention=["segmentation|signal 11|sigsegv|plumed"], must_not="connection-error node-failure network-error",
)  # fmt: skip
def s037(c: Case) -> None:
    c.start("2023-02-06 11:11:30")
    log = c.file("md_prod_07.log")
    names = hosts("ib0-c", 31, 4, 2)
    log.add("                      :-) GROMACS - gmx mdrun, 2022.4-plumed_2.8.1 (-:", "", "Executable:   /sw/gromacs/2022.4-plumed/bin/gmx_mpi", "Data prefix:  /sw/gromacs/2022.4-plumed", "Working dir:  /scratch/mgreco/spike_metad/07", "Command line:", "  gmx_mpi mdrun -deffnm prod -plumed plumed.dat -ntomp 4 -maxh 47.5", "",
            "Reading file prod.tpr, VERSION 2022.4 (single precision)", "Changing nstlist from 20 to 100, rlist from 1.219 to 1.342", "", "Using 64 MPI processes", "Non-default thread affinity set, disabling internal thread affinity", "Using 4 OpenMP threads per MPI process", "",
            "WARNING: This run will generate roughly 21044 Mb of data", "", "starting mdrun 'SPIKE OPEN in water'", "250000000 steps, 500000.0 ps.")  # fmt: skip
    for step in range(0, 1990000, 2500):
        c.tick(18, 19)
        log.add(
            f"step {step}, will finish {c.t('%a %b %d %H:%M:%S %Y', ago=-90000 + step / 30)}"
            if step % 5000
            else f"imb F {c.n(1, 9):2d}% pme/F {c.f(0.7, 0.99):.2f} step {step}, remaining wall clock time: {90000 - step // 30} s"
        )
    c.tick(4)
    p = 771200 + 41 - 32
    log.add(*[f"[{names[2]}:{p}] {row}" for row in ("*** Process received signal ***", "Signal: Segmentation fault (11)", "Signal code: Address not mapped (1)", "Failing at address: (nil)", "[ 0] /lib64/libpthread.so.0(+0x12ce0)[0x7f0c41d6ace0]", "[ 1] /sw/plumed/2.8.1/lib/libplumedKernel.so(_ZN4PLMD9multicolvar20Coordination9calculateEv+0x3d1)[0x7f0c2a7f2c81]",
            "[ 2] /sw/plumed/2.8.1/lib/libplumedKernel.so(_ZN4PLMD10PlumedMain11justCalculateEv+0x1a9)[0x7f0c2a93b1f9]", "[ 3] /sw/gromacs/2022.4-plumed/lib64/libgromacs_mpi.so.7(+0x9c21d4)[0x7f0c438a21d4]", "[ 4] gmx_mpi(main+0xbc)[0x40a1ec]", "*** End of error message ***")], e="Segmentation fault (11)")  # fmt: skip
    c.tick(1)
    log.add(
        *[
            f"[{names[r // 16]}:{771200 + r % 16}] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2198"
            for r in c.rng.sample(range(64), 11)
        ]
    )
    log.add(
        "-" * 74,
        "Primary job  terminated normally, but 1 process returned",
        "a non-zero exit code. Per user-direction, the job has been aborted.",
        "-" * 74,
    )
    log.add(
        "-" * 74,
        "mpirun noticed that process rank 41 with PID 771209 on node ib0-c33 exited on signal 11 (Segmentation fault).",
        "-" * 74,
        e="rank 41",
    )
    log.add(
        *[
            f"[{names[r // 16]}:{771100 + r // 16}] [[22981,0],{r // 16}] mca_oob_tcp_msg_recv: readv failed: Connection reset by peer (104)"
            for r in (0, 16, 48)
        ]
    )


@case(
    "s038", "launch-failure", "software-bug", "escalate wait",
    source="after the report of a gang that stays pending as 'overused' in a half-empty cluster because groups of finished pods still hold the queue's share",
    why="The queue's share is taken by pod groups whose pods were deleted days ago (0 running, minMember 8 each); the nodes have 40 free GPUs. 'Gang unschedulable' is the consequence.",
    tags="misleading kubernetes scheduler multi-file", outcome="failed", also_outcome="hung unknown", also_cls="config-error resource-exhaustion", nodes="", mention=["queue|podgroup|pod group|gang"], must_not="node-failure gpu-lost out-of-memory",
)  # fmt: skip
def s038(c: Case) -> None:
    c.start("2023-01-17 10:50:00")
    a = c.file("describe.txt")
    a.add("$ kubectl describe pod bert-large-task-0 -n nlp", "Name:           bert-large-task-0", "Namespace:      nlp", "Priority:       0", "Node:           <none>", "Labels:         volcano.sh/job-name=bert-large", "                volcano.sh/queue-name=nlp", "Annotations:    scheduling.k8s.io/group-name: bert-large-1c1f",
          "Status:         Pending", "IP:             ", "Containers:", "  task:", "    Image:      harbor.corp.example/nlp/bert:22.11", "    Limits:", "      nvidia.com/gpu:  8", "Conditions:", "  Type           Status", "  PodScheduled   False ")  # fmt: skip
    a.add(
        events(
            [
                f"Warning|FailedScheduling|{m}m|volcano|1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"
                for m in (44, 29, 14, 2)
            ]
        ),
        e=" 2m ",
    )
    b = c.file("scheduler.log")
    for _ in range(260):
        c.tick(1)
        b.add(c.rng.choice([f"I{c.t('%m%d %H:%M:%S.%f')}       1 allocate.go:45] Enter Allocate ...", f"I{c.t('%m%d %H:%M:%S.%f')}       1 session.go:185] Open Session {c.hex(8)}-{c.hex(4)} with <{c.n(11, 13)}> Job and <4> Queues", f"I{c.t('%m%d %H:%M:%S.%f')}       1 proportion.go:96] The total resource is <cpu 1024000.00, memory 8243219431424.00, nvidia.com/gpu 64000.00>",
               f"I{c.t('%m%d %H:%M:%S.%f')}       1 enqueue.go:44] Enter Enqueue ...", f"I{c.t('%m%d %H:%M:%S.%f')}       1 cache.go:809] Updating podGroup status for nlp/bert-large-1c1f", f"I{c.t('%m%d %H:%M:%S.%f')}       1 gang.go:190] Gang: <nlp/bert-large-1c1f> job is not ready, minAvailable 1"]))  # fmt: skip
        if c.rng.random() < 0.06:
            b.add(
                f"W{c.t('%m%d %H:%M:%S.%f')}       1 proportion.go:262] Queue <nlp>: deserved <nvidia.com/gpu 16000.00>, allocated <nvidia.com/gpu 0.00>, inqueue <nvidia.com/gpu 24000.00>, job nlp/bert-large-1c1f: resource in cluster is overused",
                e=not b.marked,
            )
    d = c.file("kubectl-get.txt")
    d.add(
        "$ kubectl get podgroups -n nlp",
        table(
            [
                "NAME|STATUS|MINMEMBER|RUNNINGS|AGE",
                "ner-sweep-3b|Inqueue|8||5d21h",
                "ner-sweep-77|Inqueue|8||5d21h",
                "ner-sweep-91|Inqueue|8||5d20h",
                "bert-large-1c1f|Pending|1||46m",
            ]
        ),
        e="ner-sweep",
    )
    d.add("$ kubectl get pods -n nlp", table(["NAME|READY|STATUS|RESTARTS|AGE", "bert-large-task-0|0/1|Pending|0|46m", "corpus-server-0|1/1|Running|0|31d"]), "$ kubectl get nodes -o custom-columns=NAME:.metadata.name,GPU:.status.allocatable.gpu,USED:.metadata.annotations.gpu-used",
          table(["NAME|GPU|USED", *[f"gpu-w{i:02d}|8|{u}" for i, u in enumerate((8, 0, 0, 8, 0, 8, 0, 0))]]))  # fmt: skip


@case(
    "s039", "time-limit", "unknown", "restart kill-and-restart escalate",
    source="a job ended by its time limit that had printed nothing for nine hours before: the limit hides a hang",
    why="The time limit ended the job at 12:00, but the last iteration is from 02:51 at 31 seconds an iteration: it stood still for nine hours with no watchdog (time-out set to ten hours in the script).",
    tags="misleading hang scheduler slurm interrupted multi-node", also="hang", outcome="hung", also_outcome="interrupted", also_cls="operator-action", nodes="", gpus=128, mention=["hang|hung|progress|silence|stood still|no output|stall"], must_not="nccl-timeout cancelled preempted",
    scheduler={"JobID": "1830021", "State": "TIMEOUT", "Elapsed": "1-00:00:21"},
)  # fmt: skip
def s039(c: Case) -> None:
    c.start("2024-10-08 12:00:00")
    names = hosts("as", 1, 16, 5)
    log = c.file("main_log.txt")
    log.add(
        mg.arguments(
            {
                "world_size": "128",
                "tensor_model_parallel_size": "8",
                "pipeline_model_parallel_size": "4",
                "num_layers": "70",
                "hidden_size": "12288",
                "distributed_timeout_minutes": "600",
                "global_batch_size": "1536",
                "fp16": "False",
                "save_interval": "250",
            }
        ),
        mg.startup(
            c,
            tp=8,
            pp=4,
            params=4128731136,
            micro=384,
            vocab=250680,
            data="/gpfswork/xyz/oscar_bloom",
            load="/gpfsssd/ckpt/tr14",
            at=61250,
        ),
    )
    loss = Curve(c, 9.0, 1.75, 4000, 0.004)
    step = 61251
    while c.t("%Y-%m-%d %H:%M") < "2024-10-09 02:51":
        log.add(
            mg.steps(
                c,
                step,
                step,
                total=115311,
                gbs=1536,
                sec=31.1,
                loss=loss,
                lr=6e-5,
                tflops=148.2,
                core=False,
                save=(250, "/gpfsssd/ckpt/tr14"),
            )
        )
        step += 1
    log.marked[len(log.rows)] = log.rows[-1]
    c.start("2024-10-09 12:00:21")
    log.add(
        "slurmstepd: error: *** JOB 1830021 ON as00001 CANCELLED AT 2024-10-09T12:00:21 DUE TO TIME LIMIT ***",
        "slurmstepd: error: *** STEP 1830021.0 ON as00001 CANCELLED AT 2024-10-09T12:00:21 DUE TO TIME LIMIT ***",
        e=True,
    )
    log.add(
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        *[f"srun: error: {n}: task {i}: Killed" for i, n in c.rng.sample(list(enumerate(names)), 16)],
    )
