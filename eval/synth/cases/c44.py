"""s133 to s136."""

from __future__ import annotations

from synth import megatron as mg
from synth import torch_text as tt
from synth.frameworks import pl_head, pl_steps, warning
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import head, hosts


@case(
    "s133", "ecc-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of accelerators that hang at random while the kernel log shows uncorrectable RAS events",
    why="The kernel of mi-23 reports uncorrectable errors of 0000:c6:00.0 and a reset right before HW Exception by GPU node-7 there; the timeouts of the other ranks follow ten minutes later.",
    tags="misleading cascade multi-node kernel hardware slurm", also="gpu-lost", nodes="mi-23", ranks="21", gpus=32, mention=["mi-23"], must_not="nccl-timeout network-error cuda-error",
)  # fmt: skip
def s133(c: Case) -> None:
    c.start("2025-01-15 04:22:51")
    c.root, c.site = "/scratch/lm/megatron-lm", "/opt/conda/envs/py_3.10/lib/python3.10/site-packages"
    names = hosts("mi-", 21, 4, 2)
    log, dm = c.file("train_5120.log"), c.file("kern/mi-23.log")
    log.add(
        head(c, 5120, names, 8, "gpt-mi300", "mi300", "2-00:00:00"), mg.arguments({"tensor_model_parallel_size": "8"})
    )
    log.add(mg.startup(c, tp=8, pp=1, params=1002438656, micro=16, vocab=50257, data="/scratch/tok/pile"))
    loss = Curve(c, 10.8, 2.2, 200)
    k = Kernel(c, "mi-23")
    log.add(mg.steps(c, 1, 1410, total=60000, gbs=512, sec=12.2, loss=loss, every=4))
    dm.add(chatter(c, k, 25, 12000))
    for other in ("mi-21", "mi-22", "mi-24"):
        c.file(f"kern/{other}.log").add(chatter(c, Kernel(c, other), 14, 12000))
    dm.add(
        k("amdgpu 0000:26:00.0: amdgpu: 3 correctable hardware errors detected in umc block", 3000),
        k("amdgpu 0000:26:00.0: amdgpu: no uncorrectable hardware errors detected in umc block", 3000),
    )
    dm.add(
        k("amdgpu 0000:c6:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!"),
        k("amdgpu 0000:c6:00.0: amdgpu: socket: 6, die: 0, 2 new uncorrectable hardware errors detected in umc block"),
        e=True,
    )
    c.tick(1)
    dm.add(k("amdgpu 0000:c6:00.0: amdgpu: GPU reset begin!"))
    log.add("21: HW Exception by GPU node-7 (Agent handle: 0x9d41f20) reason :GPU Hang", e=True)
    log.add(
        "21: GPU core dump failed",
        "21: Fatal Python error: Aborted",
        f"21: Thread 0x00007f{c.hex(10)} (most recent call first):",
        f'21:   File "{c.site}/torch/distributed/distributed_c10d.py", line 2259 in all_reduce',
        '21:   File "/scratch/lm/megatron-lm/megatron/core/tensor_parallel/mappings.py", line 30 in _reduce',
    )
    c.tick(4)
    dm.add(
        k("amdgpu 0000:c6:00.0: amdgpu: GPU reset(2) succeeded!"),
        k("amdgpu 0000:c6:00.0: amdgpu: VRAM is lost due to GPU reset!"),
    )
    c.tick(600)
    for r in (0, 5, 16, 20, 22, 23, 31):
        log.add(
            pre(f"{r}: ", tt.watchdog(c, "2.4", r, 40217, "ALLREDUCE", numel=(16777216, 16777216), last=(40219, 40216)))
        )
    log.add(
        "srun: error: mi-21: tasks 0-7: Aborted (core dumped)",
        "srun: error: mi-23: tasks 16-23: Aborted (core dumped)",
        "srun: error: mi-24: tasks 24-31: Aborted (core dumped)",
    )


@case(
    "s134", "native-crash", "config-error", "fix-and-resubmit restart-excluding",
    source="after the notes on programs built for another kind of CPU than one of the nodes has",
    why="The binary is built with AVX-512 and c3-055 has EPYC 7742 processors, which lack it: all its ranks stop with Illegal instruction at the first step (kernel: invalid opcode); the other nodes are Xeons.",
    tags="kernel multi-node slurm", also="version-mismatch", also_cls="dependency-failure", nodes="c3-055", mention=["illegal instruction|avx|instruction set|cpu"], must_not="ecc-error node-failure host-out-of-memory",
)  # fmt: skip
def s134(c: Case) -> None:
    c.start("2024-10-08 16:40:18")
    log, dm = c.file("in.rhodo.log"), c.file("journal-c3-055.txt")
    names = ["c3-051", "c3-052", "c3-053", "c3-055"]
    log.add("Loading gcc/12.2 openmpi/4.1.5 lammps/2Aug2023-avx512")
    for n in names:
        odd = n == "c3-055"
        log.add(
            f"{n}: Model name: {'AMD EPYC 7742 64-Core Processor' if odd else 'Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz'}",
            e="EPYC" if odd else False,
        )
    log.add(
        "+ mpirun -np 256 --map-by ppr:64:node lmp -sf omp -in in.rhodo",
        "LAMMPS (2 Aug 2023 - Update 3)",
        "OMP_NUM_THREADS environment is not set. Defaulting to 1 thread. (src/comm.cpp:98)",
        "  using 1 OpenMP thread(s) per MPI task",
    )
    log.add(
        "Reading data file ...",
        "  orthogonal box = (-27.5 -38.5 -36.3646) to (27.5 38.5 36.3615)",
        "  8 by 4 by 8 MPI processor grid",
        "  reading atoms ...",
        "  32000 atoms",
        "  scanning bonds ...",
        "  4 = max bonds/atom",
        "WARNING: Communication cutoff adjusted to 12.0 (src/comm.cpp:732)",
        "PPPM initialization ...",
        "  G vector (1/distance) = 0.2684277",
        "  estimated relative force accuracy = 8.5e-05",
    )
    k = Kernel(c, "c3-055")
    dm.add(chatter(c, k, 14, 900))
    c.tick(2)
    rows = []
    for r in range(192, 256):
        rows.append([
            f"[c3-055:{88000 + r:05d}] *** Process received signal ***", f"[c3-055:{88000 + r:05d}] Signal: Illegal instruction (4)", f"[c3-055:{88000 + r:05d}] Signal code: Illegal operand (2)",
            f"[c3-055:{88000 + r:05d}] Failing at address: 0x{c.hex(6)}", f"[c3-055:{88000 + r:05d}] [ 0] /lib64/libpthread.so.0(+0x12cf0)[0x7f{c.hex(10)}]", f"[c3-055:{88000 + r:05d}] [ 1] lmp(_ZN9LAMMPS_NS7PPPMOMP7computeEii+0x1c4)[0x{c.hex(6)}]",
            f"[c3-055:{88000 + r:05d}] *** End of error message ***",
        ])  # fmt: skip
    log.add(weave(c.rng, rows, 4), e="Illegal instruction (4)")
    for r in range(192, 256):
        dm.add(
            k(
                f"traps: lmp[{88000 + r}] trap invalid opcode ip:{c.hex(6)} sp:7ffc{c.hex(8)} error:0 in lmp[400000+2f1c000]"
            ),
            e=True,
        )
    log.add(
        "-" * 74,
        "mpirun noticed that process rank 192 with PID 88192 on node c3-055 exited on signal 4 (Illegal instruction).",
        "-" * 74,
    )


@case(
    "s135", "storage-error", "dependency-failure", "escalate kill-and-restart",
    source="after the notes on clients whose writes wait for a storage target for ever, and on steps that do not end with signals",
    why="The write of the checkpoint waits for work-OST0017 on both nodes whose kernel logs are here (requests time out, tasks blocked in cl_sync_io_wait); the all-gather that times out afterwards and the step that will not end are consequences.",
    tags="misleading cascade hang multi-node kernel storage slurm", outcome="hung", also_outcome="failed interrupted", also_cls="hardware-failure", nodes="", gpus=32, mention=["OST0017|lustre|storage|file system|filesystem"], must_not="nccl-timeout network-error collective-mismatch cancelled",
)  # fmt: skip
def s135(c: Case) -> None:
    c.start("2024-12-02 22:10:05")
    c.root, c.site = "/work/proj/wx", "/work/proj/env/lib/python3.11/site-packages"
    names = hosts("jn", 301, 4, 4)
    log = c.file("fc-550121.out")
    kl = {n: c.file(f"kernel/{n}.log") for n in (names[0], names[2])}
    ks = {n: Kernel(c, n) for n in kl}
    log.add(
        head(c, 550121, names, 8, "fc-1b", "booster", "1-00:00:00"),
        pl_head(c, 32, 8, [("net", "AFNO", "1.1 B"), ("loss", "LatWeighted", "0")], "1.1 B"),
    )
    log.add(warning(c, 6, "torch/optim/lr_scheduler.py"))
    loss = Curve(c, 0.9, 0.12, 600)
    for epoch in range(7):
        log.add(pl_steps(c, epoch, 1800, sec=0.71, loss=loss, every=60))
        log.add(
            f"Epoch {epoch}, global step {(epoch + 1) * 1800}: 'val_rmse' reached {0.5 - epoch / 30:.5f}, saving model to '/work/proj/wx/ckpt/epoch={epoch}.ckpt' as top 5"
        )
        if epoch < 6:
            c.tick(31)
    for n, kern in kl.items():
        kern.add(chatter(c, ks[n], 12, 5000))
    for _ in range(3):
        c.tick(100)
        for n, kern in kl.items():
            kern.add(
                ks[n](
                    f"Lustre: {c.n(2000, 9000)}:0:(client.c:2295:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply: [sent {int(c.now.timestamp()) - 100}/real {int(c.now.timestamp()) - 100}]  req@{c.hex(16)} x{c.n(10**15, 9 * 10**15)}/t0(0) o4->work-OST0017-osc-{c.hex(16)}@10.7.0.44@o2ib:6/4 lens 488/448 e 0 to 1 dl {int(c.now.timestamp())} ref 2 fl Rpc:X/2/ffffffff rc -11/-1"
                ),
                ks[n](
                    "Lustre: work-OST0017-osc: Connection to work-OST0017 (at 10.7.0.44@o2ib) was lost; in progress operations using this service will wait for recovery to complete"
                ),
                e=True,
            )
    for n, kern in kl.items():
        pid = c.n(20000, 60000)
        kern.add(ks[n](f"INFO: task python:{pid} blocked for more than 120 seconds."), e=True)
        kern.add(
            *[
                ks[n](x)
                for x in (
                    "      Tainted: P           OE    --------- -  - 4.18.0-477.10.1.el8_8.x86_64 #1",
                    f"task:python          state:D stack:    0 pid:{pid} ppid: 19211 flags:0x00004080",
                    "Call Trace:",
                    " __schedule+0x2d1/0x870",
                    " schedule+0x55/0xf0",
                    " cl_sync_io_wait+0x1c5/0x400 [obdclass]",
                    " cl_io_submit_sync+0x1a6/0x280 [obdclass]",
                    " vvp_fsync+0x88/0x120 [lustre]",
                )
            ]
        )
    c.tick(1500)
    for r in (1, 9, 17, 25, 30):
        log.add(
            pre(
                f"{r}: ",
                tt.watchdog(c, "2.3", r, 25201, "_ALLGATHER_BASE", numel=(1, 32), limit=1800000, teardown=False),
            )
        )
    c.tick(60)
    when = c.t("%Y-%m-%dT%H:%M:%S")
    log.add(
        "srun: error: jn0302: tasks 8-15: Aborted", "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.",
        f"slurmstepd: error: *** STEP 550121.0 STEPD TERMINATED ON jn0301 AT {when} DUE TO JOB NOT ENDING WITH SIGNALS ***",
        f"slurmstepd: error: *** STEP 550121.0 STEPD TERMINATED ON jn0303 AT {when} DUE TO JOB NOT ENDING WITH SIGNALS ***",
    )  # fmt: skip


@case(
    "s136", "version-mismatch", "dependency-failure", "restart-excluding escalate",
    source="after the notes on a driver that was upgraded under a running node",
    why="On w17 the user-space driver (550.127.05) is newer than the loaded kernel module (550.90.07): no GPU can be used there, so its eight ranks fail; the ranks of other nodes wait for them until the store times out.",
    tags="misleading cascade multi-node kernel", also_cls="operator-action config-error", nodes="w17", gpus=32, mention=["mismatch|driver", "w17"], must_not="gpu-lost connection-error network-error nccl-timeout",
)  # fmt: skip
def s136(c: Case) -> None:
    c.start("2024-11-27 08:00:12")
    c.root, c.site = "/srv/train", "/opt/conda/lib/python3.10/site-packages"
    log, jr = c.file("ds.log"), c.file("w17-journal.txt")
    names = ["w14", "w15", "w17", "w18"]
    k = Kernel(c, "w17")
    jr.add(
        f"{c.t('%b %d %H:%M:%S', 6900)} w17 systemd[1]: Starting apt-daily-upgrade.service - Daily apt upgrade and clean activities..."
    )
    jr.add(
        f"{c.t('%b %d %H:%M:%S', 6840)} w17 apt.systemd.daily[88123]: Unpacking libnvidia-compute-550-server:amd64 (550.127.05-0ubuntu0.22.04.1) over (550.90.07-0ubuntu0.22.04.1) ...",
        e=True,
    )
    jr.add(chatter(c, k, 20, 6000))
    log.add(
        "[2024-11-27 08:00:10,114] [INFO] [multinode_runner.py:81:get_cmd] Running on the following workers: w14,w15,w17,w18"
    )
    for n in names:
        c.tick(0.4)
        log.add(pre(f"{n}: ", mg.ds_start(c, names, 8, "finetune.py", "--deepspeed ds.json --model mixtral")))
    c.tick(3)
    for _ in range(8):
        jr.add(
            *[
                k(f"NVRM: {x}")
                for x in (
                    "API mismatch: the client has the version 550.127.05, but",
                    "this kernel module has the version 550.90.07.  Please",
                    "make sure that this kernel module and all NVIDIA driver",
                    "components have the same version.",
                )
            ],
            e=True,
        )
    rows = [pre("w17: ", [
        f"{c.site}/torch/cuda/__init__.py:118: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)",
        "  return torch._C._cuda_getDeviceCount() > 0",
        *tb(c, "finetune.py:77 <module> | main()\nfinetune.py:31 main | torch.cuda.set_device(args.local_rank)\n$S/torch/cuda/__init__.py:314 _lazy_init | torch._C._cuda_init()", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination"),
    ]) for _ in range(8)]  # fmt: skip
    log.add(weave(c.rng, rows, 5), e="Error 803")
    pids = c.pids(8, 5000)
    log.add(pre("w17: ", mg.ds_killed(c, pids, "['/opt/conda/bin/python', '-u', 'finetune.py', '--local_rank=7']", 1)))
    c.tick(1800)
    rows = [
        pre(
            f"{n}: ",
            tb(
                c,
                "finetune.py:33 main | deepspeed.init_distributed()\n$S/torch/distributed/distributed_c10d.py:1754 _store_based_barrier | raise DistStoreError(",
                f"torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. {24}/32 clients joined.",
            ),
        )
        for n in ("w14", "w15", "w18")
        for _ in range(3)
    ]
    log.add(weave(c.rng, rows, 4))
    log.add(*[f"pdsh@w14: {n}: ssh exited with exit code 1" for n in names])
