"""s121 to s124."""

from __future__ import annotations

from synth import megatron as mg
from synth import torch_text as tt
from synth.frameworks import warning
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import binds, head, hosts

_NAN = "found NaN in local grad norm for bucket #{} in backward pass before data-parallel communication collective"


@case(
    "s121", "loss-spike", "hardware-failure", "restart-excluding escalate",
    source="after the notes on NaN that one rank alone reports and that a replay of the same data does not show again",
    why="Three attempts end with a NaN on rank 37 (r07n05, device 5), each at another iteration; the later attempts pass the iterations where the earlier ones died, on the same data. So neither data nor code: that device computes wrong.",
    tags="misleading cascade multi-node multi-run slurm hardware training", nodes="r07n05", ranks="37", gpus=64, mention=["r07n05"], must_not="nccl-remote-error network-error cancelled",
)  # fmt: skip
def s121(c: Case) -> None:
    c.start("2025-03-09 18:40:02")
    c.root = "/workspace/Megatron-LM"
    names = hosts("r07n", 1, 8, 2)
    log = c.file("pretrain-90417.out")
    log.add(head(c, 90417, names, 8, "pretrain-13b", "train", "4-00:00:00"), binds(c, names, 8))
    loss = Curve(c, 10.9, 1.7, 260)
    begin = 8000
    for died, bucket in ((8123, 0), (8277, 3), (8391, 1)):
        log.add(
            mg.arguments({"world_size": "64", "tensor_model_parallel_size": "4", "load": "/lustre/ckpt/13b"}, "0: ")
        )
        log.add(
            pre(
                "0: ",
                mg.startup(
                    c,
                    tp=4,
                    pp=1,
                    params=3312115712,
                    micro=8,
                    vocab=32000,
                    data="/lustre/tok/mix",
                    load="/lustre/ckpt/13b",
                    at=begin,
                ),
            )
        )
        log.add(pre("63: ", mg.steps(c, begin + 1, died - 1, total=250000, gbs=512, sec=9.4, loss=loss, every=4)))
        c.tick(5)
        end = f"RuntimeError: Rank 37, node r07n05, device 5, iteration {died}: Unexpected result nan (message='{_NAN.format(bucket)}')"
        trace = pre("37: ", tb(c, """
            pretrain_gpt.py:306 <module> | pretrain(
            megatron/training/training.py:1614 train_step | losses_reduced = forward_backward_func(
            megatron/core/distributed/param_and_grad_buffer.py:139 check_grads | rerun_state_machine.validate_result(
            megatron/core/rerun_state_machine.py:519 validate_result | raise RuntimeError(full_message)
            """, end))  # fmt: skip
        log.add(trace, e="Rank 37, node r07n05")
        c.tick(3)
        log.add(weave(c.rng, [
            [
                f"{r}: {tt.stamp(c, '2.5', r, 1895)} [PG ID 0 PG GUID 0(default_pg) Rank {r}] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
                f"{r}: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
                f"{r}: Last error:",
                f"{r}: socketProgress: Connection closed by remote peer r07n05<{c.n(33000, 60000)}>",
            ]
            for r in (36, 38, 39, 45, 29, 37 - 16, 53)
        ], 2))  # fmt: skip
        when = c.t("%Y-%m-%dT%H:%M:%S")
        log.add(
            "srun: error: r07n05: task 37: Exited with exit code 1",
            "srun: Terminating StepId=90417.0",
            f"slurmstepd: error: *** STEP 90417.0 ON r07n01 CANCELLED AT {when} DUE TO TASK FAILURE ***",
            "srun: error: r07n01: tasks 0-7: Terminated",
            "srun: error: r07n05: tasks 32-36,38-39: Terminated",
            "srun: Force Terminating StepId=90417.0",
        )
        if died != 8391:
            c.tick(70)
            log.add(f"[requeue] attempt ended with 1, starting again from the last checkpoint {c.t()}")


@case(
    "s122", "connection-error", "config-error", "fix-and-resubmit escalate kill-and-restart",
    source="after the report of an NPU job whose socket timeouts follow a listen failure by two minutes",
    why="Rank 3 on a2-016 could not listen on port 16666 because another process has it; two minutes later all its peers report that the link was not established. The first error is the cause, the EI0006 lines are consequences.",
    tags="misleading cascade multi-node network", also="os-error", also_cls="operator-action", nodes="a2-016", ranks="3", gpus=16, mention=["16666", "port"], must_not="network-error nccl-timeout hang",
)  # fmt: skip
def s122(c: Case) -> None:
    c.start("2025-06-11 03:09:58")
    c.root = "/home/ma-user/work"
    names = ["a2-016", "a2-017"]
    out = c.file("train.log")
    for h, name in enumerate(names):
        for i in range(8):
            out.add(
                f"[{name}] rank {h * 8 + i} device {i} ip 10.20.1.{16 + h} visible devices 0-7, HCCL_CONNECT_TIMEOUT=120 HCCL_EXEC_TIMEOUT=1800"
            )
    out.add(warning(c, 2, "torch_npu/utils/storage.py"), "[INFO] building model qwen2-72b tp=8 pp=2 ...")
    out.add(*[f"[rank{r}] loaded shard {s:05d}-of-00037" for s in range(1, 20) for r in (0, 8)])
    plogs = {n: c.file(f"plog/{n}.log") for n in names}

    def row(level: str, pid: int, text: str) -> str:
        c.tick(0, 0.01)
        return f"[{level}] HCCL({pid},python):{c.t('%Y-%m-%d-%H:%M:%S.%f3')}.{c.n(100, 999)} {text}"

    pids = c.pids(16, 20000)
    for h, name in enumerate(names):
        for i in range(8):
            p = pids[h * 8 + i]
            plogs[name].add(
                row(
                    "INFO",
                    p,
                    f"[op_base.cc:421] [{p}]Entry-HcclCommInitRootInfo:ranks[16], rank[{h * 8 + i}], rootinfo: host ip[10.20.1.16] port[60000]",
                ),
                row("INFO", p, f"[topoinfo_exchange_agent.cc:88] [{p}]rank[{h * 8 + i}] get rank basic info success"),
            )
    plogs["a2-016"].add(
        row(
            "ERROR",
            pids[3],
            f"[hccl_socket.cc:211] [{pids[3]}][HcclSocket][Listen] socket type[1], listen on ip[10.20.1.16] and specific port[16666] fail. Please check the port status and whether the port is been using by other process.",
        ),
        e=True,
    )
    plogs["a2-016"].add(
        row(
            "ERROR",
            pids[3],
            f"[hccl_comm.cc:331] [{pids[3]}][Init][HcclComm]errNo[0x0000000005000007] init socket manager failed, rank[3]",
        )
    )
    c.tick(120.4)
    for r in (*range(3), *range(4, 16)):
        name = names[r // 8]
        plogs[name].add(
            row("ERROR", pids[r], f"[transport_manager.cc:519] [{pids[r]}][Wait][LinkEstablish]wait socket establish timeout, role[{int(r > 3)}] rank[{r}] timeout[120]"),
            row("ERROR", pids[r], f"[transport_manager.cc:560] [{pids[r]}]   _________________________LINK_ERROR_INFO___________________________"),
            row("ERROR", pids[r], f"[transport_manager.cc:561] [{pids[r]}]   |  comm error, device[{r % 8}]  "),
        )  # fmt: skip
    rows = []
    for r in (*range(3), *range(4, 16)):
        rows.append(pre(f"[rank{r}]: ", [
            *tb(c, """
            train.py:211 <module> | main()
            train.py:144 main | dist.barrier()
            $S/torch/distributed/distributed_c10d.py:3683 barrier | work = group.barrier(opts=opts)
            """, "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:1290, error code is 6"),
            f"EI0006: [PID: {pids[r]}] {c.t('%Y-%m-%d-%H:%M:%S.%f')} Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the rank being stuck",
            "        Solution: 1. Check the rank service processes with other errors or no errors in the cluster. 2. If this error is reported for all NPUs, check whether the time difference between the earliest and latest errors is greater than the connect timeout interval (120s by default).",
        ]))  # fmt: skip
    out.add(weave(c.rng, rows, 4))
    out.add(
        tt.exits(c, "2.1", 1, 0, pids[0]),
        tt.child_failed(c, "train.py", "a2-017", [(8, 0, 1, pids[8]), *[(r, r - 8, 1, pids[r]) for r in range(9, 12)]]),
    )


@case(
    "s123", "connection-error", "config-error", "fix-and-resubmit",
    source="after the report of a host whose name is all digits, so that the resolver takes it for an address",
    why="The host is called 5203311; as a number that is 0.79.101.111, and there the workers look for the store. Nothing is wrong with the network.",
    tags="misleading network", nodes="", gpus=4, mention=["5203311|host name|hostname", "0.79.101.111|master_addr|127.0.0.1|localhost|rdzv"], must_not="network-error node-failure nccl-timeout",
)  # fmt: skip
def s123(c: Case) -> None:
    c.start("2024-08-21 09:12:44")
    c.site, c.root = "/root/miniconda3/envs/sora/lib/python3.9/site-packages", "/root/proj"
    log = c.file("nohup.out")
    log.add(
        "+ hostname", "5203311", "+ nvidia-smi -L", *[f"GPU {i}: NVIDIA A800-SXM4-80GB (UUID: GPU-{c.hex(8)}-{c.hex(4)}-{c.hex(4)}-{c.hex(4)}-{c.hex(12)})" for i in range(4)],
        "+ torchrun --standalone --nproc_per_node 4 scripts/train.py configs/stage1.py --data-path meta.csv",
        tt.omp(c, "2.2"),
    )  # fmt: skip
    target = "[::ffff:0.79.101.111]:47389"
    for _ in range(6):
        c.tick(127, 134)
        log.add(
            f"[W socket.cpp:697] [c10d] The client socket has failed to connect to {target} (errno: 110 - Connection timed out).",
            e=True,
        )
    c.tick(2)
    log.add(
        "[E socket.cpp:753] [c10d] The client socket has failed to connect to any network address of (5203311, 47389).",
        e=True,
    )
    rows = [pre("", tb(c, """
        scripts/train.py:402 <module> | main()
        scripts/train.py:61 main | dist.init_process_group(backend="nccl", timeout=timedelta(hours=24))
        $S/torch/distributed/rendezvous.py:189 _create_c10d_store | return TCPStore(
        """, "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (5203311, 47389). The client socket has failed to connect to 0.79.101.111:47389 (errno: 110 - Connection timed out).")) for _ in range(4)]  # fmt: skip
    log.add(*rows)
    pids = c.pids(4, 11000)
    log.add(
        tt.exits(c, "2.2", 1, 0, pids[0]),
        tt.child_failed(c, "scripts/train.py", "5203311", [(i, i, 1, pids[i]) for i in range(4)]),
    )


@case(
    "s124", "storage-error", "dependency-failure", "restart-excluding escalate restart",
    source="after the notes on cluster file systems that expel a node: the program sees only a write that fails",
    why="cn0412 lost its membership of the GPFS cluster and was expelled at 03:11; the writes of its ranks fail from then on and mpirun takes the rest down. The endpoint errors of other nodes come after the exit.",
    tags="misleading cascade multi-node storage slurm", also_cls="network-failure hardware-failure", nodes="cn0412", mention=["cn0412", "gpfs|expel|file system|filesystem"], must_not="native-crash network-error nccl-remote-error",
)  # fmt: skip
def s124(c: Case) -> None:
    c.start("2025-05-01 21:02:10")
    names = hosts("cn", 410, 4, 4)
    log, mm = c.file("les.o771203"), c.file("mmfs.log.cn0412")

    def gp(text: str) -> str:
        return f"{c.t('%Y-%m-%d_%H:%M:%S.%f3')}+0200: {text}"

    mm.add(
        gp("[I] Command: successful mount work"),
        gp("[I] Accepted and connected to 10.1.0.22 io02 <c0n2>"),
        gp("[N] VERBS RDMA library libibverbs.so (version >= 1.1) loaded and initialized."),
    )
    log.add(
        head(c, 771203, names, 48, "les-wake", "std", "2-00:00:00"),
        "mpirun -np 192 --map-by ppr:48:node ./les3d input.nml",
        " LES3D v4.2  double precision, 192 ranks, 768 x 384 x 384 cells", " reading restart/field.00120 ... ok", " poisson solver: multigrid, tolerance 1.0E-08",
        " WARNING: CFL above 0.8 at startup, time step limited",
    )  # fmt: skip
    step = 120000
    for n in range(1, 420):
        c.tick(51)
        step += 50
        log.add(
            f" step {step:8d} time {step * 2.5e-5:.6E} dt 2.500E-05 CFL {c.f(0.55, 0.79):.3f} div {c.f(1, 9):.3f}E-09 iter {c.n(9, 14)} err {c.f(1, 9):.2f}E-09"
        )
        if n % 60 == 0:
            log.add(f" writing restart/field.{step // 1000:05d} ... done in {c.f(9, 14):.1f} s")
    mm.add(
        gp(
            "[W] The TCP connection to IP address 10.1.0.21 io01 <c0n1> (socket 41) state is unexpected: state=1 ca_state=4 snd_cwnd=1 snd_ssthresh=2 unacked=3 probes=0 backoff=7 retransmits=7 rto=26624000"
        ),
        gp("[E] Unable to contact any quorum nodes during cluster probe."),
    )
    c.tick(11)
    mm.add(
        gp("[E] This node is being expelled from the cluster."),
        gp("[E] Lost membership in cluster hpc.work. Unmounting file systems."),
        e=True,
    )
    c.tick(4)
    log.add(f" writing restart/field.{step // 1000 + 1:05d} ...")
    for r in (131, 104, 97):
        log.add(
            "forrtl: Stale file handle",
            f"forrtl: severe (38): error during write, unit 21, file /gpfs/work/cfd/wake/restart/field.{step // 1000 + 1:05d}.{r:04d}",
            "Image              PC                Routine            Line        Source",
            f"les3d              000000000{c.hex(7)}  io_mod_mp_wri             {c.n(200, 400)}  io_mod.f90",
            f"les3d              000000000{c.hex(7)}  MAIN__                    {c.n(80, 190)}  les3d.f90",
            e="error during write",
        )
    c.tick(1)
    log.add(
        "-" * 74, "Primary job  terminated normally, but 1 process returned", "a non-zero exit code. Per user-direction, the job has been aborted.", "-" * 74,
    )  # fmt: skip
    for name in ("cn0410", "cn0411", "cn0413"):
        log.add(
            f"[{name}:{c.n(20000, 60000)}:0:{c.n(20000, 60000)}] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"
        )
    log.add(
        "-" * 74, "mpirun detected that one or more processes exited with non-zero status, thus causing", "the job to be terminated. The first process to do so was:", "",
        "  Process name: [[51234,1],131]", "  Exit code:    38", "-" * 74,
    )  # fmt: skip
    c.tick(30)
    mm.add(gp("[I] Waiting to rejoin cluster hpc.work"))
