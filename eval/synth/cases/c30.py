"""s090, s102 and s105."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import bar, titan_steps, warning
from synth.kit import Case, Curve, case, pre, tb, weave


@case(
    "s090", "dataset-loading-error", "software-bug", "restart fix-and-resubmit",
    source="after the report of ranks that die while they add a column to a shared data set because all of them use one cache path",
    why="Ranks 5 and 11 fail to chmod the cache's arrow file that another rank has just moved: all 16 map into the same cache file on the shared mount (same fingerprint in each rank's log). It is a race; the file is there afterwards.",
    tags="training multi-node cascade misleading", also="file-not-found", also_cls="config-error", nodes="", ranks="5 11", gpus=16, mention=["cache|race|main process|main_process|shared"], must_not="nccl-timeout permission-error node-failure",
)  # fmt: skip
def s090(c: Case) -> None:
    c.start("2026-05-12 09:22:41")
    c.site, c.root = "/opt/conda/lib/python3.11/site-packages", "/mnt/shared/grpo"
    now = c.now
    for r in range(16):
        c.now = now
        f = c.file(f"log/worker_{r // 8}_{r % 8}.log")
        f.add(
            f"[{c.t()}] [INFO:swift] rank: {r}, local_rank: {r % 8}, world_size: 16",
            f"[{c.t()}] [INFO:swift] add_column(prompt_id): writing /mnt/shared/.cache/datasets/dapo/cache-5f3d0c1be2a9471d.arrow",
        )
        f.add(
            "\r".join(
                f"Map: {p:3d}%|{'█' * (p // 10):<10}| {p * 174}/17400 [00:0{p // 20}<00:0{5 - p // 20}, 3481.20 examples/s]"
                for p in range(0, 101, 10)
            )
        )
        c.tick(8)
        if r in (5, 11):
            f.add(tb(c, """
                swift/rlhf/grpo.py:71 <module> | main()
                swift/rlhf/grpo.py:40 main | dataset = dataset.add_column('prompt_id', ids)
                $S/datasets/arrow_dataset.py:3309 map | for rank, done, content in Dataset._map_single(**dataset_kwargs):
                $S/datasets/arrow_dataset.py:3712 _map_single | os.chmod(cache_file_name, 0o666 & ~umask)
                """, "FileNotFoundError: [Errno 2] No such file or directory: '/mnt/shared/.cache/datasets/dapo/cache-5f3d0c1be2a9471d.arrow'"), e="FileNotFoundError")  # fmt: skip
        else:
            f.add(
                f"[{c.t()}] [INFO:swift] add_column done, 17400 rows",
                f"[{c.t()}] [INFO:swift] model prepared, waiting for all ranks",
            )
            c.tick(25)
            f.add(
                f"[rank{r}]: torch.distributed.DistNetworkError: Connection reset by peer"
                if r % 3
                else f"[{c.t()}] received SIGTERM from the agent"
            )


@case(
    "s102", "index-error", "data-error", "fix-and-resubmit",
    source="a fine-tuning in which one rank's sampler asks for a row that the data set does not have, while the launcher's summary of another node is louder",
    why="Rank 9 asks for sample 81920 of a data set of 81920 rows (its index file says 81921): IndexError there first; the aborted collectives and the summary of node 0 come eight seconds later.",
    tags="training multi-node cascade misleading", also="dataset-loading-error", also_cls="software-bug config-error", nodes="", ranks="9", gpus=16, mention=["index|81920|range"], must_not="nccl-remote-error connection-error nccl-timeout",
)  # fmt: skip
def s102(c: Case) -> None:
    c.start("2024-12-05 16:00:00")
    c.site, c.root = "/venvs/tts/lib/python3.10/site-packages", "/projects/tts"
    a, b = c.file("node0.log"), c.file("node1.log")
    loss = Curve(c, 9.9, 4.1, 120)
    a.add(
        tt.omp(c, "2.4"),
        "rank 0: fish-speech dual-ar, 16 ranks, data/train.idx lists 81921 rows",
        warning(c, 0, "torch/serialization.py"),
    )
    b.add(tt.omp(c, "2.4"), "rank 8: data/train.arrow memory-mapped, 81920 rows")
    for s in range(1, 412):
        c.tick(1.9, 2.1)
        a.add(
            f"rank 0: {c.t('%H:%M:%S')} it {s}/5120 loss {loss(s):.4f} base {loss(s) * 0.6:.4f} semantic {loss(s) * 0.4:.4f}"
        )
        if s % 40 == 0:
            b.add(f"rank 8: {c.t('%H:%M:%S')} it {s} grad norm {c.jitter(0.9, 0.2):.3f}")
    b.add(pre("[rank9]: ", tb(c, """
        train.py:160 <module> | main()
        train.py:128 main | for step, batch in enumerate(loader, start):
        $S/torch/utils/data/_utils/fetch.py:52 fetch | data = [self.dataset[idx] for idx in possibly_batched_index]
        tts/data.py:77 __getitem__ | row = self.table[int(self.order[i])]
        $S/datasets/formatting/formatting.py:557 _check_valid_index_key | raise IndexError(f"Invalid key: {key} is out of bounds for size {size}")
        """, "IndexError: Invalid key: 81920 is out of bounds for size 81920")), e="IndexError: Invalid key")  # fmt: skip
    c.tick(8)
    pids = c.pids(8, 2600)
    b.add(
        tt.sigterm(c, "2.4", [p for i, p in enumerate(pids) if i != 1]),
        tt.exits(c, "2.4", 1, 1, pids[1]),
        tt.child_failed(c, "train.py", "tts-node-1", [(9, 1, 1, pids[1])]),
    )
    rows = [
        pre(
            f"[rank{r}]: ",
            [
                "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2027, remote process exited or there was a network error, NCCL version 2.20.5",
                "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            ],
        )
        for r in range(8)
    ]
    a.add(weave(c.rng, rows, 2))
    c.tick(2)
    a.add(
        tt.sigterm(c, "2.4", c.pids(7, 1400)),
        tt.child_failed(c, "train.py", "tts-node-0", [(r, r, 1, 1400 + r) for r in range(8)]),
    )


@case(
    "s105", "runtime-error", "software-bug", "fix-and-resubmit",
    source="a fine-tuning with layers that take no part in some steps, which the data-parallel wrapper refuses at the second step",
    why="All ranks stop in the second step because parameters 211 and 212 got no gradient in the first: the adapter is skipped for batches without audio, so find_unused_parameters (or a dummy pass) is needed. Deterministic, no node at fault.",
    tags="training cascade", also="collective-mismatch", also_cls="config-error", nodes="", gpus=8, mention=["unused|find_unused_parameters|gradient|parameters"], must_not="nccl-remote-error node-failure out-of-memory",
)  # fmt: skip
def s105(c: Case) -> None:
    c.start("2024-07-25 02:40:40")
    c.site, c.root = "/usr/local/lib/python3.10/site-packages", "/src/omni-adapter"
    log = c.file("ddp.log")
    log.add(
        tt.omp(c, "2.3"),
        titan_steps(c, 1, 1, sec=4.0, loss=Curve(c, 3.0, 2.0, 10))[0].replace("[titan]", "[omni]"),
        "\r".join(bar(i, 400, 2.2, "warm cache: ") for i in range(1, 401, 20)),
    )
    text = ("RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
            "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in calculating loss. \nIf you already have done the above, then the distributed data parallel module wasn't able to locate the output tensors in the return value of your module's `forward` function. "
            "Please include the loss function and the structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable).\nParameter indices which did not receive grad for rank {}: 211 212\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information about which particular parameters did not receive gradient on this rank as part of this error")  # fmt: skip
    rows = [pre(f"[rank{r}]: ", tb(c, """
        train.py:95 <module> | main()
        train.py:61 main | out = model(**batch)
        $S/torch/nn/parallel/distributed.py:1589 forward | inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        $S/torch/nn/parallel/distributed.py:1480 _pre_forward | if torch.is_grad_enabled() and self.reducer._rebuild_buckets():
        """, text.format(r))) for r in c.rng.sample(range(8), 8)]  # fmt: skip
    log.add(weave(c.rng, rows, 8), e="Expected to have finished reduction")
    pids = c.pids(8, 90)
    log.add(
        tt.sigterm(c, "2.3", pids[4:]),
        tt.exits(c, "2.3", 1, 0, pids[0]),
        tt.child_failed(c, "train.py", "omni-0", [(r, r, 1, pids[r]) for r in range(4)]),
    )
