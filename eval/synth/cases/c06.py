"""s026 to s030."""

from __future__ import annotations

from synth import nccl_text as nccl
from synth.frameworks import titan_head, titan_steps
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import binds, head, hosts


@case(
    "s026", "connection-error", "config-error", "fix-and-resubmit",
    source="after the report of a multi-slice TPU job that drops with DEADLINE_EXCEEDED because its compilation outlasts the coordination time-out",
    why="The step function compiles for more than five minutes (log lines of the slow compile) while heartbeats are due every 100 s, so healthy tasks are declared dead before the first step.",
    tags="misleading training multi-node", also="hang runtime-error launch-failure", also_cls="software-bug", nodes="", gpus=64,
    mention=["compil"], must_not="node-failure network-error preempted",
)  # fmt: skip
def s026(c: Case) -> None:
    c.start("2025-06-02 14:00:58")
    c.site, c.root = "/usr/local/lib/python3.10/site-packages", "/deps/MaxText"
    log = c.file("maxtext-v5p-slice.log")
    for i in range(16):
        log.add(
            f"[worker-{i}] I{c.t('%m%d %H:%M:%S.%f')} {c.n(100, 900)} distributed.py:106] Starting JAX distributed service on [::]:8476"
            if i == 0
            else f"[worker-{i}] I{c.t('%m%d %H:%M:%S.%f')} {c.n(100, 900)} distributed.py:119] Connecting to JAX distributed service on t1v-n-5a-w-0:8476"
        )
    log.add(*pre("[worker-0] ", ["Updating keys from env and command line: ['run_name', 'steps', 'ici_fsdp_parallelism', 'dcn_data_parallelism']", "Config param adam_b1: 0.9", "Config param attention: flash", "Config param base_emb_dim: 8192", "Config param base_num_decoder_layers: 80",
                                 "Config param compile_topology: ", "Config param dcn_data_parallelism: 2", "Config param enable_checkpointing: True", "Config param ici_fsdp_parallelism: 32", "Config param jax_distributed_initialization_timeout: 300", "Config param model_name: llama3-70b",
                                 "Config param per_device_batch_size: 2.0", "Config param remat_policy: full", "Num_devices: 64, shape (2, 1, 1, 32, 1, 1, 1)", "Memstats: After params initialized:"]),
            *[f"[worker-0] \tUsing (GB) 13.21 / 95.74 ({13.8:.6f}%) on TPU_{d}(process=0,({d},0,0,0))" for d in range(4)])  # fmt: skip
    c.tick(25)
    for k in range(2):
        log.add(
            *[
                f"[worker-{i}] {c.t('%Y-%m-%d %H:%M:%S.%f')}: E external/xla/xla/service/slow_operation_alarm.cc:73] Very slow compile? If you want to file a bug, run with envvar XLA_FLAGS=--xla_dump_to=/tmp/foo and attach the results."
                for i in range(0, 16, 3)
            ],
            e=k == 0,
        )
        c.tick(100)
    c.tick(127)
    log.add(
        *[
            f"[worker-{i}] Compiled module jit_train_step.{c.n(1, 9)} in {c.f(321, 328):.1f} s on this host; waiting for the others"
            for i in (3, 7, 11)
        ],
        e=True,
    )
    gone = (2, 5, 9, 14)
    log.add(*[f"[worker-0] E{c.t('%m%d %H:%M:%S.%f')} {c.n(100, 900)} coordination_service.cc:1170] /job:jax_worker/replica:0/task:{i} has been set to ERROR in coordination service: DEADLINE_EXCEEDED: Task /job:jax_worker/replica:0/task:{i} heartbeat timeout. "
              "This indicates that the remote task has failed, got preempted, or crashed unexpectedly. Check the task logs for an earlier error to debug further. [type.googleapis.com/tensorflow.CoordinationServiceError='']" for i in gone], e=True)  # fmt: skip
    streams = [pre(f"[worker-{i}] ", [f"E{c.t('%m%d %H:%M:%S.%f')} {c.n(100, 900)} coordination_service_agent.cc:332] Polled an error from coordination service (this can be an error from this or another task).",
                                     f"F{c.t('%m%d %H:%M:%S.%f')} {c.n(100, 900)} client.h:77] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details.",
                                     "Fatal Python error: Aborted", "", f'Thread 0x00007f{c.hex(10)} (most recent call first):', f'  File "{c.site}/jax/_src/compiler.py", line 272 in backend_compile', f'  File "{c.root}/train.py", line 806 in train_loop']) for i in range(16)]  # fmt: skip
    log.add(weave(c.rng, streams, 7), *[f"EXIT_CODE=134 worker-{i}" for i in range(16)])


@case(
    "s027", "version-mismatch", "dependency-failure", "fix-and-resubmit",
    source="after the report of an attention extension built for another version of PyTorch",
    why="flash_attn's binary asks for a c10 symbol that the installed torch 2.7 does not have; it was built for another torch. The launcher's summary and the rendezvous warnings say nothing.",
    tags="training slurm cascade", also="import-error", also_cls="config-error", nodes="", gpus=16, mention=["flash|symbol"], must_not="connection-error",
)  # fmt: skip
def s027(c: Case) -> None:
    c.start("2025-08-19 07:51:00")
    c.site, c.root = "/opt/te/lib/python3.12/site-packages", "/mnt/vast/nemo-run"
    names = hosts("h200-", 71, 2, 3)
    log = c.file("sbatch_nemo_57733.out")
    log.add(head(c, 57733, names, 8, "acct_llm-nemotron8b", "batch", "04:00:00"), binds(c, names, 8))
    notes = ["[NeMo W 2025-08-19 07:51:44 nemo_logging:361] /opt/te/lib/python3.12/site-packages/pydub/utils.py:170: RuntimeWarning: Couldn't find ffmpeg or avconv - defaulting to ffmpeg, but may not work",
             '      warn("Couldn\'t find ffmpeg or avconv - defaulting to ffmpeg, but may not work", RuntimeWarning)', "    "]  # fmt: skip
    rows = []
    for r in c.rng.sample(range(16), 16):
        rows.append(pre(f"{r}: ", [*notes, *tb(c, """
            run.py:7 <module> | from nemo.collections import llm
            $S/nemo/collections/llm/__init__.py:21 <module> | from nemo.collections.llm import peft, tokenizer
            $S/megatron/core/extensions/transformer_engine.py:10 <module> | import transformer_engine as te
            $S/transformer_engine/pytorch/attention/dot_product_attention/utils.py:58 <module> | from flash_attn.flash_attn_interface import flash_attn_func
            $S/flash_attn/flash_attn_interface.py:15 <module> | import flash_attn_2_cuda as flash_attn_gpu
            """, "ImportError: /opt/te/lib/python3.12/site-packages/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib")]))  # fmt: skip
    log.add(weave(c.rng, rows, 9), e="undefined symbol")
    log.add(
        "srun: error: h200-071: tasks 0-7: Exited with exit code 1",
        "srun: error: h200-072: tasks 8-15: Exited with exit code 1",
    )


@case(
    "s028", "storage-error", "dependency-failure", "escalate kill-and-restart",
    source="a training that stands still without an error because one rank sleeps in an NFS write while the others spin in a collective",
    why="No error in the job log; ps shows rank 9's process in state D in the NFS write path, its kernel log says that the server does not respond since 02:47, which is when the last iteration was printed.",
    tags="hang storage kernel multi-file multi-node", outcome="hung", also="hang", also_outcome="failed", nodes="th-n02", ranks="9", gpus=16, mention=["nfs"],
    must_not="nccl-timeout network-error collective-mismatch gpu-lost",
)  # fmt: skip
def s028(c: Case) -> None:
    c.start("2023-04-14 19:33:09")
    log = c.file("nemo_asr.log")
    names = ["th-n01", "th-n02"]
    log.add(
        nccl.init(c, names, 8, "2.16.2", "11.8", channels=2, rings=False),
        f"[NeMo I {c.t()} exp_manager:376] Experiments will be logged at /nfs/asr/exp/conformer_ctc_l_bpe",
    )
    loss = Curve(c, 300, 14, 400)
    step = 0
    while c.t("%Y-%m-%d %H:%M") < "2023-04-15 02:47":
        c.tick(57, 60)
        step += 50
        log.add(f"[NeMo I {c.t()} wer:267] reference:the weather in the valley had changed {c.n(1, 99)} times", f"[NeMo I {c.t()} wer:268] predicted:the wether in the valley had changed {c.n(1, 99)} times",
                f"Epoch {step // 4000}, step {step}: train_loss={loss(step):.3f}, lr={1.2e-3:.2e}, training_batch_wer={c.f(0.05, 0.2):.3f}, 1.16 s/step")  # fmt: skip
    log.marked[len(log.rows)] = log.rows[-1]
    c.start("2023-04-15 08:20:30")
    ps = c.file("collected/ps.txt")
    for n, name in enumerate(names):
        ps.add(f"### {name}: ps -eo pid,stat,wchan:32,etime,args | grep train_asr")
        for r in range(8):
            g = n * 8 + r
            ps.add(
                f"{41200 + r:7d} {'Dl  ' if g == 9 else 'Rl  '} {'nfs_wait_on_request' if g == 9 else '-':<32} 12:47:{c.n(10, 21)} python train_asr.py rank={g} --config-name conformer_ctc_bpe",
                e=g == 9,
            )
    st = c.file("collected/nvidia-smi.txt")
    for n, name in enumerate(names):
        st.add(
            f"### {name}: nvidia-smi --query-gpu=index,utilization.gpu,power.draw,memory.used --format=csv,noheader",
            *[
                f"{g}, {0 if n * 8 + g == 9 else 100} %, {c.f(70, 72) if n * 8 + g == 9 else c.f(104, 118):.2f} W, {c.n(61000, 66000)} MiB"
                for g in range(8)
            ],
        )
    dm = c.file("collected/th-n02.kmsg")
    k = Kernel(c, up=8000000)
    dm.add(chatter(c, k, 50, 700000))
    gap = 20008.0
    dm.add(k("nfs: server filer03 not responding, still trying", gap), e=True)
    for i in range(4):
        dm.add(k(f"INFO: task python:41201 blocked for more than {120 * (i + 1)} seconds.", gap - 130 * (i + 1)), k("      Tainted: P           OE     5.15.0-67-generic #74-Ubuntu", gap - 130 * (i + 1)),
               k("task:python          state:D stack:    0 pid:41201 ppid: 41188 flags:0x00000000", gap - 130 * (i + 1)), *[k(f" {f}", gap - 130 * (i + 1)) for f in ("Call Trace:", "<TASK>", "__schedule+0x24e/0x590", "io_schedule+0x46/0x80",
               "nfs_wait_on_request+0x45/0x60 [nfs]", "nfs_updatepage+0x1a2/0x900 [nfs]", "nfs_write_end+0x138/0x480 [nfs]", "generic_perform_write+0x1ad/0x200", "nfs_file_write+0x1a4/0x2b0 [nfs]", "vfs_write+0x1d5/0x270", "</TASK>")], e="blocked for more than 120" if i == 0 else False)  # fmt: skip
    dm.add(k("nfs: server filer03 not responding, still trying", 9000))
    dm1 = c.file("collected/th-n01.kmsg")
    dm1.add(chatter(c, Kernel(c, up=8000000), 50, 700000))


@case(
    "s029", "gpu-lost", "hardware-failure", "restart-excluding escalate",
    source="after the report of a stress run that ends with an unknown CUDA error while the kernel log shows the card leaving the PCIe bus; corrected link errors came first",
    why="On mi4g-33 the PCIe root port logs corrected errors, then Surprise Down, then Xid 79 for 0000:41:00; the unknown CUDA error on rank 21 and the socket errors of the rest follow within two seconds.",
    tags="misleading cascade hardware kernel multi-file multi-node", also="node-failure cuda-error", nodes="mi4g-33", ranks="21", gpus=24, mention=["bus|xid 79|pcie"],
    must_not="nccl-remote-error network-error connection-error",
)  # fmt: skip
def s029(c: Case) -> None:
    c.start("2024-06-25 05:05:44")
    c.site, c.root = "/opt/titan/lib/python3.11/site-packages", "/opt/titan/repo"
    names = ["mi4g-30", "mi4g-31", "mi4g-33"]
    log = c.file("out.0")
    log.add(titan_head(c, "./cfg/dna_hyena_7b.toml", "1-D device mesh with ['dp_shard'], [24]", "6,482,018,304"))
    log.add(titan_steps(c, 1, 3201, sec=6.6, loss=Curve(c, 1.39, 1.02, 300, 0.003)))
    k = Kernel(c, "mi4g-33")
    dm = c.file("mi4g-33.journal")
    dm.add(chatter(c, k, 70, 900000))
    for i in range(7):
        ago = 102 - i * 12
        dm.add(
            k("pcieport 0000:40:01.1: AER: Corrected error received: 0000:40:01.1", ago),
            k("pcieport 0000:40:01.1: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)", ago),
            k("pcieport 0000:40:01.1:   device [1022:1483] error status/mask=00001000/00006000", ago),
            k("pcieport 0000:40:01.1:    [12] Timeout", ago),
            e=i == 0,
        )
    dm.add(k("pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: 0000:40:01.1", 2), k("pcieport 0000:40:01.1: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)", 2), k("pcieport 0000:40:01.1:    [ 5] SDES                   (First)", 2),
           k("NVRM: GPU at PCI:0000:41:00: GPU-0b7d2f7c-0d15-9f41-7a3c-5d0c86b1f22e", 1.8), k("NVRM: GPU Board Serial Number: 1653223041187", 1.8), k("NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 1.8),
           k("NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.", 1.8), k("NVRM: GPU 0000:41:00.0: GPU serial number is 1653223041187.", 1.8), k("NVRM: A GPU crash dump has been created. If possible, please run", 1.7), k("NVRM: nvidia-bug-report.sh as root to collect this data before", 1.7), k("NVRM: the NVIDIA kernel module is unloaded.", 1.7), e=True)  # fmt: skip
    for i in range(8):
        dm.add(
            k(
                "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
                -1 - i * 0.01,
            )
        )
    log.add(pre("[rank21]: ", tb(c, "train.py:401 <module> | main(config)\ntrain.py:333 main | loss.backward()\n$S/torch/_tensor.py:521 backward | torch.autograd.backward(", ["RuntimeError: CUDA error: unknown error", "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."])), e="unknown error")  # fmt: skip
    c.tick(2)
    rows = []
    for r in c.rng.sample([r for r in range(24) if r != 21], 23):
        rows.append([f"{names[r // 8]}:{c.n(3000, 9000)}:{c.n(9001, 12000)} [{r % 8}] include/socket.h:{c.n(400, 600)} NCCL WARN Net : Call to recv from 10.8.0.33<{c.n(30000, 60000)}> failed : Connection reset by peer",
                     *pre(f"[rank{r}]: ", ["torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.20.5",
                     "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "Last error:", f"socketProgressOpt: Call to recv from 10.8.0.33<{c.n(30000, 60000)}> failed : Connection reset by peer"])])  # fmt: skip
    log.add(weave(c.rng, rows, 5))


@case(
    "s030", "network-error", "software-bug", "fix-and-resubmit",
    source="after the report of a communication library whose own flush write lacks a permission, so that each NIC reports a fatal queue-pair event in any run over two nodes",
    why="All sixteen NICs of both nodes report the same fatal queue-pair event in the first seconds of the first collective: not a cable or a card, but what is common to all, the library (a development build of RCCL).",
    tags="misleading network multi-node", also="nccl-remote-error version-mismatch", also_cls="dependency-failure config-error", nodes="", gpus=16, mention=["all|every|each|library|rccl"], must_not="node-failure gpu-lost",
)  # fmt: skip
def s030(c: Case) -> None:
    c.start("2026-01-22 16:16:40")
    log = c.file("rccl-run.txt")
    names = ["smci355-r1-n3", "smci355-r1-n4"]
    log.add("$ mpirun -np 16 -N 8 --bind-to numa -x NCCL_DEBUG=INFO -x NCCL_IB_GID_INDEX=3 ./build/train_step --layers 24 --warmup 3", "RCCL version : 2.28.3-develop:7d1c0be", "HIP version  : 7.0.51831-a3e329ad8", "ROCm version : 7.0.2.0-56-9428210", "Hostname     : smci355-r1-n3",
            "Librccl path : /opt/rccl-develop/lib/librccl.so.1")  # fmt: skip
    info = []
    for r in range(16):
        h = f"{names[r // 8]}:{8100 + r}:{8100 + r} [{r % 8}] NCCL INFO "
        info.append([h + "NET/Plugin: Could not find: librccl-net.so", h + "NET/IB : Using " + " ".join(f"[{i}]bnxt_re{i}:1/RoCE" for i in range(8)) + " [RO]; OOB eno0:10.11.3." + str(3 + r // 8) + "<0>", h + "Kernel version: 6.8.0-60-generic", h + f"Channel 00/0 : {r}[{r % 8}] -> {(r + 1) % 16}[{(r + 1) % 8}] via P2P/IPC",
                     h + "Connected all rings, use ring PXN 0 GDR 1", h + f"ncclCommInitRank comm 0x{c.hex(12)} rank {r} nranks 16 cudaDev {r % 8} busId {nccl.BUS[r % 8]} commId 0x{c.hex(16)} - Init COMPLETE"])  # fmt: skip
    log.add(weave(c.rng, info, 3))
    c.tick(4)
    log.add("step 0 forward ok (random weights), calling first gradient all-reduce of 1.61 GB")
    rows = [
        [
            f"{names[r // 8]}:{8100 + r}:{9100 + r} [{r % 8}] transport/net_ib.cc:{c.n(120, 140)} NCCL WARN NET/IB : bnxt_re{r % 8}:1 async fatal event on QP: invalid request local work queue error"
        ]
        for r in range(16)
    ]
    log.add(weave(c.rng, rows), e=True)
    more = [[f"{names[r // 8]}:{8100 + r}:{9100 + r} [{r % 8}] transport/net_ib.cc:2291 NCCL WARN NET/IB: Got completion from peer 10.11.3.{4 - r // 8}<{c.n(30000, 60000)}> with status=IBV_WC_REM_INV_REQ_ERR(9) opcode=IBV_WC_RECV(128) reqSize=0 vendor_err=65535 (Recv) localGid ::ffff:10.11.3.{3 + r // 8} "
             f"remoteGids::ffff:10.11.3.{4 - r // 8} hca bnxt_re{r % 8}", f"{names[r // 8]}:{8100 + r}:{9100 + r} [{r % 8}] NCCL INFO transport/net.cc:1428 -> 6", f"{names[r // 8]}: Test NCCL failure train_step.cpp:212 'remote process exited or there was a network error / '"] for r in range(16)]  # fmt: skip
    log.add(weave(c.rng, more, 2), "-" * 74, "Primary job  terminated normally, but 1 process returned", "a non-zero exit code. Per user-direction, the job has been aborted.", "-" * 74,
            "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[42711,1],6]\n  Exit code:    3")  # fmt: skip
