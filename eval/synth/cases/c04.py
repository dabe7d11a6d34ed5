"""s016 to s020."""

from __future__ import annotations

from synth import megatron as mg
from synth import torch_text as tt
from synth.frameworks import WARNINGS, bar, config_json, hf_steps
from synth.hosts_text import describe, events, smi, table
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts, node_list, sacct


@case(
    "s016", "node-failure", "hardware-failure", "restart-excluding escalate",
    source="a job whose controller loses one node; the job log shows only sockets and sequence numbers, slurmctld's log shows the node",
    why="slurmctld sets c0417 down (not responding) and it comes back with a new boot time; the job log's watchdog and socket errors on the other nodes follow from that.",
    tags="misleading cascade scheduler slurm multi-file multi-node", nodes="c0417", gpus=96, also_cls="unknown", mention=["c0417"],
    must_not="nccl-timeout nccl-remote-error network-error cancelled",
    scheduler={"JobID": "990413", "State": "NODE_FAIL", "NodeList": "c[0409-0432]"},
)  # fmt: skip
def s016(c: Case) -> None:
    c.start("2024-05-27 08:18:20")
    c.site = "/opt/conda/lib/python3.10/site-packages"
    log, ctl, names = c.file("job.990413.out"), c.file("slurmctld.log"), hosts("c", 409, 24, 4)
    ctl.add(
        f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] sched: Allocate JobId=990413 NodeList={node_list(names)} #CPUs=1536 Partition=a100"
    )
    log.add(
        f"{c.t()} gang of 24 x 4 ready: {node_list(names)}",
        *[
            f"{c.t()} [Gloo] Rank {r} is connected to 95 peer ranks. Expected number of connected peer ranks is : 95"
            for r in c.rng.sample(range(96), 96)
        ],
    )
    loss = Curve(c, 10.9, 2.6, 600)
    for step in range(20, 9000, 20):
        c.tick(58, 61)
        log.add(
            f"{c.t()} | step {step:6d} | ce {loss(step):.4f} | z {c.f(0.001, 0.009):.4f} | gnorm {c.jitter(0.31, 0.1):.3f} | {c.jitter(2.94, 0.01):.2f} s/it | moe drop {c.f(0.1, 1.1):.2f}%"
        )
        if c.rng.random() < 0.3:
            other, node = c.n(985000, 990400), c.n(100, 900)
            ctl.add(c.rng.choice([
                f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] _job_complete: JobId={other} WEXITSTATUS {c.n(0, 1)}", f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] _job_complete: JobId={other} done",
                f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] _slurm_rpc_submit_batch_job: JobId={990413 + step // 20} InitPrio={c.n(100, 90000)} usec={c.n(300, 4000)}",
                f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] sched: Allocate JobId={other} NodeList=c{node:04d} #CPUs=16 Partition=short",
                f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] error: Nodes c{node:04d} not responding", f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] Node c{node:04d} now responding"]))  # fmt: skip
    c.tick(170)
    ctl.add(f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] error: Nodes c0417 not responding", e=True)
    for k, name in enumerate(n for n in names if n != "c0417"):
        for g in range(4) if k % 5 == 0 else [k % 4]:
            log.add(
                f"{name}: [rank{names.index(name) * 4 + g}]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank {names.index(name) * 4 + g}] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()={c.n(1, 4)}"
            )
    c.tick(128)
    log.add(
        weave(
            c.rng,
            [
                tt.watchdog(
                    c, "2.3", r, 88213, "ALLTOALL_BASE", numel=(25165824, 25165824), limit=300000, last=(88214, 88212)
                )
                for r in c.rng.sample([r for r in range(96) if not 32 <= r < 36], 18)
            ],
            6,
        )
    )
    c.tick(5)
    ctl.add(
        f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] error: Nodes c0417 not responding, setting DOWN",
        f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] Killing JobId=990413 on failed node c0417",
        e=True,
    )
    log.add("srun: error: Node failure on c0417", e=True)
    log.add(
        f"slurmstepd: error: *** STEP 990413.0 ON c0409 CANCELLED AT {c.t('%Y-%m-%dT%H:%M:%S')} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        e=True,
    )
    log.add(
        "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.",
        *[f"srun: error: {n}: task {i}: Killed" for i, n in enumerate(names) if n != "c0417"],
    )
    c.tick(430)
    ctl.add(
        f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] validate_node_specs: Node c0417 unexpectedly rebooted boot_time={int(c.now.timestamp()) - 400} last response={int(c.now.timestamp()) - 800}",
        e=True,
    )
    ctl.add(f"[{c.t('%Y-%m-%dT%H:%M:%S.%f3')}] _job_complete: JobId=991020 done")


@case(
    "s017", "launch-failure", "dependency-failure", "fix-and-resubmit wait",
    source="after the report of training pods that cannot pull their image because the registry limits the rate of pulls",
    why="The registry answers 429 (pull rate limit) for one of four workers; back-off and the launcher's look-up of that worker are consequences, the image exists (three pods run it).",
    tags="kubernetes scheduler multi-file misleading", also="connection-error", also_cls="config-error network-failure", nodes="", gpus=32, mention=["rate|toomanyrequests|429"], must_not="permission-error file-not-found node-failure",
)  # fmt: skip
def s017(c: Case) -> None:
    c.start("2023-10-10 05:33:48")
    get = c.file("get-pods.txt")
    get.add("$ kubectl -n speech get pods -l training.kubeflow.org/job-name=wav2vec-xls -o wide", table([
        "NAME|READY|STATUS|RESTARTS|AGE|IP|NODE|NOMINATED NODE", "wav2vec-xls-launcher|0/1|Error|3|26m|10.244.7.19|ip-10-2-9-4|<none>", "wav2vec-xls-worker-0|1/1|Running|0|26m|10.244.3.8|ip-10-2-31-77|<none>",
        "wav2vec-xls-worker-1|1/1|Running|0|26m|10.244.12.2|ip-10-2-18-201|<none>", "wav2vec-xls-worker-2|0/1|ImagePullBackOff|0|26m|10.244.5.41|ip-10-2-40-12|<none>", "wav2vec-xls-worker-3|1/1|Running|0|26m|10.244.9.90|ip-10-2-22-150|<none>"]))  # fmt: skip
    lg = c.file("launcher.log")
    lg.add("++ /opt/kube/kubectl exec wav2vec-xls-worker-0 -- /bin/sh -c true")
    for k in range(60):
        c.tick(9, 11)
        lg.add(
            f"{c.t()} waiting for workers: 3 of 4 reachable",
            *(
                ["Error from server (BadRequest): pod wav2vec-xls-worker-2 does not have a host assigned"]
                if k < 2
                else ['error: unable to upgrade connection: container not found ("pytorch")']
            ),
        )
    lg.add("-" * 74, "An ORTE daemon has unexpectedly failed after launch and before", "communicating back to mpirun. This could be caused by a number", "of factors, including an inability to create a connection back",
           "to mpirun due to a lack of common network interfaces and/or no", "route found between them. Please check network connectivity", "(including firewalls and network routing requirements).", "-" * 74)  # fmt: skip
    d = c.file("describe-worker-2.txt")
    image = "images.example/speechlab/wav2vec-train:0.12.3-cu118"
    d.add(describe(c, "wav2vec-xls-worker-2", ns="speech", node="ip-10-2-40-12/10.2.40.12", ip="10.244.5.41", labels=["training.kubeflow.org/job-name=wav2vec-xls", "training.kubeflow.org/replica-index=2", "training.kubeflow.org/replica-type=worker"],
                   status="Pending", container=["State:          Waiting", "  Reason:       ImagePullBackOff", "Ready:          False", "Restart Count:  0", "Limits:", "  nvidia.com/gpu:  8"], requests=["nvidia.com/gpu:  8", "memory:  900Gi"], image=image))  # fmt: skip
    d.add(events(["Normal|Scheduled|26m|default-scheduler|Successfully assigned speech/wav2vec-xls-worker-2 to ip-10-2-40-12",
                  f'Warning|Failed|25m|kubelet|Failed to pull image "{image}": rpc error: code = Unknown desc = failed to pull and unpack image "{image}": failed to copy: httpReadSeeker: failed open: unexpected status code '
                  f"https://registry-1.images.example/v2/speechlab/wav2vec-train/manifests/sha256:{c.hex(64)}: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit",
                  "Warning|Failed|24m (x4 over 25m)|kubelet|Error: ErrImagePull", f'Normal|Pulling|23m (x4 over 26m)|kubelet|Pulling image "{image}"', f'Normal|BackOff|84s (x102 over 25m)|kubelet|Back-off pulling image "{image}"',
                  "Warning|Failed|71s (x103 over 25m)|kubelet|Error: ImagePullBackOff", "Normal|SandboxChanged|66s|kubelet|Pod sandbox changed, it will be killed and re-created."]), e="toomanyrequests")  # fmt: skip


@case(
    "s018", "assertion-error", "data-error", "fix-and-resubmit",
    source="after the report of a multimodal training that seems to hang in a collective while one rank had hit a device-side assertion",
    why="Rank 4's index kernel asserts (prompts longer than 2048 tokens after the image tokens are expanded); the other ranks wait in the all-gather and time out half an hour later.",
    tags="misleading cascade training", also="index-error cuda-error", also_cls="software-bug config-error", nodes="", ranks="4", gpus=8, mention=["index|length|2048|bounds"], must_not="nccl-timeout hang network-error",
)  # fmt: skip
def s018(c: Case) -> None:
    c.start("2024-01-27 18:55:10")
    c.site, c.root = "/home/user/anaconda3/envs/llava/lib/python3.10/site-packages", "/home/user/LLaVA-Med"
    log = c.file("finetune_lora.log")
    log.add(
        mg.ds_start(
            c,
            ["localhost"],
            8,
            "llava/train/train_mem.py",
            "--deepspeed ./scripts/zero3.json --model_name_or_path lmsys/vicuna-13b-v1.5 --image_aspect_ratio pad --group_by_modality_length True",
        )
    )
    log.add("You are using a model of type llama to instantiate a model of type llava. This is not supported for all configurations of models and can yield errors.", config_json("LlavaConfig", {"hidden_size": 5120, "max_position_embeddings": 4096, "max_sequence_length": 2048, "mm_hidden_size": 1024, "mm_projector_type": "mlp2x_gelu", "num_hidden_layers": 40}),
            *[f"Loading checkpoint shards: {bar(i, 3, 12.2)}" for i in range(4)], "Formatting inputs...Skip in lazy mode", "Parameter Offload: Total persistent parameters: 730112 in 321 params")  # fmt: skip
    loss = Curve(c, 1.9, 0.7, 80)
    log.add(hf_steps(c, 1, 688, total=5194, per_epoch=5194, sec=7.4, loss=loss, every=1))
    log.add(
        "Token indices sequence length is longer than the specified maximum sequence length for this model (2391 > 2048). Running this sequence through the model will result in indexing errors"
    )
    c.tick(3)
    for k in range(56):
        log.add(
            f'../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [{c.n(30, 60)},0,0], thread: [{(70 + k) % 128},0,0] Assertion `index >= -sizes[i] && index < sizes[i] && "index out of bounds"` failed.',
            e=k < 3,
        )
    log.add(tb(c, """
        llava/train/train_mem.py:13 <module> | train()
        llava/train/train.py:968 train | trainer.train()
        $S/transformers/trainer.py:1869 _inner_training_loop | tr_loss_step = self.training_step(model, inputs)
        llava/model/language_model/llava_llama.py:78 forward | input_ids, attention_mask, past_key_values, inputs_embeds, labels = self.prepare_inputs_labels_for_multimodal(
        llava/model/llava_arch.py:201 prepare_inputs_labels_for_multimodal | cur_new_embed = cur_new_embed[position_ids[i]]
        """, ["RuntimeError: CUDA error: device-side assert triggered", "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
              "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.", ""]), e="device-side assert triggered")  # fmt: skip
    log.add(f"[{c.t('%Y-%m-%d %H:%M:%S,%f3')}] rank 4: waiting for wandb to finish uploading (3 of 4 files)")
    c.tick(1801)
    log.add(
        weave(
            c.rng,
            [
                tt.watchdog(c, "2.1", r, 1203377, "_ALLGATHER_BASE", numel=(3276800, 26214400), limit=1800000)
                for r in range(8)
                if r != 4
            ],
            3,
        )
    )
    c.tick(4)
    log.add(
        mg.ds_killed(
            c,
            c.pids(8, 1290000),
            "['/home/user/anaconda3/envs/llava/bin/python', '-u', 'llava/train/train_mem.py', '--local_rank=7', '--deepspeed', './scripts/zero3.json']",
            -6,
        )
    )


@case(
    "s019", "out-of-memory", "dependency-failure", "escalate restart-excluding",
    source="after the report of a node where each job fails to allocate because a process of somebody's earlier job still holds the device memory",
    why="On gpu07 device 2 was nearly full before the job began: PID 48113 of an earlier job holds 71 GB (nvidia-smi of the prolog, and the 'Process 48113' of the error); the model needs 21 GB.",
    tags="misleading slurm hardware", also_cls="operator-action resource-exhaustion", nodes="gpu07", ranks="2", gpus=4, mention=["48113|process"], must_not="cuda-error",
)  # fmt: skip
def s019(c: Case) -> None:
    c.start("2024-12-02 14:22:05")
    c.site, c.root = "/home/nchen/venvs/esm/lib/python3.12/site-packages", "/home/nchen/esm3-ft"
    log = c.file("esm3-ft.3318.err")
    log.add(
        "== prolog on gpu07 ==",
        smi(
            c,
            "NVIDIA A100-SXM4-80GB",
            [
                (0, "00000000:07:00.0", 31, 62, 4, 0),
                (1, "00000000:0F:00.0", 30, 61, 4, 0),
                (2, "00000000:47:00.0", 34, 88, 73011, 0),
                (3, "00000000:4E:00.0", 31, 63, 4, 0),
            ],
            [(2, 48113, "python", 72994)],
        ),
        e="48113",
    )
    log.add("== end of prolog ==", tt.omp(c, "2.5"))
    for r in range(4):
        log.add(
            f"[rank{r}] {c.site}/torch/nn/modules/transformer.py:{c.n(300, 400)}: {WARNINGS[2]}", "  warnings.warn("
        )
    log.add(
        "[rank0] esm3_sm_open_v1 1.4 B parameters, LoRA r=16 on 192 matrices, batch 8 x 512, expected device memory 21 GB"
    )
    c.tick(31)
    bad = tb(c, """
        ft.py:144 <module> | main()
        ft.py:97 main | model = ESM3.from_pretrained("esm3_sm_open_v1", device=device)
        $S/esm/models/esm3.py:253 from_pretrained | model = load_local_model(model_name, device=device)
        $S/torch/nn/modules/module.py:1340 to | return self._apply(convert)
        $S/torch/nn/modules/module.py:1326 convert | return t.to(
        """, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.00 MiB. GPU 2 has a total capacity of 79.25 GiB of which 17.44 MiB is free. Process 48113 has 71.28 GiB memory in use. Including non-PyTorch memory, this process has 7.93 GiB memory in use. "
             "Of the allocated memory 7.42 GiB is allocated by PyTorch, and 21.20 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
             "Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")  # fmt: skip
    log.add(pre("[rank2]: ", bad), e="Process 48113")
    pids = c.pids(4, 51000)
    log.add(
        tt.sigterm(c, "2.5", [pids[0], pids[1], pids[3]]),
        tt.exits(c, "2.5", 1, 2, pids[2], "/home/nchen/venvs/esm/bin/python3"),
        tt.child_failed(c, "ft.py", "gpu07", [(2, 2, 1, pids[2])]),
    )
    log.add("srun: error: gpu07: task 0: Exited with exit code 1")


@case(
    "s020", "time-limit", "operator-action", "restart",
    source="after the report of a launcher that words the signal before the time limit as a preemption and requeues its job",
    why="SIGUSR2 came 120 s before the 72 hours were over and the tool calls that a preemption; it also says that 4318 of 4320 minutes ran. Refused connections and exit code 1 are shutdown noise.",
    tags="misleading scheduler slurm interrupted", also="preempted", nodes="", gpus=16, must_not="cancelled connection-error node-failure",
    scheduler={"JobID": "60844", "State": "REQUEUED", "Elapsed": "2-23:58:03", "Timelimit": "3-00:00:00"},
)  # fmt: skip
def s020(c: Case) -> None:
    c.start("2022-08-09 02:08:10")
    log = c.file("60844_0_log.out")
    log.add(f"submitit INFO ({c.t('%Y-%m-%d %H:%M:%S,%f3')}) - Starting with JobEnvironment(job_id=60844, hostname=dgx2, local_rank=0(8), node=0(2), global_rank=0(16))",
            f"submitit INFO ({c.t('%Y-%m-%d %H:%M:%S,%f3')}) - Loading pickle: /checkpoint/lrossi/msn/60844_submitted.pkl", "INFO:root:called-params configs/msn_vitl7.yaml", "INFO:root:Running... (rank: 0/16)")  # fmt: skip
    loss = Curve(c, 9.2, 4.4, 2000)
    it = 0
    for epoch in range(1, 109):
        log.add(f"INFO:root:Epoch {epoch}")
        for k in range(0, 2502, 250):
            c.tick(218, 219)
            it += 250
            log.add(
                f"INFO:root:[{epoch}, {k:5d}] train: {loss(it):.3f} (unlab-cross-entropy: {loss(it) * 0.7:.3f} rloss: {c.f(0.1, 0.5):.3f}) [mem: 3.42e+04] (857.1 ms)"
            )
    c.start("2022-08-12 02:06:10")
    stamp = lambda: c.t("%Y-%m-%d %H:%M:%S,%f3")  # noqa: E731
    log.add(f"submitit WARNING ({stamp()}) - Caught signal SIGUSR2 on dgx2: this job is preempted.", e=True)
    c.tick(1.5)
    log.add(f"submitit INFO ({stamp()}) - Job has timed out. Ran 4318 minutes out of requested 4320 minutes.", e=True)
    log.add(f"submitit INFO ({stamp()}) - Calling checkpoint method.", f"submitit INFO ({stamp()}) - Requeued job 60844 (1 remaining timeouts)",
            "slurmstepd: error: *** STEP 60844.0 ON dgx2 CANCELLED AT 2022-08-12T02:06:12 DUE TO JOB REQUEUE ***", f"submitit WARNING ({stamp()}) - Bypassing signal SIGTERM", f"submitit WARNING ({stamp()}) - Bypassing signal SIGCONT",
            "slurmstepd: error: Failed to send MESSAGE_TASK_EXIT: Connection refused", "slurmstepd: error: Failed to send MESSAGE_TASK_EXIT: Connection refused", "srun: error: dgx3: tasks 8-15: Exited with exit code 1",
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")  # fmt: skip
    log.add(
        sacct(
            "JobID|State|Elapsed|Timelimit|ExitCode",
            ["60844|REQUEUED|2-23:58:03|3-00:00:00|0:0", "60844.0|CANCELLED|2-23:58:02||0:12"],
        )
    )
