"""s061 to s064."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import pl_head, pl_steps
from synth.kit import Case, Curve, case, tb, weave


@case(
    "s061", "called-process-error", "dependency-failure", "fix-and-resubmit",
    source="after the report of an optimizer extension that cannot be built at start because a header of the toolkit is missing",
    why="nvcc stops on cuda_profiler_api.h, which is not in the toolkit of the environment; ninja, CalledProcessError and 'Error building extension' repeat on all ranks what the compiler said once.",
    tags="misleading cascade training", also="version-mismatch import-error runtime-error launch-failure", also_cls="config-error", nodes="", gpus=8, mention=["cuda_profiler_api|header|toolkit"], must_not="file-not-found",
)  # fmt: skip
def s061(c: Case) -> None:
    c.start("2022-11-21 15:15:08")
    c.site, c.root = "/home/hyun/anaconda3/envs/ds/lib/python3.8/site-packages", "/home/hyun/kogpt"
    log = c.file("ds_kogpt.log")
    log.add(mg.ds_start(c, ["localhost"], 8, "train.py", "--deepspeed --deepspeed_config ds_z2_offload.json", "0.7.4"), *["Using /home/hyun/.cache/torch_extensions/py38_cu113 as PyTorch extensions root..." for _ in range(8)], "Creating extension directory /home/hyun/.cache/torch_extensions/py38_cu113/cpu_adam...",
            "Detected CUDA files, patching ldflags", "Emitting ninja build file /home/hyun/.cache/torch_extensions/py38_cu113/cpu_adam/build.ninja...", "Building extension module cpu_adam...", "Allowing ninja to set a default number of workers... (overridable by setting the environment variable MAX_JOBS=N)")  # fmt: skip
    inc = f"{c.site}/deepspeed/ops/csrc/includes"
    log.add("[1/3] /home/hyun/anaconda3/envs/ds/bin/nvcc --generate-dependencies-with-compile --dependency-output custom_cuda_kernel.cuda.o.d -DTORCH_EXTENSION_NAME=cpu_adam -DTORCH_API_INCLUDE_EXTENSION_H -D_GLIBCXX_USE_CXX11_ABI=0 -isystem " + f"{c.site}/torch/include -O3 --use_fast_math -std=c++14 -gencode=arch=compute_86,code=sm_86 -c {c.site}/deepspeed/ops/csrc/common/custom_cuda_kernel.cu -o custom_cuda_kernel.cuda.o ",
            "FAILED: custom_cuda_kernel.cuda.o ", f"In file included from {inc}/custom_cuda_layers.h:12,", f"                 from {c.site}/deepspeed/ops/csrc/common/custom_cuda_kernel.cu:1:")  # fmt: skip
    log.add(f"{inc}/cublas_wrappers.h:9:10: fatal error: cuda_profiler_api.h: No such file or directory", e=True)
    log.add(
        " #include <cuda_profiler_api.h>",
        "          ^~~~~~~~~~~~~~~~~~~~~",
        "compilation terminated.",
        f"[2/3] c++ -MMD -MF cpu_adam.o.d -DTORCH_EXTENSION_NAME=cpu_adam -O3 -std=c++14 -fopenmp -march=native -c {c.site}/deepspeed/ops/csrc/adam/cpu_adam.cpp -o cpu_adam.o ",
        "ninja: build stopped: subcommand failed.",
    )
    rows = []
    for r in c.rng.sample(range(8), 8):
        if r == 0:
            rows.append(tb(c, """
                $S/torch/utils/cpp_extension.py:1808 _run_ninja_build | subprocess.run(
                /home/hyun/anaconda3/envs/ds/lib/python3.8/subprocess.py:516 run | raise CalledProcessError(retcode, process.args,
                """, ["subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.", "", "The above exception was the direct cause of the following exception:", "", *tb(c, """
                train.py:141 <module> | engine, _, loader, _ = deepspeed.initialize(args=args, model=model, training_data=train)
                $S/deepspeed/runtime/engine.py:1188 _configure_basic_optimizer | optimizer = DeepSpeedCPUAdam(model_parameters,
                $S/deepspeed/ops/op_builder/builder.py:460 jit_load | op_module = load(
                $S/torch/utils/cpp_extension.py:1824 _run_ninja_build | raise RuntimeError(message) from e
                """, "RuntimeError: Error building extension 'cpu_adam'")]))  # fmt: skip
        else:
            rows.append(tb(c, "train.py:141 <module> | engine, _, loader, _ = deepspeed.initialize(args=args, model=model, training_data=train)\n$S/torch/utils/cpp_extension.py:1936 _import_module_from_library | module = importlib.util.module_from_spec(spec)",
                           "ImportError: /home/hyun/.cache/torch_extensions/py38_cu113/cpu_adam/cpu_adam.so: cannot open shared object file: No such file or directory"))  # fmt: skip
    log.add(
        weave(c.rng, rows, 6),
        weave(
            c.rng,
            [
                [
                    f"Exception ignored in: <function DeepSpeedCPUAdam.__del__ at 0x7f{c.hex(10)}>",
                    "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'",
                ]
                for _ in range(8)
            ],
            2,
        ),
    )
    log.add(
        mg.ds_killed(
            c,
            c.pids(8, 31000),
            "['/home/hyun/anaconda3/envs/ds/bin/python', '-u', 'train.py', '--local_rank=7', '--deepspeed', '--deepspeed_config', 'ds_z2_offload.json']",
            1,
        )
    )


@case(
    "s062", "nccl-timeout", "software-bug", "fix-and-resubmit",
    source="after the report of a run that times out at the end of its first epoch because one rank makes predictions and plots alone",
    why="Rank 0 writes test plots of epoch 1 alone for more than half an hour ('rank 0: plotting') while the other seven sit in the first all-reduce of epoch 2 and reach their limit.",
    tags="misleading training hang", also="collective-mismatch hang", also_cls="config-error", nodes="", ranks="0", gpus=8, mention=["rank 0|plot|predict|epoch"], must_not="network-error gpu-lost nccl-remote-error",
)  # fmt: skip
def s062(c: Case) -> None:
    c.start("2025-02-20 10:33:37")
    c.site = "/usr/local/lib/python3.12/dist-packages"
    log = c.file("mlpf_clic.log")
    stamp = lambda: f"[{c.t()}]"  # noqa: E731
    log.add(
        f"{stamp()} Will use torch.nn.parallel.DistributedDataParallel() and 8 gpus",
        *[f"{stamp()} NVIDIA H100 80GB HBM3, cuda:{g}" for g in range(8)],
        f"{stamp()} train_dataset: clic_edm_ttbar_pf, 3210408 events",
        f"{stamp()} valid_dataset: clic_edm_ttbar_pf, 802551 events",
    )
    loss = Curve(c, 31, 5.2, 2000)
    for i in range(0, 25000, 100):
        c.tick(38, 40)
        log.add(
            f"{stamp()} epoch 1/30 train step {i}/25000 loss={loss(i):.3f} reg={loss(i) / 3:.3f} cls={loss(i) / 7:.4f} {c.jitter(1030):.0f} events/s"
        )
    log.add(
        f"{stamp()} Rank 0: epoch=1 / 30 train_loss=5.6123 valid_loss=5.7090 stale=0 epoch_train_time=163.8m epoch_valid_time=7.1m"
    )
    c.tick(2)
    log.add(f"{stamp()} rank 0: running test predictions on clic_edm_qq_pf (412 files) before the next epoch", e=True)
    for k in range(11):
        c.tick(170, 190)
        log.add(
            f"{stamp()} rank 0: plotting {c.rng.choice(['response', 'met', 'jets', 'pid_confusion', 'multiplicity', 'num_elements'])} ({k * 37}/412 files done)",
            e=k == 10,
        )
        if k == 9:
            rows = [
                tt.watchdog(c, "2.6", r, 75418, "ALLREDUCE", numel=(1, 1), limit=1800000, last=(75418, 75417))
                for r in c.rng.sample(range(1, 8), 7)
            ]
            log.add(weave(c.rng, rows, 3))
    log.add(tt.follower(c, 0, 5, 75417, 75417), "[mlpf] child 3 exited with -6, stopping the others")


@case(
    "s063", "healthy", "none", "none",
    source="a run that had ended well when its data workers and idle tasks were killed by the clean-up of the batch system",
    why="The last epoch, the test result and 'Training done' come before the killed data worker; sacct counts the step COMPLETED 0:0. The noise after it is the clean-up.",
    tags="healthy slurm", nodes="", gpus=8, scheduler={"JobID": "40991", "State": "COMPLETED", "ExitCode": "0:0"},
)  # fmt: skip
def s063(c: Case) -> None:
    c.start("2024-01-30 09:59:31")
    c.site = "/sw/pytorch/2.1/lib/python3.10/site-packages"
    log = c.file("slurm_unet3d.txt")
    log.add(
        pl_head(
            c, 8, 4, [("net", "DynUNet", "31.2 M"), ("dice", "DiceCELoss", "0"), ("post", "Compose", "0")], "31.2 M"
        )
    )
    loss = Curve(c, 1.4, 0.21, 300)
    for e in range(40):
        log.add(
            pl_steps(c, e, 120, sec=1.6, loss=loss, every=20),
            f"Epoch {e}, global step {120 * (e + 1)}: 'val_dice' reached {0.9 - loss(e * 120) / 9:.5f} (best {0.9 - loss(e * 120) / 9:.5f}), saving model to '/proj/kits/ck/e{e:02d}.ckpt' as top 1",
        )
    log.add(
        "`Trainer.fit` stopped: `max_epochs=40` reached.",
        "─" * 40,
        "       Test metric             DataLoader 0",
        "─" * 40,
        "        test_dice           0.8712244033813477",
        "        test_hd95            4.118210792541504",
        "─" * 40,
        f"{c.t()} Training done, results in /proj/kits/ck/results.json",
    )
    c.tick(5)
    log.add("Exception in thread Thread-9 (_pin_memory_loop):", tb(c, "/usr/lib/python3.10/threading.py:1016 _bootstrap_inner | self.run()\n$S/torch/utils/data/_utils/pin_memory.py:54 _pin_memory_loop | do_one_step()\n/usr/lib/python3.10/multiprocessing/connection.py:383 _recv | raise EOFError", "EOFError"),
            "RuntimeError: DataLoader worker (pid 88412) is killed by signal: Killed. ", "slurmstepd: error: task_p_post_term: rmdir(/dev/cpuset/slurm40991/slurm40991.0_5) failed Device or resource busy", "END rc=0")  # fmt: skip
    c.file("sacct.txt").add(
        "JobID|JobName|State|ExitCode|Elapsed|MaxRSS",
        f"40991|unet3d|COMPLETED|0:0|{2}:11:40|",
        "40991.batch|batch|COMPLETED|0:0|2:11:40|812M",
        "40991.0|python|COMPLETED|0:0|2:11:33|77120M",
    )


@case(
    "s064", "network-error", "config-error", "fix-and-resubmit escalate",
    source="after the report of transfers over EFA that fail with 'Not a directory' where a security group drops the packets",
    why="Every transfer between the two instances fails with RC 20 / 'Not a directory (20)' at the first collective while rings within each host connect: EFA packets are dropped between the instances (security group), no file is missing.",
    tags="misleading network kubernetes multi-node", also="nccl-remote-error", also_cls="network-failure", nodes="", gpus=16, mention=["efa|security group"], must_not="file-not-found os-error node-failure storage-error",
)  # fmt: skip
def s064(c: Case) -> None:
    c.start("2022-11-09 18:12:00")
    log = c.file("mpijob-launcher.txt")
    hosts_ = ["nlp-worker-0", "nlp-worker-1"]
    log.add(
        "Warning: Permanently added 'nlp-worker-0.nlp-worker,172.16.98.4' (ECDSA) to the list of known hosts.",
        "Warning: Permanently added 'nlp-worker-1.nlp-worker,172.16.101.77' (ECDSA) to the list of known hosts.",
    )
    rows = []
    for r in range(16):
        h = f"[1,{r}]<stdout>:{hosts_[r // 8]}:{30 + r % 8}:{30 + r % 8} [{r % 8}] NCCL INFO "
        rows.append([h + f"Bootstrap : Using eth0:172.16.{98 if r < 8 else 101}.{4 if r < 8 else 77}<0>", h + "NET/OFI Using aws-ofi-nccl 1.4.0aws", h + "NET/OFI Setting FI_EFA_FORK_SAFE environment variable to 1", h + "NET/OFI Running on p4d.24xlarge platform, Setting NCCL_TOPO_FILE environment variable to /opt/aws-ofi-nccl/share/aws-ofi-nccl/xml/p4d-24xl-topo.xml",
                     h + "NET/OFI Selected Provider is efa (found 4 nics)", h + "Using network AWS Libfabric", *(h + f"Channel {i:02d}/0 : {r}[{nccl.BUS[r % 8]}] -> {(r + 1) % 16}[{nccl.BUS[(r + 1) % 8]}] via P2P/IPC/read" for i in range(2) if r % 8 != 7), h + f"comm 0x7f{c.hex(10)} rank {r} nranks 16 cudaDev {r % 8} busId {nccl.BUS[r % 8]} - Init COMPLETE"])  # fmt: skip
    log.add(
        "[1,0]<stdout>:NCCL version 2.12.7+cuda11.4",
        weave(c.rng, rows, 3),
        "[1,0]<stdout>:step 0: broadcast of 6738415616 parameters",
    )
    c.tick(8)
    bad = []
    for r in (5, 13, 2, 7, 15, 10, 0, 8):
        bad.append([f"[1,{r}]<stdout>:{hosts_[r // 8]}:{30 + r % 8}:{80 + r % 8} [{r % 8}] ofi_process_cq:1039 NCCL WARN NET/OFI Request 0x7f{c.hex(10)} completed with error. RC: 20. Error: unknown error. Completed length: 0, Request: {{ buffer_index: 255, dev: {r % 4}, size: 0, state: CREATED, direction: SEND }}",
                    f"[1,{r}]<stderr>:libfabric:{30 + r % 8}:{int(c.now.timestamp())}::efa:cq:rxr_cq_write_tx_error():243<warn> rxr_cq_write_tx_error: err: 20, prov_err: Not a directory (20)"])  # fmt: skip
    log.add(weave(c.rng, bad, 2), e="RC: 20")
    log.add(
        *[
            f"[1,{r}]<stdout>:{hosts_[r // 8]}: Test NCCL failure pretrain.cu:310 'unhandled system error'"
            for r in (5, 13, 2, 7, 15)
        ],
        "-" * 74,
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "the job to be terminated. The first process to do so was:",
        "",
        "  Process name: [[20711,1],5]",
        "  Exit code:    3",
        "-" * 74,
    )
