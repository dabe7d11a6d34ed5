"""s081 to s084."""

from __future__ import annotations

from synth import torch_text as tt
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts, node_list


@case(
    "s081", "cuda-error", "software-bug", "fix-and-resubmit",
    source="a kernel of the user's own that reads out of bounds: illegal memory access with Xid 31 and 43 in the kernel log of each node",
    why="Illegal memory access on several ranks of both nodes at the same custom kernel call, with Xid 31 (MMU fault of pid's own access) and the echo 43 on different GPUs: the code, not a card.",
    tags="misleading hardware kernel multi-file multi-node", also_cls="data-error", nodes="", gpus=16, mention=["illegal memory|kernel|out of bounds|moe_permute"], must_not="gpu-lost ecc-error nvlink-error node-failure nccl-timeout",
)  # fmt: skip
def s081(c: Case) -> None:
    c.start("2025-03-27 14:14:14")
    c.site, c.root = "/opt/conda/lib/python3.11/site-packages", "/home/tariq/grouped-moe"
    names = ["h20-1", "h20-2"]
    log = c.file("moe.log")
    log.add(
        tt.omp(c, "2.5"),
        *[
            f"[{names[r // 8]}:{r}] experts 64, local 4, top-6, moe_permute kernel build 2025-03-27 13:58"
            for r in range(16)
        ],
    )
    loss = Curve(c, 8.8, 5.0, 40)
    for s in range(1, 61):
        c.tick(3.1)
        log.add(
            f"[{names[0]}:0] it {s} loss {loss(s):.4f} aux {c.f(0.9, 1.4):.3f} max tokens of one expert {c.n(3000, 4090)}"
        )
    log.add(f"[{names[0]}:0] it 61 loss {loss(61):.4f} aux 1.711 max tokens of one expert 4131 (capacity 4096)", e=True)
    rows, hit = [], [1, 3, 6, 8, 11, 12]
    for r in hit:
        rows.append(pre(f"[rank{r}]: ", tb(c, "train.py:166 <module> | main()\ngrouped_moe/layer.py:88 forward | permuted, idx = moe_permute(x, routing, self.capacity)\ngrouped_moe/ops.py:31 moe_permute | torch.cuda.current_stream().synchronize()",
            ["RuntimeError: CUDA error: an illegal memory access was encountered", "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.", "For debugging consider passing CUDA_LAUNCH_BLOCKING=1", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."])))  # fmt: skip
    log.add(weave(c.rng, rows, 6), e="illegal memory access")
    for n, name in enumerate(names):
        k = Kernel(c, name)
        d = c.file(f"{name}-dmesg.log")
        d.add(chatter(c, k, 25, 300000))
        for i, r in enumerate(r for r in hit if r // 8 == n):
            b = ("0f", "34", "48", "5a", "87", "ae", "c2", "d7")[r % 8]
            d.add(
                k(
                    f"NVRM: Xid (PCI:0000:{b}:00): 31, pid={81000 + r}, name=python, Ch 0000000{c.n(1, 9)}, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC{c.n(0, 6)} GPCCLIENT_T1_{c.n(0, 14)} faulted @ 0x7f{c.hex(2)}_{c.hex(8)}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
                    -i * 0.01,
                ),
                e=True,
            )
            d.add(
                k(
                    f"NVRM: Xid (PCI:0000:{b}:00): 43, pid={81000 + r}, name=python, Ch 0000000{c.n(1, 9)}",
                    -0.2 - i * 0.01,
                )
            )
    c.tick(3)
    for n, name in enumerate(names):
        pids = [81000 + n * 8 + i for i in range(8)]
        mine = [r for r in hit if r // 8 == n]
        log.add(
            tt.sigterm(c, "2.5", [p for i, p in enumerate(pids) if n * 8 + i not in mine]),
            tt.exits(c, "2.5", 1, mine[0] % 8, pids[mine[0] % 8]),
            tt.child_failed(c, "train.py", name, [(r, r % 8, 1, pids[r % 8]) for r in mine]),
        )


@case(
    "s082", "file-not-found", "dependency-failure", "restart-excluding escalate",
    source="one node of eight on which a file system is not mounted, so that its ranks do not find what the others read",
    why="Only the ranks of bn0233 miss /gpfs/data/...: slurmstepd could not change into the folder there ('going to /tmp instead'), so the mount is missing on that node; other ranks read the same file.",
    tags="misleading slurm storage multi-node", also="storage-error node-failure dataset-loading-error", also_cls="hardware-failure config-error", nodes="bn0233", ranks="40 41 42 43 44 45 46 47", gpus=64, mention=["mount|bn0233|node"], must_not="nccl-timeout permission-error",
)  # fmt: skip
def s082(c: Case) -> None:
    c.start("2025-05-15 22:58:31")
    c.site, c.root = "/opt/venv/lib/python3.11/site-packages", "/gpfs/home/lena/ocean-fno"
    names = [*hosts("bn", 228, 5, 4), "bn0233", "bn0234", "bn0235"]
    log = c.file("ocean.660012.err")
    log.add(
        f"srun on {node_list(names)}",
        "slurmstepd: error: couldn't chdir to `/gpfs/home/lena/ocean-fno': No such file or directory: going to /tmp instead",
        e="couldn't chdir",
    )
    rows = [
        pre(
            f"{r}: ",
            [
                f"oceanfno rank {r} of 64 on {names[r // 8]}",
                "opened /gpfs/data/glorys12/index.json: 11132 days, 41 variables",
            ],
        )
        for r in range(64)
        if not 40 <= r < 48
    ]
    c.root = "/opt/ocean-fno-1.4"
    rows += [
        pre(
            f"{r}: ",
            [
                f"oceanfno rank {r} of 64 on bn0233",
                *tb(
                    c,
                    "oceanfno/__main__.py:12 <module> | main()\noceanfno/train.py:71 main | index = json.load(open(cfg.index))",
                    "FileNotFoundError: [Errno 2] No such file or directory: '/gpfs/data/glorys12/index.json'",
                ),
            ],
        )
        for r in range(40, 48)
    ]
    log.add(weave(c.rng, rows, 4), e="FileNotFoundError")
    log.add(
        "srun: error: bn0233: tasks 40-47: Exited with exit code 1",
        "srun: Job step aborted: Waiting up to 92 seconds for job step to finish.",
        *[
            f"{r}: torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 56/64 clients joined."
            for r in (0,)
        ],
        f"slurmstepd: error: *** STEP 660012.0 ON bn0228 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***",
        *[f"srun: error: {n}: tasks {i * 8}-{i * 8 + 7}: Killed" for i, n in enumerate(names) if n != "bn0233"],
    )


@case(
    "s083", "launch-failure", "dependency-failure", "escalate restart-excluding",
    source="after the report of jobs that stay in '(launch failed requeued held)' because all of them land on one node that missed a reboot",
    why="slurmctld says that the prolog failed on pg-17 for three jobs in a row, each was requeued and held; slurmd there could not find a file that its configuration expects since a reboot that is pending. No job log exists because nothing started.",
    tags="scheduler slurm multi-file", also="node-failure", also_cls="config-error hardware-failure", nodes="pg-17", mention=["pg-17|prolog"], must_not="cancelled preempted time-limit",
    scheduler={"JobID": "40318", "State": "PENDING", "Reason": "launch failed requeued held"},
)  # fmt: skip
def s083(c: Case) -> None:
    c.start("2023-02-21 08:31:00")
    q = c.file("squeue.txt")
    q.add("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)", "             40318       gpu  sd2-ft    amalia PD       0:00      2 (launch failed requeued held)", "             40322       gpu  gan-sr      hugo PD       0:00      1 (launch failed requeued held)", "             40325       gpu  vae-64    amalia PD       0:00      1 (launch failed requeued held)",
          "             40297       gpu  bert-xl     ravi  R    7:12:55      2 pg-[11-12]", "             40311       gpu  yolo-v8     hugo  R    1:02:10      1 pg-14", e="40318")  # fmt: skip
    log, d = c.file("slurmctld-excerpt.log"), c.file("slurmd-pg-17.log")
    st = lambda: c.t("[%Y-%m-%dT%H:%M:%S.%f3]")  # noqa: E731
    for job, nodes in (
        (40297, "pg-[11-12]"),
        (40311, "pg-14"),
        (40318, "pg-[16-17]"),
        (40322, "pg-17"),
        (40325, "pg-17"),
    ):
        c.tick(60, 200)
        log.add(f"{st()} sched: Allocate JobId={job} NodeList={nodes} #CPUs=32 Partition=gpu")
        if "17" in nodes:
            c.tick(1, 2)
            d.add(
                f"{st()} error: Waiting for JobId={job} REQUEST_LAUNCH_PROLOG notification failed, giving up after 20 sec",
                f"{st()} error: prolog failed: rc:1 output:/etc/slurm/prolog.d/30-gpu: /run/gres/gpu.map: No such file or directory (expected since config rev 118, reboot pending)",
                f"{st()} error: [job {job}] prolog failed status=1:0",
                f"{st()} Job {job} already killed, do not launch batch job",
                e="30-gpu",
            )
            log.add(
                f"{st()} error: slurmd error running JobId={job} on node(s)=pg-17: Prolog error",
                f"{st()} _requeue_job: requeue and hold JobId={job}, launch failed",
                e="Prolog error",
            )
        for _ in range(14):
            log.add(
                c.rng.choice(
                    [
                        f"{st()} _slurm_rpc_submit_batch_job: JobId={c.n(40326, 40400)} InitPrio={c.n(900, 99999)} usec={c.n(200, 900)}",
                        f"{st()} _job_complete: JobId={c.n(40200, 40296)} WEXITSTATUS 0",
                        f"{st()} _job_complete: JobId={c.n(40200, 40296)} done",
                    ]
                )
            )


@case(
    "s084", "out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a job that keeps its allocation after some ranks died of device memory because the others hang, until its time limit",
    why="Ranks 0, 1 and 4 ran out of device memory in the fortieth minute; srun was not told to end the step, so the rest waited in a collective for five hours until the time limit, which is only the last line.",
    tags="misleading scheduler slurm cascade multi-node", also="time-limit", also_outcome="interrupted hung", nodes="", ranks="0 1 4", gpus=8, mention=["memory"], must_not="cancelled preempted node-failure network-error",
    scheduler={"JobID": "22871", "State": "TIMEOUT", "Timelimit": "06:00:00"},
)  # fmt: skip
def s084(c: Case) -> None:
    c.start("2023-12-13 09:00:11")
    c.site, c.root = "/home/aidan/.conda/envs/ev/lib/python3.10/site-packages", "/home/aidan/EveryVoice"
    log = c.file("hfgan.err")
    log.add(
        *[f"{c.t()} | rank {r} | HiFiGAN, batch 64, segment 32768" for r in range(8)],
        "/home/aidan/.conda/envs/ev/lib/python3.10/site-packages/torch/functional.py:650: UserWarning: stft with return_complex=False is deprecated.",
    )
    loss = Curve(c, 90, 33, 300)
    for s in range(25, 1600, 25):
        c.tick(37, 39)
        log.add(f"{c.t()} | rank 0 | step {s} gen {loss(s):.3f} disc {c.f(2.1, 4.4):.3f} mel {loss(s) / 45:.3f}")
    fr = "$S/everyvoice/cli.py:41 <module> | app()\n$S/hfgl/model.py:588 training_step | y_hat = self(x).squeeze()\n$S/torch/nn/modules/conv.py:306 _conv_forward | return F.conv1d(input, weight, bias, self.stride,"
    rows = [
        pre(
            f"{r}: ",
            tb(
                c,
                fr,
                tt.oom(
                    "2.1",
                    r % 4,
                    f"{c.n(60, 180)}.00 MiB",
                    "15.77 GiB",
                    f"{c.n(30, 90)}.19 MiB",
                    "15.70 GiB",
                    "14.31 GiB",
                    "310.22 MiB",
                ),
            ),
        )
        for r in (0, 1, 4)
    ]
    log.add(weave(c.rng, rows, 6), e="OutOfMemoryError")
    log.add(
        "srun: error: ib12gpu-002: task 4: Exited with exit code 1",
        "srun: error: ib12gpu-001: tasks 0-1: Exited with exit code 1",
    )
    c.start("2023-12-13 15:00:21")
    log.add(
        "slurmstepd: error: *** JOB 22871 ON ib12gpu-001 CANCELLED AT 2023-12-13T15:00:21 DUE TO TIME LIMIT ***",
        "slurmstepd: error: *** STEP 22871.0 ON ib12gpu-001 CANCELLED AT 2023-12-13T15:00:21 DUE TO TIME LIMIT ***",
        "srun: error: ib12gpu-002: tasks 5-7: Killed",
        "srun: error: ib12gpu-001: tasks 2-3: Killed",
    )
