"""s089 to s092."""

from __future__ import annotations

from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import bar, hf_head
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s089", "key-error", "data-error", "fix-and-resubmit",
    source="after the report where the launcher's SIGTERM warnings were taken for the fault while one rank's KeyError came first",
    why="Rank 3's batch has no attention_mask (the KeyError comes before all SIGTERM lines); the warnings of the launcher and the exits of the other seven ranks follow it.",
    tags="misleading cascade training", also_cls="software-bug config-error", nodes="", ranks="3", gpus=8, mention=["attention_mask"], must_not="cancelled preempted nccl-remote-error",
)  # fmt: skip
def s089(c: Case) -> None:
    c.start("2023-04-03 15:21:10")
    c.site, c.root = (
        "/home/gpt/.conda/envs/coati/lib/python3.9/site-packages",
        "/home/gpt/ColossalAI/applications/Chat/examples",
    )
    log = c.file("train_rm.out")
    log.add(
        tt.omp(c, "1.13"),
        *[
            f"[{c.t('%m/%d/%y %H:%M:%S')}] INFO     colossalai - colossalai - INFO: {c.site}/colossalai/context/parallel_context.py:{n} set_device"
            for n in (521, 521)
        ],
        f"[{c.t('%m/%d/%y %H:%M:%S')}] INFO     colossalai - colossalai - INFO: process rank 0 is bound to device 0",
    )
    loss = Curve(c, 0.7, 0.5, 40)
    log.add(
        "\r".join(
            bar(
                i,
                2411,
                1.3,
                "Train epoch:   0%|          | 0/1 [00:00<?, ?it/s]" if i == 1 else "Train step of epoch 0: ",
            )
            for i in range(1, 60)
        ),
        *[f"step {i} loss {loss(i):.4f} dist {c.f(0.01, 0.4):.4f} acc {c.f(0.4, 0.7):.3f}" for i in range(10, 60, 10)],
    )
    log.add(tb(c, """
        train_reward_model.py:229 <module> | train(args)
        train_reward_model.py:198 train | trainer.fit()
        $S/coati/trainer/rm.py:96 fit | for chosen_ids, c_mask, reject_ids, r_mask in self.train_dataloader:
        $S/coati/dataset/reward_dataset.py:61 __getitem__ | self.chosen[idx]["attention_mask"], self.reject[idx]["input_ids"], self.reject[idx]["attention_mask"]
        """, "KeyError: 'attention_mask'", "[rank 3] Traceback (most recent call last):"), e="KeyError")  # fmt: skip
    c.tick(4)
    pids = c.pids(8, 73955)
    log.add(tt.sigterm(c, "1.13", [p for i, p in enumerate(pids) if i != 3]))
    for i in (0, 5, 6):
        log.add(
            f"[rank {i}] terminate called after throwing an instance of 'std::runtime_error'",
            f"[rank {i}]   what():  NCCL error: remote process exited or there was a network error, NCCL version 2.14.3",
        )
    log.add(
        tt.exits(c, "1.13", 1, 3, pids[3]),
        tt.child_failed(c, "train_reward_model.py", "ai-srv", [(3, 3, 1, pids[3])]),
        "Error: failed to run torchrun --nproc_per_node=8 --nnodes=1 --master_port=29500 train_reward_model.py on 127.0.0.1, is localhost: True, exception: Encountered a bad command exit code!",
        "====== Training on All Nodes =====",
        "127.0.0.1: failure",
        "====== Stopping All Nodes =====",
        "127.0.0.1: finish",
    )


@case(
    "s091", "network-error", "config-error", "fix-and-resubmit",
    source="after the report of RoCE connections that are set up over TCP and whose first transfer times out because of the default GID index",
    why="NCCL_IB_GID_INDEX=0 (the link-local RoCE v1 entry in the table that the script prints; v2 is 3) and the first transfers of all pairs time out with status 12: addressing, not a bad cable.",
    tags="network misleading multi-node slurm", also="nccl-remote-error", nodes="", gpus=24, mention=["gid"], must_not="node-failure gpu-lost nccl-timeout",
)  # fmt: skip
def s091(c: Case) -> None:
    c.start("2022-06-17 09:55:59")
    names = hosts("srv-", 14, 3, 2)
    log = c.file("xglm-ft.out")
    log.add(
        "$ show_gids mlx5_0",
        "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV",
        "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---",
        "mlx5_0\t1\t0\tfe80:0000:0000:0000:0ac0:ebff:fe3c:11a2\t\t\tv1\tens9f0",
        "mlx5_0\t1\t1\tfe80:0000:0000:0000:0ac0:ebff:fe3c:11a2\t\t\tv2\tens9f0",
        "mlx5_0\t1\t2\t0000:0000:0000:0000:0000:ffff:c0a8:2814\t192.168.40.20  \tv1\tens9f0",
        "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:2814\t192.168.40.20  \tv2\tens9f0",
        "n_gids_found=4",
    )
    info = nccl.init(
        c,
        names,
        8,
        "2.12.12",
        "11.6",
        net="RoCE",
        ifname="ens9f0",
        subnet="192.168.40",
        hcas=1,
        channels=1,
        env=("NCCL_IB_GID_INDEX=0", "NCCL_IB_HCA=mlx5_0"),
    )
    log.add(info, e="NCCL_IB_GID_INDEX set by environment to 0")
    c.tick(22)
    rows = []
    for r in (7, 15, 23, 0, 8, 16):
        rows.append(
            [
                f"{names[r // 8]}:{c.n(2000, 9000)}:{c.n(9001, 12000)} [{r % 8}] transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion from peer 192.168.40.{20 + (r // 8 + 1) % 3}<{c.n(30000, 60000)}> with error 12, opcode 0, len 0, vendor err 129",
                f"{names[r // 8]}:{c.n(2000, 9000)}:{c.n(9001, 12000)} [{r % 8}] NCCL INFO include/net.h:32 -> 6",
            ]
        )
    log.add(weave(c.rng, rows, 2), e="with error 12")
    log.add(
        weave(
            c.rng,
            [
                [
                    f"[{r}] RuntimeError: NCCL communicator was aborted on rank {r}.  Original reason for failure was: NCCL error: unhandled system error, NCCL version 2.12.12",
                    f"[{r}] ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. It can be also caused by unexpected exit of a remote peer, you can check NCCL warnings for failure reason and see if there is connection closure by a peer.",
                ]
                for r in range(24)
            ],
            2,
        )
    )


@case(
    "s092", "unknown", "unknown", "restart fix-and-resubmit escalate",
    source="after the report of a streaming data set training that stalls and of which only aborted communicators are seen",
    why="Each rank says only that its communicator was aborted, at the same second, with no watchdog line, no WARN and no exit of a rank before it: who aborted it and why is not shown.",
    tags="unknown misleading multi-node", status="unknown hypothesis", also="nccl-timeout nccl-remote-error", also_outcome="unknown", nodes="", gpus=32, must_not="network-error gpu-lost cancelled host-out-of-memory",
)  # fmt: skip
def s092(c: Case) -> None:
    c.start("2023-07-07 01:01:36")
    c.site, c.root = "/usr/lib/python3/dist-packages", "/llm-foundry/scripts"
    log = c.file("composer-logs.txt")
    log.add(
        "Building train loader... (StreamingTextDataset, 32 ranks, cache /tmp/mds)",
        hf_head(10**7, 1, 8, 32, 1, 2651553280),
    )
    loss = Curve(c, 11.0, 3.0, 200)
    for b in range(1, 320):
        c.tick(4, 5)
        log.add(
            f"[batch={b}/24800]:",
            f"\t Train time/batch: {b - 1}",
            f"\t Train loss/train/total: {loss(b):.4f}",
            f"\t Train throughput/batches_per_sec: {c.jitter(0.22):.4f}",
        )
    c.tick(900)
    log.add(
        weave(
            c.rng,
            [
                pre(
                    f"[rank {r}] ",
                    tb(
                        c,
                        "train/train.py:271 <module> | main(cfg)\n$S/composer/trainer/trainer.py:2231 _train_loop | total_num_samples, total_num_tokens, batch_time = self._accumulate_time_across_ranks(\n$S/torch/distributed/distributed_c10d.py:1704 all_reduce | work.wait()",
                        f"RuntimeError: NCCL communicator was aborted on rank {r}.",
                    ),
                )
                for r in range(32)
            ],
            6,
        ),
        e="NCCL communicator was aborted",
    )
    log.add(
        "ERROR:composer.cli.launcher:Rank 0 crashed with exit code 1.",
        "Waiting up to 30 seconds for all training processes to terminate. Press Ctrl-C to exit immediately.",
        "Global rank 0 (PID 2091) exited with code 1",
        *[f"Global rank {r} (PID {2091 + r}) exited with code 1" for r in range(1, 8)],
        "ERROR:composer.cli.launcher:Global rank 0 (PID 2091) exited with code 1",
    )
