"""s011 to s015."""

from __future__ import annotations

from synth import megatron as mg
from synth import nccl_text as nccl
from synth import torch_text as tt
from synth.frameworks import bar, config_json, maxtext_steps, warning
from synth.hosts_text import Kernel, chatter
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts, node_list


@case(
    "s011", "unknown", "unknown", "restart escalate fix-and-resubmit",
    source="a job of which the log keeps rank 0 only and the scheduler's lines: another rank ended with code 1 and its words are lost",
    why="Task 37 ended first with exit code 1, but the log holds the output of rank 0 only; nothing here says why. The file of rank 37 must be fetched.",
    tags="unknown slurm misleading multi-node", status="unknown hypothesis", nodes="", ranks="37", gpus=48, also="called-process-error", also_outcome="unknown",
    must_not="nccl-timeout cancelled node-failure connection-error nccl-remote-error",
)  # fmt: skip
def s011(c: Case) -> None:
    c.start("2022-12-08 19:07:55")
    c.site, c.root = "/projects/climax/env/lib/python3.8/site-packages", "/projects/climax/src"
    log, names = c.file("climax.o118204"), hosts("r", 310, 12)
    log.add(
        f"Running on {node_list(names)}",
        "+ srun --output=/scratch/climax/118204/rank%t.txt --label python -u train.py --config conf/cmip6_1.40625.yaml",
        "(rank 0 is followed by tail -F from here)",
    )
    log.add(
        "[INFO] world 48, per node 4",
        "[INFO] ClimaX 107.3 M parameters, patch 2, embed 1024, depth 8",
        "[INFO] reading normalize_mean.npz normalize_std.npz",
        warning(c, 6, "torch/optim/lr_scheduler.py"),
    )
    loss = Curve(c, 0.92, 0.21, 4000)
    for step in range(50, 12850, 50):
        c.tick(41, 44)
        log.add(
            f"[INFO] {c.t('%H:%M:%S')} ep {step // 3400} it {step % 3400:4d}/3400 w_mse {loss(step):.5f} lr {5e-4 * min(1, step / 5000):.6f} mem 34.1G data {c.f(0.01, 0.06):.2f}s"
        )
        if step % 3400 < 50 and step > 100:
            log.add(
                f"[INFO] validation w_rmse z500@72h {c.f(300, 420):.1f} t850@72h {c.f(2, 3):.2f} saved /scratch/climax/118204/ep{step // 3400 - 1}.pt"
            )
    c.tick(17)
    log.add("srun: error: r319: task 37: Exited with exit code 1", e=True)
    log.add(
        "srun: launch/slurm: _step_signal: Terminating StepId=118204.0",
        f"slurmstepd: error: *** STEP 118204.0 ON r310 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***",
    )
    log.add("[INFO] signal 15 received, leaving", "srun: error: r310: tasks 0-3: Terminated", "srun: error: r311: tasks 4-7: Terminated", "srun: error: r319: tasks 36,38-39: Terminated", "srun: error: r312: tasks 8-11: Terminated",
            *[f"srun: error: r{n}: tasks {(n - 310) * 4}-{(n - 310) * 4 + 3}: Terminated" for n in (315, 313, 314, 321, 316, 318, 320, 317)])  # fmt: skip


@case(
    "s012", "name-error", "dependency-failure", "fix-and-resubmit",
    source="after the report of an attention function that a guarded import silently failed to bring in",
    why="flash_attn 1.0.9 is installed and the code calls a function of version 2; the guarded import fails with a line of information, then all ranks stop on the undefined name.",
    tags="training cascade", also="version-mismatch import-error", also_cls="software-bug config-error", nodes="", gpus=8, mention=["flash"], must_not="out-of-memory",
)  # fmt: skip
def s012(c: Case) -> None:
    c.start("2023-09-15 04:22:18")
    c.site, c.root = "/data/conda/envs/oc/lib/python3.11/site-packages", "/data/openchat-ft"
    log = c.file("ft_mistral.log")
    log.add(
        mg.ds_start(
            c,
            ["node0"],
            8,
            "-m ochat.train",
            "--model_path imone/Mistral_7B_with_EOT_token --data_prefix data/sharegpt_clean",
        ),
        "[INFO] flash_attn 1.0.9, padding-free attention: unavailable, using fallback names",
    )
    log.add(
        config_json(
            "MistralConfig",
            {
                "hidden_act": "silu",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "max_position_embeddings": 32768,
                "num_attention_heads": 32,
                "num_hidden_layers": 32,
                "num_key_value_heads": 8,
                "rms_norm_eps": 1e-05,
                "rope_theta": 10000.0,
                "sliding_window": 4096,
                "torch_dtype": "bfloat16",
                "vocab_size": 32002,
            },
        )
    )
    log.add(*[f"Loading checkpoint shards: {bar(i, 2, 4.1)}" for i in range(3)], mg.ds_config(c, 2, 1, 1, 8))
    c.tick(40)
    log.add("Epoch 0:   0%|          | 0/2310 [00:00<?, ?it/s]")
    blocks = [tb(c, """
        <frozen runpy>:198 _run_module_as_main
        ochat/train.py:298 <module> | train()
        ochat/train.py:271 train | loss, acc = model_engine(**batch_tensor, **batch_info).loss
        $S/deepspeed/utils/nvtx.py:15 wrapped_fn | ret_val = func(*args, **kwargs)
        $S/deepspeed/runtime/engine.py:1769 forward | loss = self.module(*inputs, **kwargs)
        ochat/models/unpadded_mistral.py:355 forward | hidden_states = decoder_layer(
        ochat/models/unpadded_mistral.py:209 forward | hidden_states = self.self_attn(
        ochat/models/unpadded_mistral.py:157 forward | attn_output = flash_attn_varlen_func(
        """, "NameError: name 'flash_attn_varlen_func' is not defined") for _ in range(8)]  # fmt: skip
    log.add(weave(c.rng, blocks, 6), e="is not defined")
    c.tick(4)
    log.add(
        mg.ds_killed(
            c,
            c.pids(8, 41000),
            "['/data/conda/envs/oc/bin/python', '-u', '-m', 'ochat.train', '--local_rank=7', '--model_path', 'imone/Mistral_7B_with_EOT_token', '--data_prefix', 'data/sharegpt_clean']",
            1,
        )
    )


@case(
    "s013", "nvlink-error", "hardware-failure", "restart-excluding escalate",
    source="after the report of a JAX gang on racks of 72 GPUs that loses one rack to an NVLink fault while the other tasks print loud errors",
    why="Tasks 116 and 117, both on rack r12, report an uncorrectable NVLink error, and the kernel log of r12-t05 has the fatal Xid 149 with the link; the coordination errors of the other tasks follow.",
    tags="misleading cascade hardware multi-file kernel multi-node large", also="cuda-error", nodes="r12-t05", gpus=512, mention=["nvlink"],
    must_not="connection-error nccl-timeout hang node-failure",
)  # fmt: skip
def s013(c: Case) -> None:
    c.start("2025-07-19 02:11:36")
    c.site, c.root = "/opt/venv/lib/python3.12/site-packages", "/srv/levanter"
    names = [f"r{r:02d}-t{t:02d}" for r in range(5, 13) for t in range(1, 17)]
    log = c.file("gang.log")
    for i in range(0, 128, 3):
        log.add(f"{i}: {c.t('I%m%d %H:%M:%S.%f')} {c.n(20, 400)} distributed.py:117] Connecting to JAX distributed service on r05-t01:12321",
                f"{i}: {c.t('I%m%d %H:%M:%S.%f')} {c.n(20, 400)} xla_bridge.py:889] Unable to initialize backend 'rocm': module 'jaxlib.xla_extension' has no attribute 'GpuAllocatorConfig'")  # fmt: skip
    log.add(
        "0: mesh {'replica': 16, 'data': 32, 'model': 1} over 512 devices NVIDIA GB200",
        "0: model grug-moe 41.2e9 parameters, 6.1e9 active; optimizer muon; batch 4096 x 8192",
    )
    loss = Curve(c, 11.4, 1.95, 700, 0.004)
    log.add(pre("0: ", maxtext_steps(c, 0, 1130, sec=7.9, loss=loss, tflops=811.0, tokens=8300.0, weights=33554432)))
    k = Kernel(c, "r12-t05")
    dm = c.file("r12-t05.kern")
    dm.add(chatter(c, k, 60, 90000))
    dm.add(
        k(
            "NVRM: Xid (PCI:0009:01:00): 149, pid=2219345, name=python, NETIR_LINK_EVT Fatal XC0 i0 Link 14 (0x00000a06 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
            6,
        ),
        e=True,
    )
    dm.add(
        k(
            "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            5.9,
        )
    )
    for b in ("0008", "0009", "0018", "0019"):
        dm.add(
            k(
                f"NVRM: Xid ({'PCI:' + b}:01:00): 45, pid=2219345, name=python, channel 0x{c.hex(8)}, errorString CTX SWITCH TIMEOUT, Info 0x{c.hex(6)}",
                2,
            )
        )
    c.tick(3)
    err = "jax.errors.JaxRuntimeError: INTERNAL: Could not synchronize CUDA stream: CUDA_ERROR_NVLINK_UNCORRECTABLE: uncorrectable NVLink error detected during the execution"
    for i in (116, 117):
        log.add(pre(f"{i}: ", [f"{c.t('E%m%d %H:%M:%S.%f')} {c.n(200, 900)} pjrt_stream_executor_client.cc:3077] Execution of replica 0 failed: INTERNAL: CUDA error: Could not synchronize CUDA stream: CUDA_ERROR_NVLINK_UNCORRECTABLE: "
                                  "uncorrectable NVLink error detected during the execution", *tb(c, "main/train_lm.py:214 <module> | levanter.config.main(main)()\nlevanter/trainer.py:391 train_step | loss = jax.device_get(info.loss)\n"
                                  "$S/jax/_src/api.py:2954 device_get | return tree_map(_device_get, x)", err)]), e="NVLINK_UNCORRECTABLE")  # fmt: skip
    c.tick(2)
    streams = []
    for i in c.rng.sample([i for i in range(128) if i not in (116, 117)], 126):
        rows = [f"{c.t('E%m%d %H:%M:%S.%f')} {c.n(200, 900)} coordination_service_agent.cc:342] Polled an error from coordination service (this can be an error from this or another task).",
                f"{c.t('F%m%d %H:%M:%S.%f')} {c.n(200, 900)} client.h:80] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. "
                "Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output. absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):",
                "/job:jax_worker/replica:0/task:116", "/job:jax_worker/replica:0/task:117", "The tasks have crashed. Check the task logs for an earlier error, or scheduler events (e.g. preemption, eviction) to debug further.",
                "", "RPC: /tensorflow.CoordinationService/PollForError", "*** Check failure stack trace: ***", "Fatal Python error: Aborted", ""]  # fmt: skip
        rows += [f"    @     0x7f{c.hex(10)}  (unknown)" for _ in range(4)]
        streams.append(pre(f"{i}: ", rows))
    log.add(weave(c.rng, streams, 14))
    log.add(f"srun: error: {names[0]}: task 0: Aborted (core dumped)", "srun: error: r12-t05: task 116: Exited with exit code 1", "srun: error: r12-t06: task 117: Exited with exit code 1",
            *[f"srun: error: {names[i]}: task {i}: Aborted (core dumped)" for i in c.rng.sample([i for i in range(1, 128) if i not in (116, 117)], 50)])  # fmt: skip


@case(
    "s014", "host-out-of-memory", "resource-exhaustion", "fix-and-resubmit",
    source="after the report of a segmentation training whose memory grows with each epoch until the job's memory group is full",
    why="slurmstepd reports one oom-kill event and task 2 as Out Of Memory; host memory grew by epochs while device memory stayed flat. Leaked semaphores and killed workers follow.",
    tags="misleading slurm training", also="dataloader-killed", nodes="", ranks="2", gpus=4, mention=["memory"], must_not="out-of-memory native-crash cancelled",
)  # fmt: skip
def s014(c: Case) -> None:
    c.start("2022-03-17 23:50:31")
    c.site, c.root = "/mnt/lustre/wzw/anaconda3/envs/mmdet/lib/python3.7/site-packages", "/mnt/lustre/wzw/knet"
    log = c.file("knet_r50_fpn_ade.out")
    log.add(
        "phoenix-srun: Job 2914470 scheduled successfully!",
        "Current QUOTA_TYPE is [reserved], which means the job has occupied quota in RESERVED_TOTAL under your partition.",
        "phoenix-srun: job 2914470 with 4 tasks on SH-IDC1-10-5-36-91",
    )
    log.add(f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} - mmseg - INFO - Environment info:", "-" * 60, "sys.platform: linux", "Python: 3.7.10 (default, Feb 26 2021, 18:47:35) [GCC 7.3.0]", "CUDA available: True", "GPU 0,1,2,3: Tesla V100-SXM2-32GB",
            "PyTorch: 1.8.1", "MMCV: 1.3.15", "MMSegmentation: 0.20.2+", "-" * 60, f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} - mmseg - INFO - workflow: [('train', 1)], max: 80000 iters")  # fmt: skip
    loss = Curve(c, 4.1, 0.9, 3000)
    for it in range(50, 38900, 50):
        c.tick(40, 43)
        log.add(f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} - mmseg - INFO - Iter [{it}/80000]\tlr: {6e-5 * (1 - it / 80000):.3e}, eta: {int((80000 - it) * 0.83 // 3600)}:{c.n(10, 59)}:{c.n(10, 59)}, time: {c.jitter(0.83):.3f}, data_time: "
                f"{c.f(0.01, 0.09):.3f}, memory: 17724, decode.loss_rank: {c.f(0.1, 0.4):.4f}, decode.loss_ce: {loss(it):.4f}, aux.acc_seg: {c.f(60, 82):.4f}, loss: {loss(it) * 1.6:.4f}")  # fmt: skip
        if it % 8000 == 0:
            log.add(
                f"{c.t('%Y-%m-%d %H:%M:%S,%f3')} - mmseg - INFO - Saving checkpoint at {it} iterations",
                f"[mem watch] rss of rank 2 and its 4 workers: {21 + it / 1000 * 2.05:.1f} GB of 96.0 GB",
            )
    c.tick(60)
    inner = tb(c, "tools/train.py:166 <module> | main()\n$S/mmcv/runner/iter_based_runner.py:32 __next__ | data = next(self.iter_loader)\n$S/torch/utils/data/dataloader.py:1153 _get_data | success, data = self._try_get_data()\n"
               "$S/torch/utils/data/dataloader.py:990 _try_get_data | data = self._data_queue.get(timeout=timeout)\n$S/torch/utils/data/_utils/signal_handling.py:66 handler | _error_if_any_worker_fails()",
               "RuntimeError: DataLoader worker (pid 31772) is killed by signal: Killed. ")  # fmt: skip
    log.add(inner)
    log.add(
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=2914470.0 cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.",
        e=True,
    )
    log.add("srun: error: SH-IDC1-10-5-36-91: task 2: Out Of Memory", e=True)
    log.add(
        "srun: launch/slurm: _step_signal: Terminating StepId=2914470.0",
        f"slurmstepd: error: *** STEP 2914470.0 ON SH-IDC1-10-5-36-91 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} ***",
    )
    for _ in range(3):
        log.add(
            "/mnt/lustre/wzw/anaconda3/envs/mmdet/lib/python3.7/multiprocessing/semaphore_tracker.py:144: UserWarning: semaphore_tracker: There appear to be 56 leaked semaphores to clean up at shutdown",
            "  len(cache))",
        )
    log.add("srun: error: SH-IDC1-10-5-36-91: tasks 0-1,3: Terminated")


@case(
    "s015", "value-error", "config-error", "fix-and-resubmit",
    source="after the report of a training that stops in the last step of an epoch because the last batch holds one sample",
    why="Rank 0's last batch of epoch 0 has one sample and batch normalisation refuses it (6,913 samples dealt to 8 ranks without padding, 16 a batch, drop_last off); NCCL lines of other ranks come after it.",
    tags="training cascade misleading", also="runtime-error", also_cls="data-error software-bug", nodes="", ranks="0", gpus=8, mention=["batch"], must_not="nccl-remote-error nccl-timeout connection-error",
)  # fmt: skip
def s015(c: Case) -> None:
    c.start("2023-05-05 12:10:02")
    c.site, c.root = "/usr/local/lib/python3.8/site-packages", "/workspace/herb"
    log = c.file("herbarium_resnext.txt")
    log.add(
        tt.omp(c, "1.13"), nccl.init(c, ["b9c2f1e0aa17"], 8, "2.14.3", "11.7", net="Socket", channels=2, rings=False)
    )
    log.add(
        *pre(
            "[0] ",
            [
                "Namespace(arch='resnext101_64x4d', batch_size=16, drop_last=False, epochs=90, lr=0.1, sampler='strided', sync_bn=False, train='/data/herb22/train', workers=6)",
                "train: 6913 images of 331 classes (subset fungi), val: 1204 images",
            ],
        )
    )
    loss = Curve(c, 5.8, 1.1, 60)
    for it in range(0, 54):
        c.tick(1.2, 1.6)
        log.add(
            f"[0] Epoch: [0][{it:3d}/54]\tTime {c.f(1.1, 1.6):6.3f} ({1.35:6.3f})\tData {c.f(0, 0.4):6.3f}\tLoss {loss(it):.4e}\tAcc@1 {c.f(0, 30):6.2f}\tAcc@5 {c.f(8, 60):6.2f}"
        )
    c.tick(1)
    log.add(pre("[0] ", tb(c, """
        main.py:512 <module> | main()
        main.py:118 main | main_worker(args.gpu, ngpus_per_node, args)
        main.py:301 train | output = model(images)
        $S/torch/nn/parallel/distributed.py:1040 forward | output = self._run_ddp_forward(*inputs, **kwargs)
        herb/heads.py:41 forward | x = self.pool_bn(self.pool(x))
        $S/torch/nn/modules/batchnorm.py:171 forward | return F.batch_norm(
        $S/torch/nn/functional.py:2448 batch_norm | _verify_batch_size(input.size())
        $S/torch/nn/functional.py:2416 _verify_batch_size | raise ValueError("Expected more than 1 value per channel when training, got input size {}".format(size))
        """, "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 2048, 1, 1])")), e="got input size torch")  # fmt: skip
    c.tick(2)
    streams = [[f"b9c2f1e0aa17:{c.n(200, 300)}:{c.n(301, 900)} [{g}] NCCL INFO [Service thread] Connection closed by localRank 0", f"b9c2f1e0aa17:{c.n(200, 300)}:{c.n(301, 900)} [{g}] misc/socket.cc:523 NCCL WARN Net : Connection closed by remote peer b9c2f1e0aa17<{c.n(30000, 60000)}>",
                f"[{g}] RuntimeError: NCCL communicator was aborted on rank {g}.  Original reason for failure was: NCCL error: remote process exited or there was a network error, NCCL version 2.14.3"] for g in range(8) if g != 0]  # fmt: skip
    log.add(weave(c.rng, streams))
    pids = c.pids(8, 230)
    log.add(
        tt.sigterm(c, "1.13", [p for i, p in enumerate(pids) if i != 0]),
        tt.exits(c, "1.13", 1, 0, pids[0], "/usr/local/bin/python"),
        tt.child_failed(c, "main.py", "b9c2f1e0aa17", [(0, 0, 1, pids[0])]),
    )
