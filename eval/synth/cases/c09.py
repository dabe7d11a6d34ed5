"""s041 to s044."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import hf_steps, warning
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s041", "collective-mismatch", "software-bug", "fix-and-resubmit",
    source="after the report of a mixture-of-experts training under ZeRO-3 on mixed image and video data in which ranks gather different parameters at the same sequence number",
    why="At sequence number 202558 rank 27 gathers 75,264 elements while all others gather 2,359,296: the ranks take different module paths (trace cache invalidated), so the gathers never match.",
    tags="misleading training multi-node hang", also="nccl-timeout", also_cls="data-error", nodes="", ranks="27", gpus=64, mention=["size|numel|75264|2359296|different|mismatch"], must_not="network-error gpu-lost",
)  # fmt: skip
def s041(c: Case) -> None:
    c.start("2024-02-05 16:20:22")
    c.site, c.root = (
        "/mnt/petrelfs/lin/anaconda3/envs/moellava/lib/python3.10/site-packages",
        "/mnt/petrelfs/lin/MoE-Video",
    )
    names = hosts("w", 0, 8, 1)
    log = c.file("moe_stage3.log")
    log.add(
        mg.ds_start(
            c,
            names,
            8,
            "moevid/train/train_mem.py",
            "--moe_enable True --num_experts 4 --top_k_experts 2 --deepspeed scripts/zero3.json",
        ),
        mg.ds_config(c, 3, 1, 4, 64),
    )
    log.add(
        pre(
            "w0: ",
            [
                f"[{c.t()}] loaded 665,298 image and 100,104 video conversations",
                "[Rank 0] trainable: 2,181,038,080 of 3,102,114,816",
            ],
        )
    )
    loss = Curve(c, 2.4, 1.0, 40)
    rows = hf_steps(c, 1, 269, total=2989, per_epoch=2989, sec=21.4, loss=loss, every=1)
    for row in rows:
        log.add(row)
        if c.rng.random() < 0.14:
            log.add(
                f"w{c.n(0, 7)}: Invalidate trace cache @ step {c.n(1, 14)}: expected module {c.n(15, 400)}, but got module {c.n(300, 700)}"
            )
    log.add("w3: Invalidate trace cache @ step 1: expected module 15, but got module 313", e=True)
    c.tick(1807)
    bad, good = (75264, 75264 * 64), (2359296, 2359296 * 64)
    order = [r for r in range(64) if r != 27]
    c.rng.shuffle(order)
    order.insert(33, 27)
    for r in order:
        log.add(
            pre(
                f"w{r // 8}: ",
                tt.watchdog(
                    c,
                    "2.1",
                    r,
                    202558,
                    "_ALLGATHER_BASE",
                    numel=bad if r == 27 else good,
                    limit=1800000,
                    teardown=False,
                ),
            ),
            e=True if r == 27 else (f"[Rank {r}]" if r == order[0] else False),
        )
    log.add(
        weave(
            c.rng,
            [
                pre(
                    f"w{r // 8}: ",
                    tt.taking_down(
                        c,
                        "2.1",
                        r,
                        f"[Rank {r}] Watchdog caught collective operation timeout: {tt.work('2.1', 202558, '_ALLGATHER_BASE', bad if r == 27 else good, 1800000)} ran for 18000{c.n(10, 99)} milliseconds before timing out.",
                    ),
                )
                for r in range(64)
            ],
            4,
        )
    )
    for n in names:
        log.add(
            pre(
                f"{n}: ",
                mg.ds_killed(
                    c,
                    c.pids(8, 170000),
                    "['/usr/bin/python', '-u', 'moevid/train/train_mem.py', '--local_rank=7', '--moe_enable', 'True']",
                    -6,
                ),
            ),
            f"pdsh@login1: {n}: ssh exited with exit code 250",
        )


@case(
    "s042", "collective-mismatch", "config-error", "fix-and-resubmit",
    source="after the report of a transport that complains of a collective mismatch because the nodes were configured differently",
    why="n05 runs with NCCL_ALGO=Tree and another buffer size than the other nodes (its environment lines), so local and remote sizes differ; the reset sockets come after.",
    tags="misleading multi-node multi-file network", also="version-mismatch network-error", nodes="n05", gpus=16, mention=["environment|NCCL_|configured|n05|differ"], must_not="gpu-lost node-failure",
)  # fmt: skip
def s042(c: Case) -> None:
    c.start("2023-08-01 14:08:10")
    names = ["n03", "n04", "n05", "n06"]
    init = nccl.init(c, names, 4, "2.18.1", "12.1", net="RoCE", hcas=2, subnet="10.2.7", channels=2)
    for h, name in enumerate(names):
        log = c.file(f"{name}.txt")
        odd = name == "n05"
        log.add(
            f"{name}: image cuda12.1-pt2.0.1-r{7 if not odd else 9}, kernel 5.4.0-150-generic",
            f"{name}: ulimit -l unlimited",
        )
        env = [
            "NCCL_IB_HCA=mlx5_0,mlx5_1",
            "NCCL_IB_GID_INDEX=3",
            *(["NCCL_ALGO=Tree", "NCCL_BUFFSIZE=1048576", "NCCL_PROTO=Simple"] if odd else ["NCCL_BUFFSIZE=8388608"]),
        ]
        rows = [row for row in init if row.startswith(name)]
        log.add(
            rows[:6],
            [
                f"{name}:{c.n(20000, 60000)}:{c.n(20000, 60000)} [0] NCCL INFO {e.split('=')[0]} set by environment to {e.split('=')[1]}."
                for e in env
            ],
            rows[6:],
            e="NCCL_ALGO set by" if odd else False,
        )
        loss = Curve(c, 2.3, 2.1, 10)
        log.add(*[f"{name}: [{c.t()}] rank {h * 4}: warm-up forward {i} loss {loss(i):.3f}" for i in range(3)])
        c.tick(1)
        for g in range(4):
            req = f"NET/IB : req 0/1 tag {g} peer 10.2.7.{23 if odd else 22}<{c.n(30000, 60000)}> collective mismatch error, local size {65536 if odd else 496640} remote size {496640 if odd else 65536}"
            if odd or h == 1 or h == 3:
                log.add(
                    f"{name}:{c.n(100, 400)}:{c.n(401, 900)} [{g}] transport/net_ib.cc:1064 NCCL WARN {req}", e=g == 0
                )
            log.add(f"{name}:{c.n(100, 400)}:{c.n(401, 900)} [{g}] NCCL INFO transport/net.cc:990 -> 5", f"{name}:{c.n(100, 400)}:{c.n(401, 900)} [{g}] NCCL INFO proxy.cc:679 -> 5 [Proxy Thread]",
                    f"RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, invalid usage, NCCL version 2.18.1" if h in (1, 2, 3) else "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, remote process exited or there was a network error, NCCL version 2.18.1",  # noqa: F541
                    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library." if h in (1, 2, 3) else "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.")  # fmt: skip
        pids = c.pids(4, 300)
        log.add(tt.sigterm(c, "2.0", pids[1:]), tt.child_failed(c, "pretrain_gpt.py", name, [(h * 4, 0, 1, pids[0])]))
        log.add(f"{name}: rc=1")
        c.tick(0.4)


@case(
    "s043", "healthy", "none", "none",
    source="a fine-tuning whose launcher lowers the batch size after two device out-of-memory errors and then trains to the end",
    why="The two out-of-memory errors belong to the search for a batch size; with 12 samples the run trains all three epochs, saves the model and ends with code 0.",
    tags="healthy training", nodes="", gpus=4,
)  # fmt: skip
def s043(c: Case) -> None:
    c.start("2024-11-18 08:33:00")
    c.site, c.root = "/home/ines/.pyenv/versions/ft/lib/python3.11/site-packages", "/home/ines/legal-ner"
    log = c.file("accelerate.out")
    log.add(
        "The following values were not passed to `accelerate launch` and had defaults used instead:",
        "\t`--num_machines` was set to a value of `1`",
        "\t`--mixed_precision` was set to a value of `'no'`",
        "To avoid this warning pass in values for each of the problematic parameters or run `accelerate config`.",
        warning(c, 3, "transformers/training_args.py"),
    )
    for size in (64, 32):
        log.add(f"[find_executable_batch_size] trying per-device batch size {size}")
        c.tick(14)
        log.add(tb(c, """
            $S/accelerate/utils/memory.py:157 decorator | return function(batch_size, *args, **kwargs)
            train_ner.py:206 inner_training_loop | outputs = model(**batch)
            $S/transformers/models/deberta_v2/modeling_deberta_v2.py:742 forward | attention_scores = torch.bmm(query_layer, key_layer.transpose(-1, -2) / scale)
            """, tt.oom("2.5", 0, f"{size * 0.047:.2f} GiB", "44.42 GiB", "1.31 GiB", "43.11 GiB", "41.60 GiB", "1.02 GiB")), f"[find_executable_batch_size] out of memory with {size}, clearing the cache")  # fmt: skip
    log.add(
        "[find_executable_batch_size] trying per-device batch size 12",
        "***** Running training *****",
        "  Num examples = 50,112",
        "  Num Epochs = 3",
    )
    loss = Curve(c, 1.1, 0.05, 200)
    for e in range(3):
        log.add(
            hf_steps(
                c, e * 1044 + 20, e * 1044 + 1040, total=3132, per_epoch=1044, sec=0.55, loss=loss, every=20, bars=False
            )
        )
        log.add(
            f"{{'eval_loss': {loss(e * 1044 + 1044) * 1.4:.4f}, 'eval_f1': {0.81 + e * 0.03:.4f}, 'eval_runtime': {c.f(31, 33):.2f}, 'epoch': {e + 1}.0}}"
        )
    log.add(f"{{'train_runtime': {c.f(1800, 1900):.1f}, 'train_samples_per_second': 81.2, 'train_steps_per_second': 1.7, 'train_loss': 0.1442, 'epoch': 3.0}}", "100%|██████████| 3132/3132 [30:55<00:00,  1.69it/s]", "Saving model checkpoint to out/legal-ner-deberta", "Model weights saved in out/legal-ner-deberta/model.safetensors",
            "[W1118 09:10:41.210330117 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL. On normal program exit, the application should call destroy_process_group to ensure that any pending NCCL operations have finished in this process.", "exit status: 0")  # fmt: skip


@case(
    "s044", "os-error", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a data loader that cannot open a shared memory object because of open files, not because of the size of /dev/shm",
    why="The worker's error carries 'Too many open files (24)'; /dev/shm has 503 GB free and ulimit -n is 1024 in the head of the log. The ancdata and pin-memory errors are the same limit seen from the parent.",
    tags="misleading training", also="dataloader-killed runtime-error", also_cls="config-error", nodes="", gpus=8, mention=["open files|ulimit|file descriptor|nofile"], must_not="host-out-of-memory out-of-memory disk-full",
)  # fmt: skip
def s044(c: Case) -> None:
    c.start("2022-07-13 03:04:05")
    c.site, c.root = "/opt/conda/lib/python3.8/site-packages", "/workspace/kinetics"
    log = c.file("slowfast-k700.log")
    log.add(
        "core file size          (blocks, -c) 0",
        "max locked memory       (kbytes, -l) unlimited",
        "open files                      (-n) 1024",
        "max user processes              (-u) unlimited",
        "shm                      504G  1.1G  503G   1% /dev/shm",
    )
    log.add(
        f"[{c.t('%m/%d %H:%M:%S')}][INFO] train_net.py: 381: Train with config:",
        *[
            f"[{c.t('%m/%d %H:%M:%S')}][INFO] train_net.py: 382: {k}: {v}"
            for k, v in (
                ("BN.NUM_SYNC_DEVICES", 1),
                ("DATA.NUM_FRAMES", 32),
                ("DATA_LOADER.NUM_WORKERS", 16),
                ("DATA_LOADER.PIN_MEMORY", True),
                ("NUM_GPUS", 8),
                ("SOLVER.BASE_LR", 0.1),
                ("TRAIN.BATCH_SIZE", 128),
            )
        ],
    )
    loss = Curve(c, 6.5, 2.2, 3000)
    for it in range(10, 4100, 10):
        c.tick(7, 9)
        log.add(
            f'[{c.t("%m/%d %H:%M:%S")}][INFO] logging.py:  99: json_stats: {{"_type": "train_iter", "dt": {c.f(0.7, 0.8):.5f}, "dt_data": {c.f(0.001, 0.01):.5f}, "epoch": "1/196", "eta": "3 days, {c.n(1, 20)}:0{c.n(0, 9)}:{c.n(10, 59)}", "gpu_mem": "19.41G", "iter": "{it}/4180", "loss": {loss(it):.5f}, "lr": 0.10000}}'
        )
        if it % 900 == 0:
            log.add(
                f"Failed to meta load video idx {c.n(1000, 90000)} from /data/k700/train/{c.hex(11)}.mp4; trial {c.n(1, 9)}"
            )
    c.tick(2)
    inner = tb(c, """
        $S/torch/utils/data/_utils/worker.py:302 _worker_loop | data = fetcher.fetch(index)
        $S/torch/utils/data/_utils/collate.py:163 default_collate | storage = elem.storage()._new_shared(numel)
        $S/torch/storage.py:520 _new_shared | return cls._new_using_filename_cpu(size)
        """, "RuntimeError: unable to open shared memory object </torch_31885_2961146541_1018> in read-write mode: Too many open files (24)", "Original Traceback (most recent call last):")  # fmt: skip
    a = tb(c, "tools/run_net.py:50 <module> | main()\n/workspace/kinetics/tools/train_net.py:110 train_epoch | for cur_iter, (inputs, labels, index, time, meta) in enumerate(train_loader):\n$S/torch/_utils.py:461 reraise | raise exception",
           ["RuntimeError: Caught RuntimeError in DataLoader worker process 11.", *inner])  # fmt: skip
    b = tb(c, "/opt/conda/lib/python3.8/threading.py:932 _bootstrap_inner | self.run()\n$S/torch/utils/data/_utils/pin_memory.py:28 _pin_memory_loop | r = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)\n/opt/conda/lib/python3.8/multiprocessing/reduction.py:164 recvfds | raise RuntimeError('received %d items of ancdata' %",
           "RuntimeError: received 0 items of ancdata", "Exception in thread Thread-1:\nTraceback (most recent call last):")  # fmt: skip
    log.add(weave(c.rng, [a, b], 8), e="Too many open files")
    log.add(
        tb(
            c,
            "$S/torch/multiprocessing/spawn.py:160 join | raise ProcessRaisedException(msg, error_index, failed_process.pid)",
            "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 6 terminated with the following error:",
        )
    )
