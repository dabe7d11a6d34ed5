"""s006 to s010."""

from __future__ import annotations

from synth import torch_text as tt
from synth.frameworks import pl_head, pl_steps, titan_head, titan_steps, warning
from synth.kit import Case, Curve, case, fault, pre, tb, weave
from synth.slurm_text import binds, head, hosts, sacct


@case(
    "s006", "checkpoint-corrupt", "resource-exhaustion", "restart fix-and-resubmit",
    source="after the report of a resume that cannot read its last checkpoint because the disk had filled while it was written",
    why="The last run cannot read last.ckpt; the run before died of ENOSPC while it wrote exactly that file, so it is truncated. An earlier checkpoint is there.",
    tags="misleading multi-run training", also="disk-full model-loading-error", nodes="", gpus=4, mention=["truncat|incomplete|corrupt|earlier checkpoint|previous checkpoint"],
    must_not="connection-error",
)  # fmt: skip
def s006(c: Case) -> None:
    c.start("2023-08-28 08:00:13")
    c.site, c.root = "/opt/miniconda3/envs/ocr/lib/python3.10/site-packages", "/home/dwei/captcha_crnn"
    log = c.file("nohup.out")
    rows = [("net", "CRNN", "8.3 M"), ("ctc", "CTCLoss", "0"), ("acc", "WordAccuracy", "0")]
    log.add(
        f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | INFO     | __main__:main:31 - Search for history checkpoints...",
        f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | INFO     | __main__:main:40 - no history, training from scratch",
    )
    log.add(pl_head(c, 4, 4, rows, "8.3 M"))
    loss = Curve(c, 6.2, 0.08, 260)
    for epoch in range(9):
        log.add(pl_steps(c, epoch, 2400, sec=0.21, loss=loss, every=60))
        log.add(f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | INFO     | callbacks:on_train_epoch_end:77 - [epoch {epoch}] val_acc={1 - loss(epoch * 2400) / 9:.4f}",
                f"Epoch {epoch}, global step {epoch * 2400 + 2400}: 'val_acc' reached {1 - loss(epoch * 2400) / 9:.5f}, saving model to '/data1/captcha/ckpt/epoch={epoch}.ckpt' as top 3")  # fmt: skip
    log.add(pl_steps(c, 9, 2400, sec=0.21, loss=loss, every=60, last=1860))
    log.add(tb(c, """
        train.py:96 <module> | main()
        train.py:88 main | trainer.fit(module, dm, ckpt_path=resume)
        $S/pytorch_lightning/trainer/connectors/checkpoint_connector.py:512 save_checkpoint | self.trainer.strategy.save_checkpoint(_checkpoint, filepath)
        $S/lightning_fabric/plugins/io/torch_io.py:58 save_checkpoint | _atomic_save(checkpoint, path)
        $S/lightning_fabric/utilities/cloud_io.py:68 _atomic_save | f.write(bytesbuffer.getvalue())
        $S/fsspec/implementations/local.py:388 write | return self.f.write(*args, **kwargs)
        """, "OSError: [Errno 28] No space left on device: '/data1/captcha/ckpt/last.ckpt'"))  # fmt: skip
    c.tick(3)
    log.add(f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | ERROR    | __main__:main:90 - stopped at epoch 9")
    c.tick(41000)
    log.add(f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | INFO     | __main__:main:31 - Search for history checkpoints...",
            f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | INFO     | __main__:main:36 - found /data1/captcha/ckpt/last.ckpt (12582912 bytes), epoch=8.ckpt (99874210 bytes), epoch=7.ckpt (99874210 bytes)",
            f"{c.t('%Y-%m-%d %H:%M:%S.%f3')} | INFO     | __main__:main:38 - resume from /data1/captcha/ckpt/last.ckpt", pl_head(c, 4, 4, rows, "8.3 M"))  # fmt: skip
    c.tick(8)
    log.add(warning(c, 1, "huggingface_hub/file_download.py"))
    bad = tb(c, """
        train.py:96 <module> | main()
        train.py:88 main | trainer.fit(module, dm, ckpt_path=resume)
        $S/pytorch_lightning/trainer/trainer.py:532 fit | call._call_and_handle_interrupt(
        $S/pytorch_lightning/trainer/connectors/checkpoint_connector.py:83 resume_start | loaded_checkpoint = self.trainer.strategy.load_checkpoint(checkpoint_path)
        $S/lightning_fabric/plugins/io/torch_io.py:82 load_checkpoint | return pl_load(path, map_location=map_location)
        $S/torch/serialization.py:797 load | with _open_zipfile_reader(opened_file) as opened_zipfile:
        $S/torch/serialization.py:283 __init__ | super().__init__(torch._C.PyTorchFileReader(name_or_buffer))
        """, "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory")  # fmt: skip
    log.add(
        weave(
            c.rng,
            [
                bad,
                pre(
                    "[rank: 1] ",
                    "Child process with PID 22871 terminated with code 1. Forcefully terminating all other processes to avoid zombies 🧟",
                ),
            ],
            20,
        ),
        e="failed finding central",
    )


@case(
    "s007", "hang", "software-bug", "kill-and-restart fix-and-resubmit",
    source="after the report of an import that waits for ever on a build lock in a shared extension cache; the stacks come from faulthandler",
    why="All eight ranks sleep in FileBaton.wait: the lock file of an extension build in the shared cache was left by an earlier process, nobody builds.",
    tags="hang training multi-file misleading", outcome="hung", also="launch-failure", also_cls="config-error dependency-failure", also_outcome="failed", nodes="", gpus=8,
    mention=["lock|baton|torch_extensions"], must_not="nccl-timeout network-error storage-error",
)  # fmt: skip
def s007(c: Case) -> None:
    c.start("2025-01-14 10:02:33")
    c.site, c.root = "/home/rpatel/eqv/.venv/lib/python3.11/site-packages", "/home/rpatel/eqv"
    job = c.file("job/stdout.txt")
    job.add(
        "+ export TORCH_EXTENSIONS_DIR=/shared/cache/torch_extensions",
        "+ export PYTHONFAULTHANDLER=1",
        "+ torchrun --standalone --nproc_per_node=8 run_eqv.py conf/spice.yaml",
    )
    job.add(tt.omp(c, "2.5"))
    c.tick(9)
    job.add(
        weave(
            c.rng,
            [
                [
                    f"[rank{r}] {c.t()} torch 2.5.1+cu124, e3nn 0.5.4, device cuda:{r}",
                    f"[rank{r}] {c.t()} dataset spice-2.0.1: 1132808 structures",
                ]
                for r in range(8)
            ],
        )
    )
    for r in range(8):
        rank = c.file(f"job/rank{r}.err")
        rank.add(
            warning(c, 0, "e3nn/o3/_wigner.py"),
            "Using /shared/cache/torch_extensions/py311_cu124 as PyTorch extensions root...",
        )
        for k in range(c.n(5, 7)):
            stack = fault(
                c,
                """
                $S/torch/utils/file_baton.py:50 wait
                $S/torch/utils/cpp_extension.py:2156 _jit_compile
                $S/torch/utils/cpp_extension.py:1681 load
                $S/openequivariance/extlib/__init__.py:93 <module>
                <frozen importlib._bootstrap>:241 _call_with_frames_removed
                run_eqv.py:11 <module>""",
            )
            rank.add("Timeout (0:20:00)!", stack, e="file_baton" if k == 0 else False)
            rank.add("")
    c.tick(8200)
    seen = c.file("job/node.txt")
    seen.add(f"$ date; ls -la --time-style=full-iso /shared/cache/torch_extensions/py311_cu124/oeq_extlib", c.t("%a %b %d %H:%M:%S UTC %Y"), "total 96",  # noqa: F541
             "drwxrwsr-x 2 jfox  chem  4096 2025-01-09 16:12:08.000000000 +0000 .", "drwxrwsr-x 9 jfox  chem  4096 2025-01-13 09:40:51.000000000 +0000 ..",
             "-rw-rw-r-- 1 jfox  chem  2215 2025-01-09 16:12:07.000000000 +0000 build.ninja")  # fmt: skip
    seen.add("-rw-rw-r-- 1 jfox  chem     0 2025-01-09 16:12:08.000000000 +0000 lock", e=True)
    seen.add(
        "$ ps -eo pid,stat,etime,args | grep -c '[n]inja'",
        "0",
        "$ nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader",
        *[f"{g}, 0 %, 522 MiB" for g in range(8)],
    )


@case(
    "s008", "connection-error", "config-error", "fix-and-resubmit",
    source="after the report of ranks that dial a nonsense address because the machine's name is all digits",
    why="The rendezvous host is 20441876, a name of digits only, which resolves as the integer form of 1.55.235.20: the address is wrong, not the network.",
    tags="misleading training", nodes="", gpus=8, mention=["20441876|host name|hostname|numeric|address"], also="network-error launch-failure", must_not="node-failure",
)  # fmt: skip
def s008(c: Case) -> None:
    c.start("2024-08-30 15:44:09")
    c.site, c.root = "/root/miniconda3/envs/sora/lib/python3.9/site-packages", "/root/opensora-ft"
    log = c.file("launch.log")
    log.add(
        "root@20441876:~/opensora-ft# torchrun --standalone --nproc_per_node 8 scripts/train.py configs/stage2_lora.py --data-path meta/clips_v3.csv",
        tt.omp(c, "2.3"),
    )
    log.add(*[f"[{c.t()}] Experiment directory created at outputs/017-STDiT3-XL-2"], "Training configuration:",
            " {'adam_eps': 1e-15,", "  'bucket_config': {'240p': {1: (0.3, 16), 51: (0.4, 2)}, '360p': {51: (0.3, 1)}},", "  'dtype': 'bf16',", "  'ema_decay': 0.99,", "  'epochs': 1000,", "  'grad_checkpoint': True,",
            "  'lr': 0.0001,", "  'num_bucket_build_workers': 16,", "  'num_workers': 8,", "  'plugin': 'zero2',", "  'warmup_steps': 1000}")  # fmt: skip
    for k in range(38):
        c.tick(20, 130)
        tail = "[::ffff:1.55.235.20]" if k % 2 == 0 else "1.55.235.20"
        log.add(
            f"[W socket.cpp:697] [c10d] The client socket has failed to connect to {tail}:29400 (errno: 110 - Connection timed out).",
            e=k < 2,
        )
        if k % 9 == 8:
            log.add(
                "[E socket.cpp:753] [c10d] The client socket has failed to connect to any network address of (20441876, 29400).",
                e=True,
            )
    log.add(tb(c, """
        /root/miniconda3/envs/sora/bin/torchrun:8 <module> | sys.exit(main())
        $S/torch/distributed/run.py:879 main | run(args)
        $S/torch/distributed/launcher/api.py:263 launch_agent | result = agent.run()
        $S/torch/distributed/elastic/agent/server/api.py:723 run | result = self._invoke_run(role)
        $S/torch/distributed/elastic/agent/server/api.py:546 _rendezvous | rdzv_info = spec.rdzv_handler.next_rendezvous()
        $S/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:1048 next_rendezvous | self._op_executor.run(join_op, deadline)
        """, "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"))  # fmt: skip


@case(
    "s009", "time-limit", "operator-action", "restart",
    source="a training that was doing well until the scheduler's time limit, with the noise of 64 ranks that are told to stop",
    why="Slurm ended the step at its limit of 24 hours while iterations went on; tracebacks and exit codes after it are the ranks that received SIGTERM.",
    tags="misleading scheduler slurm interrupted multi-node", nodes="", gpus=64, must_not="nccl-timeout node-failure connection-error cancelled",
    scheduler={"JobID": "5519023", "State": "TIMEOUT", "ExitCode": "0:0", "Timelimit": "1-00:00:00"},
)  # fmt: skip
def s009(c: Case) -> None:
    c.start("2025-03-04 11:00:02")
    names = hosts("lrdn", 2210, 16, 4)
    log = c.file("slurm-5519023.out")
    log.add(
        "Currently Loaded Modulefiles:",
        " 1) profile/deeplrn   2) cuda/12.3   3) python/3.11.6   4) openmpi/4.1.6--gcc--12.2.0",
        f"nodes: {' '.join(names)}",
        binds(c, names[:4], 4),
    )
    log.add(
        titan_head(c, "train_configs/llama3_it_8b.toml", "1-D device mesh with ['dp_shard'], [64]", "8,030,261,248")
    )
    loss = Curve(c, 12.2, 2.05, 500, 0.006)
    at = 1
    for k in range(8):
        log.add(titan_steps(c, at, at + 849, sec=12.55, loss=loss, every=10))
        at += 850
        log.add(f"[rank0]:[titan] {c.t('%Y-%m-%d %H:%M:%S,%f3')} - root - INFO - Saving the checkpoint (or staging if async is enabled).",
                f"[rank0]:[titan] {c.t('%Y-%m-%d %H:%M:%S,%f3')} - root - INFO - Finished saving the checkpoint (or staging if async is enabled) in {c.f(6, 19):.2f} seconds.")  # fmt: skip
        if k == 3:
            log.add(
                "[rank0]:wandb: Network error (ReadTimeout), entering retry loop.",
                "[rank0]:wandb: Network error resolved after 0:01:12.447102, resuming normal operation.",
            )
    while c.t("%Y-%m-%d %H:%M:%S") < "2025-03-05 10:59:40":
        log.add(titan_steps(c, at, at, sec=1.255, loss=loss))
        at += 10
        c.tick(112.9)
    c.start("2025-03-05 11:00:24")
    log.add(
        "slurmstepd: error: *** STEP 5519023.0 ON lrdn2210 CANCELLED AT 2025-03-05T11:00:24 DUE TO TIME LIMIT ***",
        "slurmstepd: error: *** JOB 5519023 ON lrdn2210 CANCELLED AT 2025-03-05T11:00:24 DUE TO TIME LIMIT ***",
        e=True,
    )
    log.add("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
    c.site = "/leonardo/home/userexternal/gcosta00/titan/lib/python3.11/site-packages"
    streams = []
    for _ in names:
        pid = c.n(100000, 900000)
        rows = [
            tt.agent(c, "2.6", "WARNING", 704, "Received 15 death signal, shutting down workers", "agent/server/api"),
            *tt.sigterm(c, "2.6", c.pids(4, 100000, 900000)),
        ]
        rows += tb(c, """
            $S/torch/distributed/run.py:892 main | run(args)
            $S/torch/distributed/launcher/api.py:260 launch_agent | result = agent.run()
            $S/torch/distributed/elastic/metrics/api.py:137 wrapper | result = f(*args, **kwargs)
            $S/torch/distributed/elastic/agent/server/api.py:870 _invoke_run | time.sleep(monitor_interval)
            $S/torch/distributed/elastic/multiprocessing/api.py:84 _terminate_process_handler | raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
            """, f"torch.distributed.elastic.multiprocessing.api.SignalException: Process {pid} got signal: 15")  # fmt: skip
        streams.append(rows)
    log.add(weave(c.rng, streams, 15))
    log.add(
        *[f"srun: error: {n}: task {i}: Exited with exit code 1" for i, n in c.rng.sample(list(enumerate(names)), 9)]
    )


@case(
    "s010", "cuda-error", "config-error", "escalate restart-excluding",
    source="after the report of an NVSwitch server without its Fabric Manager; here one node of a job of eight",
    why="CUDA error 802 appears on all eight ranks of c7-09 only: on an NVSwitch box it means that Fabric Manager is not up. The key lookups of the other ranks wait for those ranks.",
    tags="misleading cascade slurm multi-node hardware", also="launch-failure version-mismatch", also_cls="hardware-failure dependency-failure", nodes="c7-09", gpus=64,
    mention=["fabric manager|fabricmanager|802|not yet initialized"], must_not="nccl-timeout",
)  # fmt: skip
def s010(c: Case) -> None:
    c.start("2024-10-21 13:31:00")
    c.site, c.root = "/usr/local/lib/python3.10/dist-packages", "/code/diff"
    names = hosts("c7-", 4, 8, 2)
    log = c.file("log_sd3ft_41877.txt")
    log.add(head(c, 41877, names, 8, "sd3ft", "h100", "12:00:00"))
    log.add(*[f"{n}: pyxis: imported docker image: registry.lab.example/diff/train:24.07" for n in names])
    c.tick(35)
    ok = [
        [f"{r}: {c.t()} accelerate rank {r}/64 device cuda:{r % 8}", f"{r}: {c.t()} mixed precision bf16"]
        for r in range(64)
        if r // 8 != 5
    ]
    bad = [pre(f"{r}: ", [f"{c.site}/torch/cuda/__init__.py:128: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
                          "calling NumCudaDevices() that might have already set an error? Error 802: system not yet initialized (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)",
                          "  return torch._C._cuda_getDeviceCount() > 0",
                          *tb(c, "train_sd3.py:54 <module> | main()\ntrain_sd3.py:31 main | torch.cuda.set_device(local_rank)\n$S/torch/cuda/__init__.py:399 set_device | torch._C._cuda_setDevice(device)\n"
                                 "$S/torch/cuda/__init__.py:293 _lazy_init | torch._C._cuda_init()", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
                                 "NumCudaDevices() that might have already set an error? Error 802: system not yet initialized")]) for r in range(40, 48)]  # fmt: skip
    log.add(weave(c.rng, ok + bad, 5), e="Error 802")
    c.tick(600)
    late = []
    for r in c.rng.sample([r for r in range(1, 64) if r // 8 != 5], 40):
        late.append(pre(f"{r}: ", tb(c, "train_sd3.py:54 <module> | main()\ntrain_sd3.py:33 main | dist.barrier()\n$S/torch/distributed/c10d_logger.py:79 wrapper | return func(*args, **kwargs)\n"
            "$S/torch/distributed/distributed_c10d.py:3938 barrier | work = default_pg.barrier(opts=opts)",
            f"[rank{r}]: torch.distributed.DistBackendError: [{r}] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer")))  # fmt: skip
    log.add(weave(c.rng, late, 9))
    log.add(
        "srun: error: c7-09: tasks 40-47: Exited with exit code 1",
        "srun: Terminating StepId=41877.0",
        *[
            f"srun: error: {n}: tasks {i * 8}-{i * 8 + 7}: Exited with exit code 1"
            for i, n in enumerate(names)
            if i != 5
        ],
    )
    log.add(sacct("JobID|State|ExitCode|NodeList", ["41877|FAILED|1:0|c7-[04-11]", "41877.0|FAILED|1:0|c7-[04-11]"]))
