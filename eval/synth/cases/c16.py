"""s069 to s072."""

from __future__ import annotations

from synth import megatron as mg
from synth import torch_text as tt
from synth.frameworks import bar, hf_steps
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, fault, pre, tb, weave


@case(
    "s069", "host-out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a launcher that says only 'return code = -9' while GPU memory is half empty: parameters and optimizer offloaded to host memory",
    why="The launcher only says -9, but the node's kernel log has the OOM killer on the python of that run (no memory group limit, the host itself); the settings offload parameters and optimizer to the CPU.",
    tags="misleading kernel multi-file training", also_cls="config-error", nodes="", gpus=8, mention=["memory|offload"], must_not="out-of-memory cancelled preempted native-crash",
)  # fmt: skip
def s069(c: Case) -> None:
    c.start("2023-08-29 17:11:07")
    log = c.file("zero3-offload.log")
    log.add(
        mg.ds_start(
            c,
            ["localhost"],
            8,
            "run_clm.py",
            "--model_name_or_path tiiuae/falcon-40b --deepspeed ds_z3_off.json --bf16",
        ),
        mg.ds_config(
            c,
            3,
            1,
            1,
            8,
            zero_config="{'stage': 3, 'offload_param': {'device': 'cpu', 'pin_memory': True}, 'offload_optimizer': {'device': 'cpu', 'pin_memory': True}}",
        ),
    )
    log.add(
        *[f"Loading checkpoint shards: {bar(i, 9, 19.0)}" for i in range(10)],
        mg.ds(
            c,
            "MA 0.43 GB         Max_MA 0.66 GB         CA 0.7 GB         Max_CA 1 GB ",
            "utils.py:786:see_memory_usage",
        ),
        mg.ds(c, "CPU Virtual Memory:  used = 441.17 GB, percent = 87.6%", "utils.py:793:see_memory_usage"),
        "Time to load cpu_adam op: 2.3120 seconds",
        "Adam Optimizer #0 is created with AVX512 arithmetic capability.",
    )
    c.tick(70)
    log.add(
        mg.ds(c, "Before creating optimizer states", "stage3.py:480:_setup_for_real_optimizer"),
        mg.ds(c, "CPU Virtual Memory:  used = 489.77 GB, percent = 97.3%", "utils.py:793:see_memory_usage"),
    )
    c.tick(25)
    k = Kernel(c, "rtx-srv2")
    d = c.file("journal-k.txt")
    d.add(chatter(c, k, 30, 9000))
    d.add(k("python invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0", 1), k("CPU: 37 PID: 30412 Comm: python Tainted: P           OE     5.15.0-79-generic #86-Ubuntu", 1), k("Mem-Info:", 1), k("active_anon:1204471 inactive_anon:121330442 isolated_anon:0", 1), k("Node 0 Normal free:151204kB min:157892kB low:282316kB high:406740kB", 1), k("Tasks state (memory values in pages):", 1),
           k("[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name", 1), *[k(f"[  {30408 + i}]  1004 {30408 + i} {c.n(40000000, 41000000)} {c.n(15000000, 15900000)} {c.n(120000000, 130000000)}        0             0 python", 1) for i in range(8)])  # fmt: skip
    d.add(
        k(
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=user.slice,mems_allowed=0-1,global_oom,task_memcg=/user.slice/user-1004.slice,task=python,pid=30412,uid=1004",
            1,
        ),
        k(
            "Out of memory: Killed process 30412 (python) total-vm:163204112kB, anon-rss:62840120kB, file-rss:70212kB, shmem-rss:812044kB, UID:1004 pgtables:126604kB oom_score_adj:0",
            1,
        ),
        e=True,
    )
    log.add(
        mg.ds_killed(
            c,
            range(30408, 30416),
            "['/usr/bin/python3', '-u', 'run_clm.py', '--local_rank=7', '--model_name_or_path', 'tiiuae/falcon-40b', '--deepspeed', 'ds_z3_off.json', '--bf16']",
            -9,
        ),
        e="return code = -9",
    )


@case(
    "s070", "unknown", "unknown", "restart escalate fix-and-resubmit",
    source="after the report of a worker that was killed with signal 9 and a log that does not say by whom",
    why="A worker was killed with SIGKILL; no out-of-memory line, no scheduler line, no kernel log. Memory is a guess: dmesg or the container's state must be looked at.",
    tags="unknown misleading training", status="unknown hypothesis", also="host-out-of-memory", also_cls="resource-exhaustion", also_outcome="unknown", nodes="", ranks="5", gpus=8, mention=["sigkill|signal 9|killed|-9"], must_not="cancelled preempted time-limit out-of-memory",
)  # fmt: skip
def s070(c: Case) -> None:
    c.start("2024-03-09 13:31:26")
    c.site = "/venv/lib/python3.11/site-packages"
    log = c.file("tinyrag.out")
    log.add(
        tt.omp(c, "2.2"),
        "retriever: contriever, 21 M passages, faiss IVF65536 on CPU, 3 shards a process",
        *[f"Loading index shard {i}/24 ({c.f(2.9, 3.4):.2f} GB)" for i in range(24)],
    )
    log.add(
        hf_steps(c, 20, 3400, total=12000, per_epoch=4000, sec=0.81, loss=Curve(c, 3.3, 1.6, 500), every=20, bars=False)
    )
    c.tick(40)
    pids = c.pids(8, 5100)
    log.add(tt.sigterm(c, "2.2", [p for i, p in enumerate(pids) if i != 5]))
    c.tick(30)
    log.add(tt.agent(c, "2.2", "WARNING", 1, "Unable to shutdown process 5100 via 15, forcefully exiting via 9"))
    log.add(
        tt.exits(c, "2.2", -9, 5, pids[5], "/venv/bin/python"),
        tt.child_failed(c, "train_rag.py", "7f2b31c0d9a1", [(5, 5, -9, pids[5])]),
        e="-9",
    )


@case(
    "s071", "storage-error", "dependency-failure", "escalate restart kill-and-restart",
    source="after the report of an all-reduce time-out with healthy communication, where one rank's data loader had stopped delivering",
    why="The stack dump of rank 6 stands in the data loader's queue while all others wait in the all-reduce; the kernel of its node says since 06:03 that the NFS server of the data mount does not respond.",
    tags="misleading storage kernel multi-file multi-node hang", also="nccl-timeout hang dataloader-killed", nodes="hx-012", ranks="6", gpus=16, mention=["nfs|mount|data loader|dataloader"], must_not="collective-mismatch network-error gpu-lost",
)  # fmt: skip
def s071(c: Case) -> None:
    c.start("2025-08-06 01:22:45")
    c.site, c.root = "/usr/local/lib/python3.12/dist-packages", "/opt/megatron-lm"
    names = ["hx-011", "hx-012", "hx-013", "hx-014"]
    log = c.file("run/logs.txt")
    log.add(mg.startup(c, tp=1, pp=1, params=1235814400, micro=8, vocab=128256, data="/mnt/dclm/idx/dclm4t"))
    loss = Curve(c, 11.1, 2.5, 600)
    step = 1
    while c.t("%H:%M") < "06:03":
        log.add(mg.steps(c, step, step, total=95000, gbs=512, sec=2.0, loss=loss, tflops=388.0))
        step += 1
        c.tick(24)
    hang = c.now
    for r in range(16):
        f = c.file(f"run/stacks/rank_{r:02d}.txt")
        c.now = hang
        c.tick(598)
        f.add(f"[ft-monitor] {c.t()} rank {r} ({names[r // 4]}): no progress for 598 s, dumping stacks")
        if r == 6:
            f.add(fault(c, """
                /usr/lib/python3.12/selectors.py:415 select
                /usr/lib/python3.12/multiprocessing/connection.py:1136 wait
                /usr/lib/python3.12/multiprocessing/queues.py:113 get
                $S/torch/utils/data/dataloader.py:1251 _try_get_data
                $S/torch/utils/data/dataloader.py:1420 _next_data
                $S/torch/utils/data/dataloader.py:708 __next__
                pretrain_gpt.py:121 get_batch
                megatron/core/pipeline_parallel/schedules.py:287 forward_step"""), e="_try_get_data")  # fmt: skip
        else:
            f.add(fault(c, """
                $S/torch/distributed/distributed_c10d.py:2810 all_reduce
                $S/torch/distributed/c10d_logger.py:81 wrapper
                megatron/core/distributed/finalize_model_grads.py:291 finalize_model_grads
                megatron/core/pipeline_parallel/schedules.py:593 forward_backward_no_pipelining
                megatron/training/training.py:1388 train_step"""))  # fmt: skip
    for n, name in enumerate(names):
        c.now = hang
        k = Kernel(c, name)
        d = c.file(f"run/kern/{name}.log")
        d.add(chatter(c, k, 20, 10000))
        if n == 1:
            d.add(k("nfs: server nas-dclm not responding, still trying", 4), e=True)
            d.add(
                k("INFO: task pt_data_worker:55120 blocked for more than 120 seconds.", -125),
                k(" nfs_wait_bit_killable+0x1e/0x90 [nfs]", -125),
                k(" filemap_read+0x9a/0x330", -125),
                e="blocked for more",
            )
    c.now = hang
    c.tick(603)
    log.add(
        weave(
            c.rng,
            [
                tt.watchdog(c, "2.6", r, 40117, "ALLREDUCE", numel=(1,) * 2, last=(40117, 40116))
                for r in range(16)
                if r != 6
            ],
            3,
        )
    )
    log.add(tt.follower(c, 6, 0, 40116, 40116))


@case(
    "s072", "permission-error", "config-error", "fix-and-resubmit",
    source="after the report of a training pod that cannot create '/.cache' because the platform gives it a random user without a home",
    why="HOME is not set for the random user 1000740000, so the cache path becomes '/.cache', which it may not create; all four ranks say the same and the rendezvous noise follows.",
    tags="kubernetes training", nodes="", gpus=4, mention=["home|cache"], must_not="disk-full storage-error file-not-found",
)  # fmt: skip
def s072(c: Case) -> None:
    c.start("2024-09-24 12:01:50")
    c.site, c.root = "/opt/app-root/lib64/python3.11/site-packages", "/opt/app-root/src/instructlab"
    log = c.file("train-kfp-master-0.log")
    log.add(
        "whoami: cannot find name for user ID 1000740000",
        tt.omp(c, "2.4"),
        "INFO 2024-09-24 12:02:01,118 numexpr.utils:161: NumExpr defaulting to 16 threads.",
    )
    rows = [pre(f"[rank{r}]: ", tb(c, """
        $S/instructlab/training/main_ds.py:603 <module> | main(args)
        $S/instructlab/training/main_ds.py:430 main | train_loader = setup_dataloader(
        $S/datasets/load.py:2574 load_dataset | builder_instance.download_and_prepare(
        $S/datasets/builder.py:876 download_and_prepare | os.makedirs(self._cache_dir_root, exist_ok=True)
        <frozen os>:225 makedirs
        """, "PermissionError: [Errno 13] Permission denied: '/.cache'")) for r in range(4)]  # fmt: skip
    log.add(weave(c.rng, rows, 6), e="Permission denied")
    pids = c.pids(4, 61)
    log.add(
        tt.sigterm(c, "2.4", pids[2:]),
        tt.exits(c, "2.4", 1, 0, pids[0], "/opt/app-root/bin/python3.11"),
        tt.child_failed(c, "main_ds.py", "train-kfp-master-0", [(0, 0, 1, pids[0]), (1, 1, 1, pids[1])]),
    )
