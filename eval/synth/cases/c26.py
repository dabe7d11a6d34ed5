"""s109 to s112."""

from __future__ import annotations

from synth import megatron as mg
from synth import torch_text as tt
from synth.frameworks import hf_head
from synth.hosts_text import events
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import head, hosts


@case(
    "s109", "type-error", "dependency-failure", "fix-and-resubmit",
    source="after the report of a long-context training that stops at its first step since a library was upgraded",
    why="transformers 4.34 passes padding_mask to the attention call that the script replaced by its own xformers_forward of an older signature: TypeError on all ranks in step 0.",
    tags="slurm training cascade multi-node", also="version-mismatch", also_cls="software-bug config-error", nodes="", gpus=16, mention=["padding_mask|transformers|xformers"], must_not="nccl-remote-error",
)  # fmt: skip
def s109(c: Case) -> None:
    c.start("2023-10-31 10:44:05")
    c.site, c.root = "/home/lms/.conda/envs/fschat/lib/python3.10/site-packages", "/home/lms/FastChat"
    names = hosts("vic", 1, 2, 1)
    log = c.file("vicuna32k-2n.log")
    log.add(
        head(c, 9177, names, 1, "vicuna-32k", "a100", "2-00:00:00"),
        *[f"{n}: transformers 4.34.1 xformers 0.0.22 torch 2.1.0+cu118" for n in names],
        hf_head(94145, 3, 1, 16, 4, 6738415616),
    )
    rows = []
    for r in c.rng.sample(range(16), 16):
        rows.append(pre(f"{names[r // 8]}: ", ["\r  0%|          | 0/4413 [00:00<?, ?it/s]" if r % 8 == 0 else f"rank {r}: condensing rope by 8, max length 32768", *tb(c, """
            fastchat/train/train_xformers.py:13 <module> | train()
            fastchat/train/train.py:277 train | trainer.train()
            $S/transformers/trainer.py:1591 train | return inner_training_loop(
            $S/transformers/models/llama/modeling_llama.py:632 forward | hidden_states, self_attn_weights, present_key_value = self.self_attn(
            $S/torch/nn/modules/module.py:1527 _call_impl | return forward_call(*args, **kwargs)
            """, "TypeError: xformers_forward() got an unexpected keyword argument 'padding_mask'")]))  # fmt: skip
    log.add(weave(c.rng, rows, 9), e="padding_mask'")
    for n, name in enumerate(names):
        pids = c.pids(8, 44000)
        log.add(
            pre(
                f"{name}: ",
                [
                    *tt.sigterm(c, "2.1", pids[5:]),
                    tt.exits(c, "2.1", 1, 0, pids[0]),
                    *tt.child_failed(
                        c, "fastchat/train/train_xformers.py", name, [(n * 8 + i, i, 1, pids[i]) for i in range(4)]
                    ),
                ],
            )
        )


@case(
    "s110", "time-limit", "config-error", "restart fix-and-resubmit",
    source="a Kubernetes job that reached its active deadline while it trained well",
    why="The job was active longer than its activeDeadlineSeconds of 43200 (event DeadlineExceeded, then the pods were deleted); the SIGTERM tracebacks and exit 143 in the log follow.",
    tags="interrupted kubernetes scheduler misleading", also_cls="operator-action", nodes="", gpus=8, mention=["deadline"], must_not="cancelled preempted node-failure nccl-timeout",
)  # fmt: skip
def s110(c: Case) -> None:
    c.start("2024-05-20 20:00:00")
    log = c.file("pod.log")
    loss = Curve(c, 0.4, 0.09, 100)
    k = 0
    while (c.now - c.begun).total_seconds() < 43120:  # type: ignore[operator]
        c.tick(55, 60)
        k += 1
        log.add(
            f"{c.t()} | epoch {k // 60} it {k % 60}/60 | chamfer {loss(k):.5f} | emd {loss(k) * 1.7:.5f} | lr {1e-4:.1e}"
        )
    log.add(
        tb(
            c,
            "train_pc.py:88 <module> | fit()\ntrain_pc.py:70 fit | signal.pause()\ntrain_pc.py:31 on_term | raise SystemExit(143)",
            "SystemExit: 143",
        ),
        "[rank3] Traceback: KeyboardInterrupt",
        "terminating 8 workers",
        "command terminated with exit code 143",
    )
    d = c.file("job-describe.txt")
    d.add("$ kubectl describe job pc-diffusion -n graphics", "Name:                     pc-diffusion", "Namespace:                graphics", "Parallelism:              1", "Completions:              1", "Active Deadline Seconds:  43200s", "Pods Statuses:            0 Active (0 Ready) / 0 Succeeded / 1 Failed",
          events(["Normal|SuccessfulCreate|12h|job-controller|Created pod: pc-diffusion-4l2mv", "Normal|SuccessfulDelete|64s|job-controller|Deleted pod: pc-diffusion-4l2mv", "Warning|DeadlineExceeded|64s|job-controller|Job was active longer than specified deadline"]), e="DeadlineExceeded")  # fmt: skip


@case(
    "s111", "healthy", "none", "none",
    source="a pre-training slice with a spike of the gradient norm that recovered, a rerun check that passed and a planned exit",
    why="The gradient norm spiked to about a thousand at one iteration and came back by itself in forty; the run left as planned ('exiting program at iteration 31000') after a save.",
    tags="healthy slurm training", nodes="", gpus=64,
)  # fmt: skip
def s111(c: Case) -> None:
    c.start("2025-01-07 03:00:00")
    log = c.file("slice-14.out")
    log.add(
        mg.arguments(
            {
                "exit_interval": "1000",
                "rerun_mode": "validate_results",
                "world_size": "64",
                "tensor_model_parallel_size": "4",
                "load": "/lus/bl/ck",
                "save": "/lus/bl/ck",
            }
        ),
        mg.startup(
            c, tp=4, pp=1, params=1735213056, micro=32, vocab=131072, data="/lus/bl/idx", load="/lus/bl/ck", at=30000
        ),
    )
    loss = Curve(c, 9.1, 1.93, 3000, 0.003)
    log.add(mg.steps(c, 30001, 30517, total=120000, gbs=2048, sec=6.1, loss=loss, tflops=401.0, every=2))
    for i, (g, up) in enumerate(((961.441, 3.9), (402.117, 3.1), (77.02, 2.6), (12.9, 2.4), (3.31, 2.2))):
        log.add(
            mg.steps(
                c, 30518 + i, 30518 + i, total=120000, gbs=2048, sec=6.1, loss=Curve(c, up, up, 1), tflops=401.0, grad=g
            )
        )
        if i == 0:
            log.add(
                "WARNING:megatron.core.rerun_state_machine:Unexpected result 3.902114 on rank 17 at iteration #30518 invocation #1 (message='grad norm above 100 times its average')!",
                "WARNING:megatron.core.rerun_state_machine:First rerun: reproducible result, not a transient error; going on",
            )
    log.add(mg.steps(c, 30523, 31000, total=120000, gbs=2048, sec=6.1, loss=loss, tflops=401.0, every=2))
    log.add(
        mg.saved(c, 31000, "/lus/bl/ck"),
        f"[exiting program at iteration 31000] datetime: {c.t()} ",
        "exiting program at iteration 31000",
        "wandb: Synced slice-14",
        "rc=0",
    )
