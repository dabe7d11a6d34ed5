"""s057 to s060."""

from __future__ import annotations

from synth import torch_text as tt
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s057", "import-error", "config-error", "fix-and-resubmit",
    source="an MPI launch in which one host's environment lacks a package, so that its ranks stop at the first import and MPI aborts all",
    why="Ranks 12 to 15, all on n117, cannot import apex (another environment than the other hosts, see the paths); MPI_ABORT and the PMIx noise are what the launcher makes of it.",
    tags="cascade misleading multi-node", also_cls="dependency-failure", nodes="n117", ranks="12 13 14 15", gpus=16, mention=["apex"], must_not="node-failure connection-error native-crash",
)  # fmt: skip
def s057(c: Case) -> None:
    c.start("2023-03-28 13:50:16")
    log = c.file("openfold-mpi.txt")
    c.root = "/apps/openfold-mpi"
    rows = []
    for r in range(16):
        host = f"n{114 + r // 4}"
        env = "/apps/anaconda/envs/of-old" if host == "n117" else "/apps/anaconda/envs/of-2303"
        c.site = f"{env}/lib/python3.9/site-packages"
        body = [f"{host} python {env}/bin/python", f"{host} rank {r}: templates mmcif 198312, alignments 142209"]
        if host == "n117":
            body = [
                body[0],
                *tb(
                    c,
                    "train_openfold.py:24 <module> | from openfold.utils.kernel.attention_core import attention_core\nopenfold/model/primitives.py:18 <module> | from apex.normalization import FusedLayerNorm",
                    "ModuleNotFoundError: No module named 'apex'",
                ),
            ]
        rows.append(pre(f"[1,{r}]<std{'err' if host == 'n117' else 'out'}>:", body))
    log.add(weave(c.rng, rows, 4), e="No module named 'apex'")
    c.tick(1)
    log.add("-" * 74, "MPI_ABORT was invoked on rank 13 in communicator MPI_COMM_WORLD", "with errorcode 1.", "", "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.", "You may or may not see output from other processes, depending on", "exactly when Open MPI kills them.", "-" * 74,
            *[f"[n114:{c.n(20000, 30000)}] {c.n(2, 11)} more processes have sent help message help-mpi-api.txt / mpi-abort", "[n114:20881] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages"],
            *[f"[n{114 + c.n(0, 2)}:{c.n(20000, 30000)}] PMIX ERROR: UNPACK-PAST-END in file ptl_tcp_component.c at line 2199" for _ in range(9)], "slurmstepd: error: *** STEP 901772.0 ON n114 CANCELLED AT 2023-03-28T13:50:31 ***")  # fmt: skip


@case(
    "s058", "node-failure", "hardware-failure", "restart-excluding escalate",
    source="a node whose console shows an uncorrectable memory error of the host and a kernel panic, seen in the job only as a rank that vanished",
    why="The console of compute-0-19 shows a machine check on a DIMM (uncorrected) and a panic; the job's ranks there fell silent, UCX and the watchdogs of the others follow.",
    tags="misleading hardware kernel multi-file multi-node cascade", also="ecc-error", nodes="compute-0-19", gpus=16, mention=["compute-0-19|panic|machine check|memory"], must_not="nccl-timeout network-error connection-error",
)  # fmt: skip
def s058(c: Case) -> None:
    c.start("2022-09-21 20:40:00")
    log = c.file("wrf-ml-emul.out")
    names = [f"compute-0-{i}" for i in (17, 18, 19, 22)]
    log.add(
        *[f"[{n}] 4 x A100-PCIE-40GB, 256 GB" for n in names],
        "emulator: SFNO 1.4 B parameters, 73 channels, 720x1440, batch 16",
    )
    loss = Curve(c, 0.6, 0.11, 700)
    for s in range(1, 2600):
        c.tick(10.3, 10.6)
        if s % 3 == 0:
            log.add(f"{c.t('%H:%M:%S')} iter {s:6d} l2 {loss(s):.5f} val - mem 37.1 GB io-wait {c.f(0, 0.4):.2f}s")
    con = c.file("console-compute-0-19.log")
    k = Kernel(c)
    con.add(chatter(c, k, 40, 40000))
    con.add(k("mce: [Hardware Error]: CPU 28: Machine Check Exception: 5 Bank 7: be00000001010091"), k("mce: [Hardware Error]: RIP !INEXACT! 33:<00007f1c08a2c1b0> "), k("mce: [Hardware Error]: TSC 2f4c1b9ad8bb1 ADDR 3e1f2a8c40 MISC 200000c020002086"),
            k("EDAC MC2: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x3e1f2a8 offset:0xc40 grain:32 - err_code:0x0101:0x0091)"), k("mce: [Hardware Error]: Machine check: Processor context corrupt"), k("Kernel panic - not syncing: Fatal machine check"), e="Machine Check Exception")  # fmt: skip
    for i, row in enumerate(con.rows):
        if "Kernel panic" in row or "EDAC MC2" in row:
            con.marked[i + 1] = row
    con.add(
        k(
            "Kernel Offset: 0x2c000000 from 0xffffffff81000000 (relocation range: 0xffffffff80000000-0xffffffffbfffffff)"
        ),
        k("Rebooting in 30 seconds.."),
    )
    c.tick(40)
    for r in (0, 1, 4, 5, 7, 12, 14):
        log.add(
            f"[{c.n(1600000000, 1670000000)}.{c.n(100000, 999999)}] [{names[r // 4]}:{c.n(2000, 90000)}:0]    ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
            f"[{names[r // 4]}:{c.n(2000, 90000)}:0]    ib_mlx5_log.c:177  RC QP 0x{c.hex(4)} wqe[{c.n(100, 900)}]: SEND --e [inl len 42] [rqpn 0x{c.hex(4)} dlid={c.n(10, 300)} sl=0 port=1 src_path_bits=0]",
        )
    c.tick(1800)
    log.add(
        weave(
            c.rng, [tt.watchdog(c, "1.13", r, 20799, "ALLREDUCE", limit=1800000) for r in range(16) if r // 4 != 2], 3
        )
    )
    log.add(
        "srun: error: Node failure on compute-0-19",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        *[f"srun: error: {n}: tasks {i * 4}-{i * 4 + 3}: Aborted (core dumped)" for i, n in enumerate(names) if i != 2],
        e="Node failure on",
    )


@case(
    "s059", "storage-error", "config-error", "fix-and-resubmit",
    source="after the report of an object store read that fails with 'destination of copy is too small' because the token had expired",
    why="One line above the copy error the store answered 400 with ExpiredToken; the error text did not fit the buffer and hides that. Credentials were issued for twelve hours, the run is 12 h 03 min old.",
    tags="misleading storage training", also="permission-error dataset-loading-error connection-error", also_cls="operator-action dependency-failure", nodes="", gpus=8, mention=["token|credential|expired"], must_not="host-out-of-memory runtime-error",
)  # fmt: skip
def s059(c: Case) -> None:
    c.start("2024-03-22 02:00:00")
    c.site, c.root = "/opt/ml/env/lib/python3.10/site-packages", "/opt/ml/code"
    log = c.file("algo-1-stdout.log")
    log.add(
        "INFO sagemaker-training-toolkit: session credentials for role ml-train valid until 2024-03-22T14:00:00Z",
        "INFO s3torchconnector 1.2.2, region us-east-2, part size 8388608",
    )
    loss = Curve(c, 3.0, 1.2, 900)
    s = 0
    while c.t("%H:%M") < "14:00":
        c.tick(59, 61)
        s += 20
        log.add(f"[{c.t()}] train step={s} loss={loss(s):.4f} images/s={c.jitter(1980, 0.02):.0f}")
    c.tick(190)
    log.add(
        f"[{c.t()}] [1] AWS_LS_S3_META_REQUEST aws_s3_request: id=0x7f{c.hex(10)} Incoming response status: 400 (Bad Request). x-amz-error-code: ExpiredToken",
        e=True,
    )
    log.add(
        f"[{c.t()}] [1] AWS_LS_HTTP_STREAM id=0x7f{c.hex(10)}: could not append to response body due to error 26 (Destination of copy is too small.)"
    )
    rows = [pre(f"[{r}] ", tb(c, """
        train.py:118 <module> | main()
        train.py:84 main | for images, labels in loader:
        $S/torch/utils/data/dataloader.py:631 __next__ | data = self._next_data()
        data.py:37 read_image | return Image.open(io.BytesIO(obj.read()))
        $S/s3torchconnector/s3reader.py:85 read | self._buffer.write(b"".join(self._stream))
        """, "s3torchconnectorclient._mountpoint_s3_client.S3Exception: Client error: Unknown CRT error: CRT error 26: aws-c-common: AWS_ERROR_DEST_COPY_TOO_SMALL, Destination of copy is too small.")) for r in c.rng.sample(range(8), 5)]  # fmt: skip
    log.add(weave(c.rng, rows, 7))
    log.add(
        "ERROR Reporting training FAILURE",
        "ERROR ExecuteUserScriptError:",
        "ExitCode 1",
        'ErrorMessage "s3torchconnectorclient._mountpoint_s3_client.S3Exception: Client error: Unknown CRT error: CRT error 26: aws-c-common: AWS_ERROR_DEST_COPY_TOO_SMALL, Destination of copy is too small."',
        "INFO Encountered exit_code 1",
    )


@case(
    "s060", "zero-division-error", "config-error", "fix-and-resubmit rollback-and-skip",
    source="after the report of a pre-training that dies with a division by zero because its loss scale was driven to zero by overflows",
    why="After step 1961 each update overflows and the loss scale halves until it prints 0.0; the unscale step then divides by it. The run diverged (learning rate 6e-3 at the end of the warm-up), Python's arithmetic is not at fault.",
    tags="misleading training multi-node slurm", also="loss-spike", also_cls="software-bug", nodes="", gpus=32, mention=["loss scale|overflow|diverg|scale"], must_not="nccl-remote-error",
)  # fmt: skip
def s060(c: Case) -> None:
    c.start("2020-06-22 09:35:44")
    c.site, c.root = "/opt/conda/lib/python3.6/site-packages", "/workspace/bert"
    log, names = c.file("bert_phase1.log"), hosts("dgx1-", 3, 4, 2)
    log.add(
        "Container nvidia build =  13409399 ",
        f"out dir is results/SQuAD, nodes {' '.join(names)}",
        "fp16 activated!",
        "Selected optimization level O2:  FP16 training with FP32 batchnorm and FP32 master weights.",
        "Defaults for this optimization level are:",
        "enabled                : True",
        "opt_level              : O2",
        "cast_model_type        : torch.float16",
        "loss_scale             : dynamic",
    )
    loss, scale = Curve(c, 11.2, 6.4, 500), 1048576.0
    for s in range(1, 1962, 2):
        c.tick(2.6, 2.8)
        log.add(
            f"DLL {c.t('%Y-%m-%d %H:%M:%S.%f')} - Training Epoch: 0 Training Iteration: {s}  average_loss : {loss(s):.6f}  step_loss : {loss(s):.6f}  learning_rate : {6e-3 * s / 2000:.10f} "
        )
        if s % 400 == 3:
            log.add(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}")
    c.tick(2)
    for i in range(48):
        scale = scale / 2 if i < 44 else scale * 2.0**-60
        c.tick(0.9)
        shown = 0.0 if i == 47 else scale
        log.add(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {shown}", e=i == 47)
        if i % 6 == 0:
            log.add(
                f"DLL {c.t('%Y-%m-%d %H:%M:%S.%f')} - Training Epoch: 0 Training Iteration: {1962 + i}  average_loss : nan  step_loss : nan  learning_rate : 0.0059000000 "
            )
    rows = [pre(f"{r}: ", tb(c, """
        run_pretraining.py:678 <module> | args, final_loss, train_time_raw, global_step = main()
        run_pretraining.py:609 main | scaled_loss.backward()
        /opt/conda/lib/python3.6/contextlib.py:88 __exit__ | next(self.gen)
        $S/apex/amp/handle.py:123 scale_loss | optimizer._post_amp_backward(loss_scaler)
        $S/apex/amp/scaler.py:194 unscale_with_stashed | 1./scale,
        """, "ZeroDivisionError: float division by zero")) for r in c.rng.sample(range(32), 32)]  # fmt: skip
    log.add(weave(c.rng, rows, 8), e="ZeroDivisionError")
    log.add(*[f"srun: error: {n}: tasks {i * 8}-{i * 8 + 7}: Exited with exit code 1" for i, n in enumerate(names)])
