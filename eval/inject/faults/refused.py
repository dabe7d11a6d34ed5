"""Jobs under Slurm that are refused, fail to start, or end by their own doing; and one that is well."""

from __future__ import annotations

from lab import Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, fit, pretrain
from faults.jobs import script, slurm


@fault(
    "c207",
    "command-not-found",
    "the job script lacks its environment: a command is not found",
    "scheduler",
    split="test",
    host="login",
)
def command_not_found(lab: Lab) -> Truth:
    fit(lab)
    with slurm(["cn017"], 50332) as s:
        job = s.submit(
            script(
                "digits", "set -e\nmodule load python/3.11\nsrun deepspeed --num_gpus 2 train.py config.yaml", tasks=1
            )
        )
        s.wait(job)
        lab.keep(f"digits-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "failed", "file-not-found", "config-error", FIX, (Hit(f"digits-{job}.out", "command not found"),),
        also_accept=("launch-failure", "import-error"), must_mention=(("module",),), must_not=("native-crash", *CONSEQUENCES), why="`module` is not defined in the batch shell; set -e ends the job with 127.",
    )  # fmt: skip


@fault(
    "c208",
    "task-exit",
    "under srun one task of four raises; Slurm ends the others",
    "scheduler",
    "cascade",
    split="test",
    host="login",
)
def task_exit(lab: Lab) -> Truth:
    pretrain(
        lab,
        4,
        (
            "core/training.py",
            "        iteration += 1\n",
            "        iteration += 1\n        if iteration % args.save_interval == args.rank * 40:\n            profile(loss_dict, iteration)\n",
        ),
        (
            "core/training.py",
            "def train(model",
            'def profile(stats, iteration):\n    lines = [f"{k}={v:.4f}" for k, v in sorted(stats.items())]\n    if iteration > 260:\n        lines += iteration\n    print("profile: " + " ".join(lines), flush=True)\n\n\ndef train(model',
        ),
    )
    with slurm(["cn017", "cn018"], 50332) as s:
        job = s.submit(
            script(
                "gpt",
                "srun -l --kill-on-bad-exit=1 python -u pretrain.py --train-iters 2000 --log-interval 10 --save-interval 200",
                nodes=2,
                tasks=2,
            )
        )
        s.wait(job)
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "failed", "type-error", "software-bug", FIX, (Hit(f"gpt-{job}.out", "TypeError: 'int' object is not iterable"),),
        ranks=(2,), must_mention=(("'int' object is not iterable", "TypeError"),), must_not=("cancelled", *CONSEQUENCES),
        why="Rank 2's profile at iteration 280 is the first after 260: list += int.",
    )  # fmt: skip


@fault("c210", "step-refused", "srun asks for more than the allocation has", "scheduler", host="login")
def step_refused(lab: Lab) -> Truth:
    fit(lab)
    with slurm(["cn017"], 50332) as s:
        job = s.submit(script("digits", "srun --nodes=4 --ntasks=16 python -u train.py config.yaml", tasks=2))
        s.wait(job)
        lab.keep(f"digits-{job}.out")
    return Truth(
        "failed", "launch-failure", "config-error", FIX, (Hit(f"digits-{job}.out", "srun: error:"),),
        also_accept=("argument-error",), must_mention=(("node", "processors", "requested"),), must_not=("native-crash", *CONSEQUENCES), why="The step wants 4 nodes of a job that has one.",
    )  # fmt: skip


@fault("c211", "slurm-healthy", "a whole job under Slurm, with accounting", "scheduler", "healthy", host="login")
def slurm_healthy(lab: Lab) -> Truth:
    pretrain(lab, 4)
    with slurm(["cn017", "cn018"], 50332) as s:
        job = s.submit(
            script(
                "gpt",
                "srun --kill-on-bad-exit=1 python -u pretrain.py --train-iters 600 --log-interval 5 --eval-interval 200 --save /mnt/scratch/ckpt --load /mnt/scratch/ckpt",
                nodes=2,
                tasks=2,
            )
        )
        lab.succeed(s.wait(job) != "COMPLETED")
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "healthy",
        "healthy",
        "none",
        ("none",),
        must_not=CONSEQUENCES,
        why="COMPLETED 0:0. The warning about a missing checkpoint at the start is normal for a first run.",
    )


@fault(
    "c212",
    "limit-after-success",
    "training ends well, a leftover process keeps the job until its time limit",
    "scheduler",
    "misleading",
    split="test",
    host="login",
)
def limit_after_success(lab: Lab) -> Truth:
    fit(lab, epochs=3)
    with slurm(["cn017"], 50332) as s:
        job = s.submit(
            script(
                "digits",
                "python -m http.server 6006 --bind 127.0.0.1 >/dev/null 2>&1 &\nsrun python -u train.py config.yaml\nwait",
                tasks=2,
                limit="1",
            )
        )
        s.wait(job)
        lab.keep(f"digits-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "interrupted", "time-limit", "config-error", ("none", "fix-and-resubmit"), (Hit(f"digits-{job}.out", "DUE TO TIME LIMIT"), Hit(f"digits-{job}.out", "training finished after")),
        also_outcome=("healthy",), also_accept=("healthy",), must_mention=(("time limit", "finished"),), must_not=("native-crash", "hang", *CONSEQUENCES),
        why="The training step completed (sacct: step 0 COMPLETED); the script's `wait` then waited for a background server.",
    )  # fmt: skip


@fault("c213", "not-executable", "the launched script has no execute permission", "scheduler", host="login")
def not_executable(lab: Lab) -> Truth:
    fit(lab)
    lab.write("launch.sh", "#!/bin/bash\nexec python -u train.py config.yaml\n", 0o644)
    with slurm(["cn017"], 50332) as s:
        job = s.submit(script("digits", "srun ./launch.sh", tasks=2))
        s.wait(job)
        lab.keep(f"digits-{job}.out")
    return Truth(
        "failed", "permission-error", "config-error", FIX, (Hit(f"digits-{job}.out", "Permission denied"),),
        also_accept=("launch-failure",), must_mention=(("launch.sh", "permission"),), must_not=("native-crash", *CONSEQUENCES), why="launch.sh has mode 644.",
    )  # fmt: skip
