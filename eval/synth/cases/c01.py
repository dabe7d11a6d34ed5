"""s001 to s005."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import warning
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import binds, head, hosts, sacct


@case(
    "s001", "argument-error", "dependency-failure", "fix-and-resubmit",
    source="after the public reports of a launcher of torch 2 that passes --local-rank to a script that knows --local_rank only",
    why="Every rank rejects --local-rank before it does anything; exit code 2 and the agents' summaries follow from it.",
    tags="misleading cascade slurm multi-node", also_cls="config-error software-bug", nodes="", gpus=32,
    mention=["local-rank|local_rank"], must_not="node-failure nccl-timeout connection-error",
)  # fmt: skip
def s001(c: Case) -> None:
    c.start("2023-06-19 09:41:07")
    c.site, c.root = "/opt/conda/envs/vsr/lib/python3.9/site-packages", "/home/mlindqvist/basicvsr-plus"
    log, names = c.file("slurm-88120.out"), hosts("g", 41, 4, 2)
    log.add(head(c, 88120, names, 1, "vsr_x4_reds", "gpu-long", "3-00:00:00"))
    log.add("Loading cuda/11.8", "  Loading requirement: gcc/11.2.0", "Loading ffmpeg/5.1.2")
    usage = [
        "usage: train_vsr.py [-h] --opt OPT [--launcher {none,pytorch,slurm}]",
        "                    [--auto_resume] [--debug] [--local_rank LOCAL_RANK]",
        "                    [--force_yml FORCE_YML [FORCE_YML ...]]",
        "train_vsr.py: error: unrecognized arguments: --local-rank={}",
    ]
    streams = []
    for n, name in enumerate(names):
        rows = [f"{c.site}/torch/distributed/launch.py:181: FutureWarning: The module torch.distributed.launch is deprecated",
                "and will be removed in future. Use torchrun.", "Note that --use-env is set by default in torchrun.",
                "If your script expects `--local-rank` argument to be set, please", "change it to read from `os.environ['LOCAL_RANK']` instead. See ",
                "https://pytorch.org/docs/stable/distributed.html#launch-utility for ", "further instructions", "",
                "  warnings.warn(", *tt.omp(c, "2.0")]  # fmt: skip
        c.tick(6, 9)
        each = [[u.replace("={}", f"={r}") for u in usage] for r in c.rng.sample(range(8), 8)]
        rows += weave(c.rng, each, 4)
        pids = c.pids(8, 30000)
        rows += tt.sigterm(c, "2.0", pids[6:])
        rows.append(tt.exits(c, "2.0", 2, 0, pids[0], "/opt/conda/envs/vsr/bin/python"))
        rows += tt.child_failed(
            c, "train_vsr.py", name, [(n * 8, 0, 2, pids[0])] + [(n * 8 + i, i, 2, pids[i]) for i in range(1, 6)]
        )
        streams.append(pre(f"{n}: ", rows))
    log.add(weave(c.rng, streams, 12), e="error: unrecognized arguments")
    log.add("srun: error: g42: task 1: Exited with exit code 1", "srun: launch/slurm: _step_signal: Terminating StepId=88120.0",
            "slurmstepd: error: *** STEP 88120.0 ON g41 CANCELLED AT 2023-06-19T09:41:52 ***",
            "srun: error: g41: task 0: Exited with exit code 1", "srun: error: g43: task 2: Exited with exit code 1",
            "srun: error: g44: task 3: Exited with exit code 1")  # fmt: skip


@case(
    "s002", "healthy", "none", "none",
    source="a run with fp16 overflows that the loss scaler skips, a NaN batch that is dropped and a retried save, which ends well",
    why="Skipped steps and one dropped batch are the loss scaler at work; the last save, the closing line and exit 0 show that the run completed.",
    tags="healthy slurm training", gpus=16, nodes="",
)  # fmt: skip
def s002(c: Case) -> None:
    c.start("2023-11-02 17:20:44")
    c.site = "/lustre/home/aosei/envs/t5/lib/python3.10/site-packages"
    log, names = c.file("out.txt"), hosts("nid", 1204, 2, 6)
    log.add(head(c, 3310227, names, 8, "ul2-sw-11b", "standard-g", "1-00:00:00"))
    log.add(mg.ds_start(c, names, 8, "pretrain_ul2.py", "--config configs/ul2_sw.yaml --deepspeed"))
    log.add(
        mg.ds_config(
            c, 1, 8, 4, 16, fp16_enabled="auto", bfloat16_enabled="False", initial_dynamic_scale="65536", loss_scale="0"
        )
    )
    loss, scale, skipped = Curve(c, 9.4, 2.3, 300), 65536, 0
    for step in range(10, 6010, 10):
        c.tick(c.jitter(31, 0.02))
        if c.rng.random() < 0.11 and scale > 512:
            skipped += 1
            log.add(
                mg.ds(
                    c,
                    f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}",
                    "loss_scaler.py:183:update_scale",
                )
            )
            scale //= 2
        elif c.rng.random() < 0.1 and scale < 65536:
            scale *= 2
        log.add(
            mg.ds(c, f"[Rank 0] step={step}, skipped={skipped}, lr=[{c.jitter(1e-4, 0.01):.12f}], mom=[(0.9, 0.98)]")
        )
        log.add(f"  step {step}/6000 | loss {loss(step):.4f} | scale {scale} | samples/s {c.jitter(16.4):.2f}")
        if step == 2340:
            log.add("WARNING: loss is NaN on rank 11 at micro-step 18722 (batch ids 0x3f21c..0x3f21f), dropping the batch",
                    "WARNING: 1 of 32768 samples dropped so far because of a NaN loss (limit 100)")  # fmt: skip
        if step % 1000 == 0:
            tag = f"/flash/proj_4621/ul2/ckpt/global_step{step}"
            if step == 4000:
                log.add(
                    f"checkpoint: OSError(5, 'Input/output error') while writing {tag}/zero_pp_rank_5_mp_rank_00_optim_states.pt, retry 1 of 5 in 20 s"
                )
                c.tick(20)
                log.add(f"checkpoint: retry 1 of 5 for {tag}/zero_pp_rank_5_mp_rank_00_optim_states.pt succeeded")
            log.add(
                mg.ds(c, f"Saving model checkpoint: {tag}/mp_rank_00_model_states.pt"),
                mg.ds(c, f"Checkpoint global_step{step} is ready now!", "torch_checkpoint_engine.py:33:commit"),
            )
    log.add("Training finished: 6000 steps, best validation loss 2.3391, 47 skipped steps", "saving final weights to /flash/proj_4621/ul2/final",
            mg.ds(c, "Process 74011 exits successfully.", "launch.py:347:main"), mg.ds(c, "Process 74018 exits successfully.", "launch.py:347:main"),
            f"END {c.t('%a %b %d %H:%M:%S UTC %Y')} rc=0")  # fmt: skip


@case(
    "s003", "ecc-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of a cluster where jobs died on one node with uncorrectable ECC errors, here with the collective noise of 32 ranks",
    why="Rank 19 on dgx-h07 is the only one with an ECC error and the first to die; the other ranks only lost their peer.",
    tags="misleading cascade hardware multi-node", nodes="dgx-h07", ranks="19", gpus=32, also="cuda-error", mention=["ecc"],
    must_not="nccl-timeout nccl-remote-error connection-error network-error",
)  # fmt: skip
def s003(c: Case) -> None:
    c.start("2024-04-11 22:03:51")
    c.site, c.root = "/usr/local/lib/python3.10/dist-packages", "/workspace/protmlm"
    names = hosts("dgx-h", 5, 4, 2)
    log = c.file("stdout.log")
    log.add(
        head(c, 20117, names, 8, "protmlm-3b", "dgx", "2-00:00:00"),
        nccl.init(c, names, 8, "2.20.5", "12.4", channels=2, rings=False, ifname="bond0"),
    )
    loss = Curve(c, 2.95, 2.05, 900)
    for step in range(25, 12225, 25):
        c.tick(33, 35)
        log.add(
            f"0: {c.t()} | INFO | protmlm.train | step {step:6d} | mlm_loss {loss(step):.4f} | ppl {2.71828 ** loss(step):.3f} | tok/s {int(c.jitter(1840000, 0.01))} | lr {4e-4:.2e}"
        )
        if step % 2000 == 0:
            log.add(
                f"0: {c.t()} | INFO | protmlm.ckpt | wrote step_{step} (3.1 B params, 32 shards) in {c.f(11, 19):.1f}s"
            )
    c.tick(9)
    bad = tb(c, """
        train.py:288 <module> | main(cfg)
        train.py:241 main | loss.backward()
        $S/torch/_tensor.py:522 backward | torch.autograd.backward(
        $S/torch/autograd/__init__.py:266 backward | Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
        """, ["RuntimeError: CUDA error: uncorrectable ECC error encountered",
              "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
              "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.", ""])  # fmt: skip
    log.add(pre("19: ", bad), e="uncorrectable ECC")
    log.add(
        "19: [rank19]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 19] Process group watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered",
        e=True,
    )
    c.tick(2)
    streams = []
    for r in c.rng.sample([r for r in range(32) if r != 19], 31):
        err = tt.nccl_error(1970, "remote process exited or there was a network error", "2.20.5",
                            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
                            f"NET/IB : Got completion from peer 10.40.8.22<{c.n(30000, 60000)}> with status=12 opcode=0 len=0 vendor err 129 (Recv)")  # fmt: skip
        trace = tb(c, "train.py:288 <module> | main(cfg)\ntrain.py:246 main | scaled = reduce_metrics(metrics)\nprotmlm/dist.py:77 reduce_metrics | dist.all_reduce(buf)\n"
                   "$S/torch/distributed/c10d_logger.py:75 wrapper | return func(*args, **kwargs)", err)  # fmt: skip
        streams.append(pre(f"{r}: ", trace))
    log.add(weave(c.rng, streams, 9))
    c.tick(3)
    log.add("srun: error: dgx-h07: task 19: Aborted (core dumped)", "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
            f"slurmstepd: error: *** STEP 20117.0 ON dgx-h05 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***",
            "srun: error: dgx-h06: tasks 8-15: Exited with exit code 1", "srun: error: dgx-h05: tasks 0-7: Exited with exit code 1",
            "srun: error: dgx-h08: tasks 24-31: Exited with exit code 1", "srun: error: dgx-h07: tasks 16-18,20-23: Exited with exit code 1")  # fmt: skip


@case(
    "s004", "storage-error", "network-failure", "restart",
    source="after the report of a training that streams from an object store and whose loader worker times out on a long-lived connection",
    why="A loader worker of rank 5 gave up on an S3 read after retries; the pipe and semaphore lines are its parent's clean-up.",
    tags="storage training", also="dataset-loading-error connection-error", also_cls="dependency-failure", nodes="", ranks="5", gpus=8, mention=["s3|fsspec|object store|FSTimeoutError"],
)  # fmt: skip
def s004(c: Case) -> None:
    c.start("2024-02-20 06:12:19")
    c.site, c.root = "/home/ec2-user/sci/.venv/lib/python3.11/site-packages", "/home/ec2-user/sci"
    log = c.file("train_0220.log")
    log.add(f"[{c.t()}] launching 8 workers on ip-172-31-44-9 (p4d.24xlarge)", tt.omp(c, "2.1"))
    log.add(warning(c, 2, "torch/_utils.py"))
    loss = Curve(c, 7.1, 3.4, 120)
    for step in range(1, 402):
        c.tick(2.1, 2.6)
        log.add(
            f"{c.t()} | rank0 | citation-rank | it={step} loss={loss(step):.4f} data={c.f(0.01, 0.2):.3f}s step={c.f(1.9, 2.2):.3f}s"
        )
        if step in (77, 198, 199, 340):
            w = c.n(0, 7)
            log.add(f"{c.t()} | rank{w} | WARNING | s3fs: read of s3://papers-embed-usw2/v3/shard-{c.n(100, 900):05d}.parquet failed (IncompleteRead), retrying in 1.7s",
                    f"{c.t()} | rank{w} | INFO | s3fs: read ok after 1 retry")  # fmt: skip
    c.tick(300)
    inner = tb(c, """
        $S/torch/utils/data/_utils/worker.py:308 _worker_loop | data = fetcher.fetch(index)  # type: ignore[possibly-undefined]
        $S/torch/utils/data/_utils/fetch.py:32 fetch | data.append(next(self.dataset_iter))
        scirank/data/parquet.py:118 __iter__ | table = pq.read_table(f, columns=self.columns)
        $S/fsspec/spec.py:1840 read | out = self.cache._fetch(self.loc, self.loc + length)
        $S/fsspec/asyn.py:118 wrapper | return sync(self.loop, func, *args, **kwargs)
        $S/fsspec/asyn.py:101 sync | raise FSTimeoutError from return_result
        """, "fsspec.exceptions.FSTimeoutError", "Original Traceback (most recent call last):")  # fmt: skip
    outer = tb(c, """
        scirank/train.py:402 <module> | main()
        scirank/train.py:355 main | for batch in loader:
        $S/torch/utils/data/dataloader.py:630 __next__ | data = self._next_data()
        $S/torch/utils/data/dataloader.py:1345 _next_data | return self._process_data(data)
        $S/torch/_utils.py:694 reraise | raise exception
        """, ["fsspec.exceptions.FSTimeoutError: Caught FSTimeoutError in DataLoader worker process 1.", *inner])  # fmt: skip
    log.add(outer, e="FSTimeoutError")
    c.tick(2)
    pids = c.pids(8, 11000)
    log.add(tt.sigterm(c, "2.1", [p for i, p in enumerate(pids) if i != 5]))
    log.add(f"{c.site.rsplit('/lib', 1)[0]}/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 48 leaked semaphore objects to clean up at shutdown",
            "  warnings.warn('resource_tracker: There appear to be %d '", "Exception ignored in: <function _ConnectionBase.__del__ at 0x7f31c0b3a520>", "BrokenPipeError: [Errno 32] Broken pipe")  # fmt: skip
    log.add(
        tt.exits(c, "2.1", 1, 5, pids[5], "/home/ec2-user/sci/.venv/bin/python"),
        tt.child_failed(c, "scirank/train.py", "ip-172-31-44-9", [(5, 5, 1, pids[5])]),
    )


@case(
    "s005", "model-loading-error", "config-error", "fix-and-resubmit",
    source="after the report of a restarted job that finds no checkpoint metadata and would begin from random weights; here the guard for that is on",
    why="Megatron finds no tracker file in the load folder (the earlier run kept its checkpoints in memory), and the guard against a fresh start ends the run with code 0.",
    tags="misleading slurm training", also="file-not-found checkpoint-corrupt", nodes="", gpus=64, also_cls="operator-action",
    mention=["checkpoint", "metadata|latest_checkpointed_iteration|tracker"],
    scheduler={"JobID": "771204", "State": "COMPLETED", "ExitCode": "0:0"}, must_not="hang nccl-timeout",
)  # fmt: skip
def s005(c: Case) -> None:
    c.start("2024-07-03 03:15:40")
    log, names = c.file("771204.log"), hosts("pt", 112, 8)
    log.add(head(c, 771204, names, 8, "ct34b-resume3", "pretrain", "7-00:00:00"), binds(c, names[:2], 8))
    log.add(
        "[dlrover] agent 0: rendezvous done, restart_count=1, previous exit reason: process_error",
        "[dlrover] agent 0: flash checkpoint saver: shared memory of the previous process is not attached, nothing to restore",
    )
    log.add(nccl.init(c, names[:3], 8, "2.19.3", "12.3", channels=2))
    log.add(mg.arguments({"load": "/gpfs/ct34b/ckpt", "save": "/gpfs/ct34b/ckpt", "exit_on_missing_checkpoint": "True", "world_size": "64", "tensor_model_parallel_size": "4",
                          "pipeline_model_parallel_size": "2", "num_layers": "60", "hidden_size": "7168", "ckpt_memory_interval": "50", "save_interval": "None"}))  # fmt: skip
    start = mg.startup(c, tp=4, pp=2, params=4293918720, micro=64, vocab=64000, data="/gpfs/ct34b/data/zh_en_code")
    at = next(i for i, row in enumerate(start) if row.startswith("> learning rate"))
    log.add(start[: at + 1])
    c.tick(3)
    log.add("WARNING: could not find the metadata file /gpfs/ct34b/ckpt/latest_checkpointed_iteration.txt ", "    will not load any checkpoints and will start from random",
            ">> '--exit-on-missing-checkpoint' set ... exiting. <<", e=True)  # fmt: skip
    c.tick(4)
    streams = [[f"{names[n]}:{c.n(20000, 60000)}:{c.n(60001, 62000)} [{g}] NCCL INFO [Service thread] Connection closed by localRank {g}",
                f"{names[n]}:{c.n(20000, 60000)}:{c.n(60001, 62000)} [{g}] NCCL INFO comm 0x55{c.hex(10)} rank {n * 8 + g} nranks 64 cudaDev {g} busId {nccl.BUS[g]} - Abort COMPLETE"]
               for n in range(8) for g in range(8)]  # fmt: skip
    log.add(weave(c.rng, streams))
    log.add(
        f"[W{c.t('%m%d %H:%M:%S')}.118203442 ProcessGroupNCCL.cpp:1168] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL."
    )
    log.add(
        sacct(
            "JobID|JobName|State|ExitCode|Elapsed",
            ["771204|ct34b-res+|COMPLETED|0:0|00:03:11", "771204.0|torchrun|COMPLETED|0:0|00:02:58"],
        )
    )
