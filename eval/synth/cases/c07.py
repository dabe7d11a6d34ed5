"""s031 to s035."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import hf_steps
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts, sacct


@case(
    "s031", "host-out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a container that the kernel killed for memory while the cluster's own words were that a user had terminated it",
    why="The container state says OOMKilled true with exit 137 and the kernel names the memory group of the container; 'Terminated by user' is what the controller printed for any container that stopped.",
    tags="misleading multi-file kernel", nodes="", gpus=8, mention=["memory|oom"], must_not="cancelled preempted out-of-memory",
)  # fmt: skip
def s031(c: Case) -> None:
    c.start("2026-02-09 21:47:03")
    log = c.file("task-0.stdout")
    log.add(
        "[iris] task train-0 attempt 0 on worker gcp-a3-17",
        "I0209 21:47:30.118 levanter.data.text: building tokenised cache for 412 shards, 96 processes",
        f"I{c.t('%m%d %H:%M:%S.%f3')} host memory limit of the container: 1750000 MiB",
    )
    used = 90.0
    for k in range(410):
        c.tick(9, 12)
        used += c.f(2.6, 5.4)
        log.add(
            f"I{c.t('%m%d %H:%M:%S.%f3')} levanter.data.cache: shard {k}/412 done, {c.n(900, 1200)} docs/s, writers holding {used:.0f} GiB"
        )
        if k % 37 == 0:
            log.add(
                f"W{c.t('%m%d %H:%M:%S.%f3')} zarr: slow chunk write ({c.f(2, 9):.1f} s), will retry if it does not complete"
            )
    log.add(
        "[iris] task train-0: container is gone",
        "[iris] task train-0 state KILLED: Terminated by user",
        "[iris] job train: failures=0 preemptions=0 killed=1",
    )
    ins = c.file("inspect.json")
    ins.add(
        "[",
        "    {",
        f'        "Id": "{c.hex(64)}",',
        f'        "Created": "2026-02-09T21:46:59.{c.n(100000000, 999999999)}Z",',
        '        "Path": "/bin/bash",',
        '        "State": {',
        '            "Status": "exited",',
        '            "Running": false,',
        '            "Paused": false,',
        '            "Restarting": false,',
    )
    ins.add(
        '            "OOMKilled": true,',
        '            "Dead": false,',
        '            "Pid": 0,',
        '            "ExitCode": 137,',
        '            "Error": "",',
        e='"OOMKilled": true',
    )
    ins.add(
        f'            "FinishedAt": "{c.t("%Y-%m-%dT%H:%M:%S")}.{c.n(100000000, 999999999)}Z"',
        "        },",
        '        "HostConfig": {',
        '            "Memory": 1835008000000,',
        '            "ShmSize": 107374182400,',
        '            "Ulimits": [{"Name": "memlock", "Hard": -1, "Soft": -1}]',
        "        }",
        "    }",
        "]",
    )
    k = Kernel(c, "gcp-a3-17")
    dm = c.file("kern.log")
    dm.add(chatter(c, k, 40, 5000))
    dm.add(k("pool-4-thread-1 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", 3), k("memory: usage 1792000000kB, limit 1792000000kB, failcnt 48213", 3), k("swap: usage 0kB, limit 0kB, failcnt 0", 3),
           k(f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-{c.hex(64)}.scope,mems_allowed=0-1,oom_memcg=/system.slice/docker-{c.hex(64)}.scope,task_memcg=/system.slice/docker-x.scope,task=python,pid=228811,uid=0", 3),
           k("Memory cgroup out of memory: Killed process 228811 (python) total-vm:2210445312kB, anon-rss:41220936kB, file-rss:81920kB, shmem-rss:104448kB, UID:0 pgtables:1204480kB oom_score_adj:0", 3), e="oom-kill:constraint")  # fmt: skip


@case(
    "s032", "healthy", "none", "none",
    source="a run that ended well on nodes whose kernel logs hold a recorded row remap and a link that flapped and came back",
    why="The run reaches its last iteration, saves and ends with code 0; Xid 63 books a row for remapping (no 48, 94 or 95), the link was down for four seconds and NCCL's retries covered it.",
    tags="healthy multi-file kernel multi-node", nodes="", gpus=32,
)  # fmt: skip
def s032(c: Case) -> None:
    c.start("2024-08-01 00:12:06")
    names = hosts("mp", 61, 4, 3)
    log = c.file("train.log")
    log.add(
        nccl.init(
            c,
            names,
            8,
            "2.21.5",
            "12.5",
            channels=2,
            bus=nccl.BUS_H100,
            env=("NCCL_IB_TIMEOUT=22", "NCCL_IB_RETRY_CNT=10"),
        )
    )
    log.add(
        mg.arguments(
            {
                "train_iters": "9000",
                "world_size": "32",
                "global_batch_size": "512",
                "hidden_size": "2048",
                "num_layers": "24",
                "save": "/vast/lm/1b3-de",
                "eval_interval": "3000",
            }
        ),
        mg.startup(c, tp=1, pp=1, params=1315819520, micro=16, vocab=50257, data="/vast/lm/idx/de_web"),
    )
    loss = Curve(c, 10.8, 2.55, 500)
    log.add(
        mg.steps(
            c, 1, 3400, total=9000, gbs=512, sec=2.31, loss=loss, every=10, tflops=402.0, save=(1000, "/vast/lm/1b3-de")
        )
    )
    flap = c.now
    log.add(
        "mp063:7715:8204 [4] transport/net_ib.cc:154 NCCL WARN NET/IB : mlx5_4:1 Got non-fatal async event: port error(10)",
        "mp063:7715:8204 [4] transport/net_ib.cc:154 NCCL WARN NET/IB : mlx5_4:1 Got non-fatal async event: port active(9)",
    )
    log.add(
        mg.steps(
            c,
            3401,
            9000,
            total=9000,
            gbs=512,
            sec=2.31,
            loss=loss,
            every=10,
            tflops=402.0,
            save=(1000, "/vast/lm/1b3-de"),
        )
    )
    log.add(
        mg.saved(c, 9000, "/vast/lm/1b3-de"),
        f"[after training is done] datetime: {c.t()} ",
        "validation loss at iteration 9000 on validation set | lm loss value: 2.598114E+00 | lm loss PPL: 1.343835E+01 | ",
        "wandb: Run history:",
        "wandb:      lm-loss ███▅▃▂▂▂▁▁▁",
        "wandb: Synced 6 W&B file(s), 0 media file(s), 0 artifact file(s) and 0 other file(s)",
        "exit code 0",
    )
    end = c.now
    c.now = flap
    k = Kernel(c, "mp063")
    a = c.file("kern/mp063.log")
    a.add(
        chatter(c, k, 60, 8000),
        k("mlx5_core 0000:9a:00.0 ibp154s0: Link down", -1),
        k("mlx5_core 0000:9a:00.0 ibp154s0: Link up", -5),
    )
    c.now = end
    a.add(chatter(c, k, 40, 9000))
    b, k2 = c.file("kern/mp061.log"), Kernel(c, "mp061")
    b.add(
        chatter(c, k2, 70, 20000),
        k2(
            "NVRM: Xid (PCI:0000:5d:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.",
            900,
        ),
        chatter(c, k2, 20, 800),
    )


@case(
    "s033", "file-not-found", "config-error", "fix-and-resubmit",
    source="after the report of a second node that cannot find the dataset's index files, which rank 0 built on storage of its own node",
    why="Only ranks 8 to 15 (node b2) miss the index files that rank 0 has just written under /local; the cache path is local to the node. Time-outs of the first node come later.",
    tags="slurm multi-node cascade misleading", also="dataset-loading-error", nodes="", ranks="8 9 10 11 12 13 14 15", gpus=16, mention=["/local|local|shared|index"], must_not="nccl-timeout permission-error node-failure",
)  # fmt: skip
def s033(c: Case) -> None:
    c.start("2024-03-20 12:25:49")
    c.site, c.root = "/opt/conda/lib/python3.10/site-packages", "/workspace/Megatron-LM"
    log = c.file("gpt-345m-2n.log")
    log.add(
        mg.arguments(
            {
                "data_path": "['/local/ssd/oscar_text_document']",
                "data_cache_path": "/local/ssd/cache",
                "world_size": "16",
                "num_layers": "24",
                "hidden_size": "1024",
                "data_impl": "mmap",
            },
            head="0: ",
        )
    )
    start = pre("0: ", mg.startup(c, tp=1, pp=1, params=354871296, micro=4, vocab=50257, data="/local/ssd/cache/oscar"))
    at = next(i for i, row in enumerate(start) if "datasets for GPT" in row)
    log.add(start[:at], *pre("0: ", [" > building dataset index ...", "    reading sizes...", "    creating numpy buffer of mmap...", "    creating memory view of numpy buffer...", " > WARNING: could not find index map files, building the indices on rank 0 ...", " > only one epoch required, setting separate_last_epoch to False",
        " > elasped time to build and save doc-idx mapping (seconds): 0.412271", "    using:", "     number of documents:       1119332", " > elasped time to build and save sample-idx mapping (seconds): 2.301744", " > elasped time to build and save shuffle-idx mapping (seconds): 0.155104"]))  # fmt: skip
    c.tick(5)
    h = c.hex(32)
    rows = [pre(f"{r}: ", tb(c, """
        pretrain_gpt.py:212 <module> | pretrain(
        megatron/training/training.py:227 pretrain | = build_train_valid_test_data_iterators(
        pretrain_gpt.py:188 train_valid_test_datasets_provider | ).build()
        megatron/core/datasets/blended_megatron_dataset_builder.py:311 build_generic_dataset | return cls(*args)
        megatron/core/datasets/gpt_dataset.py:152 __init__ | super().__init__(indexed_dataset, dataset_path, indexed_indices, num_samples, index_split, config)
        megatron/core/datasets/gpt_dataset.py:205 _finalize | ) = self._build_document_sample_shuffle_indices()
        megatron/core/datasets/gpt_dataset.py:559 _build_document_sample_shuffle_indices | document_index = numpy.load(path_to_document_index, allow_pickle=True, mmap_mode='r')
        $S/numpy/lib/npyio.py:405 load | fid = stack.enter_context(open(os_fspath(file), "rb"))
        """, f"FileNotFoundError: [Errno 2] No such file or directory: '/local/ssd/cache/{h}-GPTDataset-train-document_index.npy'")) for r in range(8, 16)]  # fmt: skip
    log.add(weave(c.rng, rows, 8), e="FileNotFoundError")
    log.add("srun: error: b2: tasks 8-15: Exited with exit code 1")
    c.tick(604)
    log.add(weave(c.rng, [pre(f"{r}: ", tt.watchdog(c, "2.2", r, 3, "ALLREDUCE", numel=(1, 1))) for r in range(8)], 4))
    log.add(
        "srun: error: b1: tasks 0-7: Aborted (core dumped)",
        sacct("JobID|State|ExitCode|NodeList", ["18850|FAILED|1:0|b[1-2]", "18850.0|FAILED|1:0|b[1-2]"]),
    )


@case(
    "s034", "nccl-timeout", "unknown", "restart escalate",
    source="after the report of a broadcast that times out and is followed by a request for more than an exabyte of device memory",
    why="The broadcast timed out after 1800 s on all ranks; the absurd allocation comes from reading the aborted result. Why the broadcast stalled is not in this log: it must stay open.",
    tags="misleading training unknown", also="unknown hang", also_outcome="unknown", status="hypothesis unknown", nodes="", gpus=16, mention=["broadcast|timeout|timed out"], must_not="out-of-memory host-out-of-memory value-error",
)  # fmt: skip
def s034(c: Case) -> None:
    c.start("2024-05-14 17:02:55")
    c.site, c.root = "/root/miniconda3/envs/trl/lib/python3.10/site-packages", "/root/dpo"
    log = c.file("dpo_qwen14b.log")
    log.add(
        tt.omp(c, "2.2"),
        "[INFO] loading reference model shards: 100%|██████████| 8/8 [01:02<00:00,  7.81s/it]",
        "[INFO] DPO beta=0.1 loss=sigmoid, 16 processes, gather_for_metrics on",
    )
    log.add(hf_steps(c, 10, 640, total=2380, per_epoch=1190, sec=17.0, loss=Curve(c, 0.69, 0.31, 120), lr=5e-7))
    c.tick(1803)
    log.add(
        weave(
            c.rng,
            [
                tt.watchdog(c, "2.2", r, 41877, "BROADCAST", numel=(2, 2), limit=1800000, teardown=False)
                for r in range(16)
            ],
            1,
        ),
        e="Watchdog caught",
    )
    for r in c.rng.sample(range(1, 16), 6):
        log.add(pre(f"[{r}] ", tb(c, "dpo.py:133 <module> | trainer.train()\n$S/trl/trainer/dpo_trainer.py:1219 prediction_step | all_losses = self.accelerator.gather_for_metrics(losses)\n$S/accelerate/utils/operations.py:405 _gpu_gather_object | output = pad_across_processes(tensor)\n"
            "$S/accelerate/utils/operations.py:618 pad | new_tensor = tensor.new_zeros(tuple(new_size)) + pad_index", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.")))  # fmt: skip
    log.add(
        weave(
            c.rng,
            [
                tt.taking_down(
                    c,
                    "2.2",
                    r,
                    f"[Rank {r}] Watchdog caught collective operation timeout: {tt.work('2.2', 41877, 'BROADCAST', (2, 2), 1800000)} ran for 1800{c.n(100, 900)} milliseconds before timing out.",
                )
                for r in range(16)
            ],
            3,
        )
    )
    pids = c.pids(8, 700)
    log.add(
        tt.sigterm(c, "2.2", pids[1:]),
        tt.exits(c, "2.2", -6, 0, pids[0]),
        tt.child_failed(c, "dpo.py", "node-a", [(0, 0, -6, pids[0])]),
    )
