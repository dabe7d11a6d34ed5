"""s097 to s100."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import pl_head
from synth.hosts_text import describe, events, table
from synth.kit import Case, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s097", "nccl-timeout", "config-error", "fix-and-resubmit",
    source="after the report of a step that is terminated while rank 0 still prepares its data set and the others wait in a collective",
    why="The seven other ranks wait in the barrier after data preparation and reach its 30-minute limit (blocking wait is on in the script) while rank 0 is at 46 % of 'Preparing test set'; the step's cancellation follows.",
    tags="misleading slurm cascade hang", also="hang", also_cls="software-bug", nodes="", ranks="0", gpus=8, mention=["rank 0|prepar"], must_not="cancelled network-error gpu-lost time-limit",
)  # fmt: skip
def s097(c: Case) -> None:
    c.start("2024-04-23 11:46:33")
    c.site, c.root = "/lustre/fsn1/envs/myria3d/lib/python3.9/site-packages", "/lustre/proj/myria3d"
    log = c.file("myria3d.6053.out")
    log.add(
        "+ export NCCL_BLOCKING_WAIT=1",
        "+ export NCCL_ASYNC_ERROR_HANDLING=1",
        "+ srun python run.py task.task_name=fit trainer=ddp_8",
        pl_head(c, 8, 4, [("model", "PyGRandLANet", "1.1 M"), ("criterion", "CrossEntropyLoss", "0")], "1.1 M"),
        e="BLOCKING_WAIT",
    )
    for i in range(47):
        c.tick(37, 40)
        log.add(
            f"Preparing train set...: 100%|██████████| 1122/1122 [00:0{c.n(1, 9)}<00:00]"
            if i == 0
            else f"Preparing test set...: {i:3d}%|{'█' * (i // 10):<10}| {i * 12}/1201 [{i * 38 // 60:02d}:{i * 38 % 60:02d}<{(100 - i) * 38 // 60:02d}:{(100 - i) * 38 % 60:02d}, 3.2s/it]",
            e=i == 46,
        )
    rows = [pre(f"{r}: ", tb(c, "run.py:61 <module> | main()\n$S/pytorch_lightning/trainer/trainer.py:1100 _run | self.strategy.barrier(\"setup_data\")\n$S/pytorch_lightning/strategies/ddp.py:323 barrier | torch.distributed.barrier()\n$S/torch/distributed/distributed_c10d.py:2791 barrier | work.wait()",
            f"RuntimeError: [Rank {r}] Caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 180{c.n(2000, 9000)} milliseconds before timing out.")) for r in range(1, 8)]  # fmt: skip
    log.add(weave(c.rng, rows, 6), e="Caught collective operation timeout")
    log.add(
        "srun: error: jean-zay-srv2: task 5: Exited with exit code 1",
        "srun: launch/slurm: _step_signal: Terminating StepId=6053.0",
        f"slurmstepd: error: *** STEP 6053.0 ON jean-zay-srv1 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***",
        "srun: error: jean-zay-srv1: task 0: Terminated",
        "srun: error: jean-zay-srv2: tasks 4,6-7: Exited with exit code 1",
        "srun: error: jean-zay-srv1: tasks 1-3: Exited with exit code 1",
    )


@case(
    "s098", "connection-error", "dependency-failure", "escalate fix-and-resubmit",
    source="after the report of a worker pod with an out-of-memory init container that needs next to no memory",
    why="The init container only waits for the master, which is not reachable (its pod is Pending, unschedulable volume); the endless loop slowly outgrew 20Mi. More memory would change nothing.",
    tags="misleading kubernetes", also="launch-failure host-out-of-memory storage-error", also_cls="config-error", nodes="", gpus=16, mention=["master"], must_not="out-of-memory node-failure",
)  # fmt: skip
def s098(c: Case) -> None:
    c.start("2023-01-26 16:04:55")
    g = c.file("get.txt")
    g.add(
        "$ kubectl -n cv get pods",
        table(
            [
                "NAME|READY|STATUS|RESTARTS|AGE",
                "vgg-dist-master-0|0/1|Pending|0|9h",
                "vgg-dist-worker-0|0/1|Init:OOMKilled|31 (6m ago)|9h",
                "vgg-dist-worker-1|0/1|Init:OOMKilled|30 (2m ago)|9h",
                "vgg-dist-worker-2|0/1|Init:0/1|31 (20s ago)|9h",
            ]
        ),
        e="vgg-dist-master-0",
    )
    w = c.file("worker-0.txt")
    w.add(
        "$ kubectl -n cv describe pod vgg-dist-worker-0",
        "Name:         vgg-dist-worker-0",
        "Init Containers:",
        "  init-pytorch:",
        "    Image:      alpine:3.10",
        "    Command:",
        "      sh",
        "      -c",
        "      err=1;for i in $(seq 100000);do if nslookup vgg-dist-master-0; then err=0 && break; fi;echo waiting for master; sleep 2; done; exit $err",
        "    State:          Waiting",
        "      Reason:       CrashLoopBackOff",
        "    Last State:     Terminated",
        "      Reason:       OOMKilled",
        "      Exit Code:    137",
        "    Limits:",
        "      cpu:     100m",
        "      memory:  20Mi",
    )
    w.add(
        events(
            [
                'Normal|Pulled|9m (x31 over 9h)|kubelet|Container image "alpine:3.10" already present on machine',
                "Warning|BackOff|4m (x640 over 9h)|kubelet|Back-off restarting failed container init-pytorch in pod vgg-dist-worker-0_cv",
            ]
        )
    )
    i = c.file("init-log.txt")
    for _ in range(90):
        i.add(
            "Server:\t\t10.96.0.10",
            "Address:\t10.96.0.10:53",
            "",
            "** server can't find vgg-dist-master-0.cv.svc.cluster.local: NXDOMAIN",
            "waiting for master",
        )
    i.marked[4] = i.rows[3]
    m = c.file("master-0.txt")
    m.add(
        describe(
            c,
            "vgg-dist-master-0",
            ns="cv",
            node="<none>",
            ip="",
            labels=["training.kubeflow.org/job-role=master"],
            status="Pending",
            container=["Limits:", "  nvidia.com/gpu:  4"],
            requests=["nvidia.com/gpu:  4"],
            image="cv/vgg:5",
        ),
        events(
            [
                "Warning|FailedScheduling|3m (x110 over 9h)|default-scheduler|0/6 nodes are available: 3 node(s) had volume node affinity conflict, 3 Insufficient nvidia.com/gpu."
            ]
        ),
        e="FailedScheduling",
    )


@case(
    "s099", "healthy", "none", "none",
    source="a weather code over MPI whose log is full of warnings, retries of connections and a restarted send, and which completes",
    why="The run prints 'SUCCESS COMPLETE WRF' and exit code 0; the retried UCX and HDF5 lines and CFL warnings were handled on the way.",
    tags="healthy multi-node slurm", nodes="",
)  # fmt: skip
def s099(c: Case) -> None:
    c.start("2023-08-19 21:00:00")
    log = c.file("wrf.o77120")
    names = hosts("cn", 310, 4, 4)
    log.add(
        "starting wrf task            0  of          256",
        *[f"starting wrf task {r:12d}  of          256" for r in c.rng.sample(range(1, 256), 60)],
    )
    hour = 0
    for step in range(1, 2600):
        c.tick(0.6, 0.8)
        m = step * 20 // 60
        log.add(
            f"Timing for main: time 2023-08-20_{m // 60:02d}:{m % 60:02d}:{step * 20 % 60:02d} on domain   {1 + step % 2}:    {c.f(0.4, 0.9):.5f} elapsed seconds"
        )
        if m // 60 > hour:
            hour = m // 60
            log.add(
                f"Timing for Writing wrfout_d01_2023-08-20_{hour:02d}:00:00 for domain        1:    {c.f(3, 9):.5f} elapsed seconds"
            )
        if step in (300, 1210, 1211):
            log.add(
                f"d02 2023-08-20_{m // 60:02d}:{m % 60:02d}:00            7  points exceeded cfl=2 in domain d02 at time 2023-08-20_{m // 60:02d}:{m % 60:02d}:00 hours",
                f"d02 2023-08-20_{m // 60:02d}:{m % 60:02d}:00 MAX AT i,j,k:          214         101          22  vert_cfl,w,d(eta)=    2.1{c.n(100, 999)}       12.4471     0.0221",
            )
        if step == 900:
            log.add(
                f"[{c.n(1600000000, 1700000000)}.120021] [{names[2]}:{c.n(2000, 9000)}:0]          sock.c:323  UCX  ERROR   connect(fd=61, dest_addr=10.20.1.12:44211) failed: Connection refused, retrying",
                f"[{names[2]}:{c.n(2000, 9000)}] mca_btl_tcp: reconnected to {names[3]} after 1 retry",
            )
        if step == 1800:
            log.add(
                "HDF5-DIAG: Error detected in HDF5 (1.12.2) MPI-process 0:",
                "  #000: H5A.c line 528 in H5Aopen(): can't open attribute: DIM_LABELS",
                "    major: Attribute",
                "    minor: Can't open object",
                " (optional attribute, ignored)",
            )
    log.add("d01 2023-08-20_14:26:20 wrf: SUCCESS COMPLETE WRF", "wrf.exe rc=0, 3 of 3 output files checked")


@case(
    "s100", "host-out-of-memory", "config-error", "fix-and-resubmit",
    source="after three reports of bus errors in containers with 64 MB of shared memory, where the launcher shows an exit code -7",
    why="Rank 0 took SIGBUS inside NCCL's shared memory transport; df in the head shows /dev/shm with 64 MB, nearly full. The ChildFailedError block only repeats exit code -7.",
    tags="misleading training cascade", also="os-error native-crash disk-full", also_cls="resource-exhaustion", nodes="", ranks="0", gpus=8, mention=["shm|shared memory"], must_not="ecc-error out-of-memory",
)  # fmt: skip
def s100(c: Case) -> None:
    c.start("2024-04-08 03:33:20")
    c.site = "/opt/conda/lib/python3.10/site-packages"
    log = c.file("bge-ft.txt")
    log.add(
        "root@e1b7c44a90d2:/workspace# df -h /dev/shm /workspace",
        "Filesystem      Size  Used Avail Use% Mounted on",
        "shm              64M   63M  1.1M  99% /dev/shm",
        "/dev/nvme0n1p2  1.8T  311G  1.4T  18% /",
        tt.omp(c, "2.0"),
        e="shm              64M",
    )
    log.add(
        *[
            f"{c.t('%m/%d/%Y %H:%M:%S')} - WARNING - __main__ -   Process rank: {r}, device: cuda:{r}, n_gpu: 1, distributed training: True, 16-bits training: True"
            for r in range(8)
        ],
        f"{c.t('%m/%d/%Y %H:%M:%S')} - INFO - __main__ -   Model parameters DataTrainingArguments(passage_max_len=512, query_max_len=64, train_group_size=8)",
    )
    c.tick(20)
    log.add("[e1b7c44a90d2:2210 :0:2981] Caught signal 7 (Bus error: nonexistent physical address)", e=True)
    log.add(
        "==== backtrace (tid:   2981) ====",
        " 0 0x0000000000042520 __sigaction()  ???:0",
        " 1 0x00000000001a6b0d __nss_database_lookup()  ???:0",
        " 2 0x0000000000071a4e ncclShmSetup()  ???:0",
        " 3 0x000000000005ae88 ncclGroupEnd()  ???:0",
        " 4 0x0000000000f1bc7e c10d::ProcessGroupNCCL::broadcast()  ???:0",
        "=================================",
    )
    pids = list(range(2210, 2218))
    log.add(
        tt.sigterm(c, "2.0", pids[1:]),
        tt.exits(c, "2.0", -7, 0, 2210),
        tt.child_failed(c, "FlagEmbedding.baai_general_embedding.finetune.run", "e1b7c44a90d2", [(0, 0, -7, 2210)]),
    )
