"""Jobs under a real Slurm: what the scheduler ends, refuses, requeues or loses."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time

import sandbox
from lab import WORK, Hit, Lab, Truth, fault

from faults.common import CONSEQUENCES, FIX, fit, pretrain
from faults.jobs import script, slurm


@fault("c201", "time-limit", "the job runs into its time limit", "scheduler", host="login")
def time_limit(lab: Lab) -> Truth:
    pretrain(lab, 2)
    with slurm(["cn017"], 48211) as s:
        job = s.submit(
            script(
                "gpt",
                "srun --kill-on-bad-exit=1 python -u pretrain.py --train-iters 100000 --log-interval 20 --eval-interval 500 --save /mnt/scratch/ckpt --save-interval 500",
                limit="1",
            )
        )
        s.wait(job)
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    lab.scheduler = {"job": int(job), "state": "TIMEOUT"}
    return Truth(
        "interrupted", "time-limit", "operator-action", ("restart", "fix-and-resubmit"), (Hit(f"gpt-{job}.out", "DUE TO TIME LIMIT"), Hit("sacct.txt", "TIMEOUT")),
        must_mention=(("time limit",),), must_not=("native-crash", "healthy", *CONSEQUENCES), why="--time=1; training went on to the last second.",
    )  # fmt: skip


@fault("c202", "scancel", "the user cancels the job", "scheduler", split="test", host="login")
def scancel(lab: Lab) -> Truth:
    fit(lab, train=40, epochs=200, workers=1)
    with slurm(["cn017", "cn018"], 50332) as s:
        job = s.submit(script("digits", "srun python -u train.py config.yaml", nodes=2, tasks=1))
        lab.wait_for(f"digits-{job}.out", "epoch 3 done")
        s.user("scancel", job)
        s.wait(job)
        lab.keep(f"digits-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "interrupted", "cancelled", "operator-action", ("none", "restart"), (Hit(f"digits-{job}.out", "CANCELLED AT"), Hit("sacct.txt", f"CANCELLED by {sandbox.UID}")),
        must_mention=(("cancel",),), must_not=("time-limit", "preempted", "native-crash", *CONSEQUENCES), why="scancel by the job's owner in epoch 4.",
    )  # fmt: skip


@fault("c203", "preempted", "a job of a higher partition takes the nodes", "scheduler", host="login")
def preempted(lab: Lab) -> Truth:
    pretrain(lab, 4)
    run = "srun python -u pretrain.py --train-iters 100000 --log-interval 20 --eval-interval 500 --save /mnt/scratch/ckpt --load /mnt/scratch/ckpt --save-interval 200"
    with slurm(["cn021", "cn022"], 61007) as s:
        job = s.submit(script("gpt", run, nodes=2, tasks=2, more="#SBATCH --open-mode=append\n#SBATCH --exclusive"))
        lab.wait_for(f"gpt-{job}.out", r"successfully saved checkpoint from iteration +400 ")
        s.submit(
            "#!/bin/bash\nsleep 600\n",
            "urgent.sh",
            "-p",
            "high",
            "-N",
            "2",
            "--exclusive",
            "--mem=8G",
            "-o",
            "/dev/null",
        )
        lab.wait_for(f"gpt-{job}.out", "PREEMPT")
        time.sleep(5)
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("scontrol.txt", s.show(job))
    return Truth(
        "interrupted", "preempted", "operator-action", ("restart", "wait", "none"), (Hit(f"gpt-{job}.out", "DUE TO PREEMPTION"),),
        must_mention=(("preempt",),), must_not=("time-limit", "cancelled", "native-crash", *CONSEQUENCES),
        why="Preempted by a job of partition high; requeued by Slurm, pending when the log is taken.",
    )  # fmt: skip


@fault(
    "c204",
    "preempted-finishes",
    "preempted and requeued; the second run resumes from the checkpoint and ends well",
    "scheduler",
    "healthy",
    "multi-run",
    "misleading",
    split="test",
    host="login",
)
def preempted_finishes(lab: Lab) -> Truth:
    pretrain(lab, 2)
    run = "srun python -u pretrain.py --train-iters 1500 --log-interval 10 --eval-interval 500 --save /mnt/scratch/ckpt --load /mnt/scratch/ckpt --save-interval 100"
    with slurm(["cn021"], 61007) as s:
        job = s.submit(script("gpt", run, tasks=2, more="#SBATCH --open-mode=append\n#SBATCH --exclusive"))
        lab.wait_for(f"gpt-{job}.out", r"successfully saved checkpoint from iteration +300 ")
        s.submit(
            "#!/bin/bash\nsleep 20\n",
            "urgent.sh",
            "-p",
            "high",
            "-N",
            "1",
            "--exclusive",
            "--mem=8G",
            "-o",
            "/dev/null",
        )
        lab.wait_for(f"gpt-{job}.out", "PREEMPT")
        lab.wait_for(f"gpt-{job}.out", "END TIME", timeout=400)
        lab.succeed(s.wait(job) != "COMPLETED")
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "healthy",
        "healthy",
        "none",
        ("none",),
        must_not=("preempted", "cancelled", "native-crash", *CONSEQUENCES),
        why="After the preemption Slurm requeued the job; it resumed at iteration 300 and completed.",
    )


@fault("c205", "slurm-oom", "a task grows beyond the job's memory under Slurm", "scheduler", "cascade", host="login")
def slurm_oom(lab: Lab) -> Truth:
    grow = '        x, y = self.current[1]\n        self.seen = getattr(self, "seen", [])\n        self.seen.append(np.ones((1024, 1024), dtype=np.float32))\n'
    fit(lab, ("data.py", "        x, y = self.current[1]\n", grow), train=40, epochs=20, workers=0)
    with slurm(["cn017"], 50332) as s:
        job = s.submit(script("digits", "srun python -u train.py config.yaml", tasks=2, mem="3G"))
        s.wait(job)
        lab.keep(f"digits-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    rank = int(re.search(r"task (\d): Out Of Memory", (WORK / f"digits-{job}.out").read_text())[1])  # type: ignore[index]
    return Truth(
        "failed", "host-out-of-memory", "resource-exhaustion", FIX,
        (Hit(f"digits-{job}.out", "oom-kill event"), Hit(f"digits-{job}.out", "Out Of Memory"), Hit("sacct.txt", "OUT_OF_ME")),
        ranks=(rank,), must_mention=(("memory", "oom"),), must_not=("out-of-memory", *CONSEQUENCES), why="The dataset keeps 4 MB a sample; the job's 3 GB are used up.",
    )  # fmt: skip


@fault(
    "c206",
    "node-fail",
    "a node dies: its daemon and all its processes are gone, its link is down",
    "scheduler",
    "hardware",
    "misleading",
    host="login",
)
def node_fail(lab: Lab) -> Truth:
    pretrain(lab, 4)
    run = "srun --kill-on-bad-exit=0 python -u pretrain.py --train-iters 100000 --log-interval 20 --eval-interval 500 --save /mnt/scratch/ckpt --save-interval 500"
    with slurm(["cn031", "cn032"], 73410) as s:
        job = s.submit(script("gpt", run, nodes=2, tasks=2, more="#SBATCH --no-requeue"))
        lab.wait_for(f"gpt-{job}.out", r"iteration +700/")
        sandbox.sh("ip", "link", "set", "swp2", "down")
        dead = s.nodes[1]
        s.daemons.pop(dead.name).kill()
        here = os.readlink(f"/proc/{dead.holder}/ns/net")
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if entry.isdigit() and int(entry) != dead.holder and os.readlink(f"/proc/{entry}/ns/net") == here:
                    os.kill(int(entry), signal.SIGKILL)
        s.wait(job, timeout=500)
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("scontrol.txt", s.show(job) + sandbox.sh("scontrol", "show", "node", dead.name))
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "failed", "node-failure", "hardware-failure", ("restart-excluding",), (Hit(f"gpt-{job}.out", "Node failure on"), Hit(f"gpt-{job}.out", "DUE TO NODE FAILURE"), Hit("scontrol.txt", "NODE_FAIL"), Hit("scontrol.txt", "State=DOWN")),
        nodes=("cn032",), must_mention=(("cn032",),), must_not=("cancelled", "time-limit", "native-crash"),
        why="cn032 vanished: the controller marks it DOWN and ends the job with NODE_FAIL.",
    )  # fmt: skip


@fault(
    "c209",
    "hang-until-limit",
    "training stops making progress; much later the time limit ends the job",
    "scheduler",
    "hang",
    "misleading",
    host="login",
)
def hang_until_limit(lab: Lab) -> Truth:
    wait = '    batch = next(data_iterator)\n    if dist.get_rank() == 1 and model.training and os.path.exists("/mnt/data/refresh"):\n        while os.path.exists("/mnt/data/refresh"):\n            time.sleep(1)\n'
    pretrain(lab, 2, ("core/training.py", "    batch = next(data_iterator)\n", wait))
    with slurm(["cn017"], 48211) as s:
        job = s.submit(
            script(
                "gpt",
                "srun python -u pretrain.py --train-iters 100000 --log-interval 10 --eval-interval 500 --distributed-timeout-minutes 30",
                limit="3",
            )
        )
        lab.wait_for(f"gpt-{job}.out", r"iteration +500/")
        lab.tool("touch", "/mnt/data/refresh")
        s.wait(job)
        lab.keep(f"gpt-{job}.out")
        lab.keep_text("sacct.txt", s.sacct(job))
    return Truth(
        "interrupted", "hang", "software-bug", ("kill-and-restart", "fix-and-resubmit", "restart"), (Hit(f"gpt-{job}.out", "iteration ", "last"), Hit(f"gpt-{job}.out", "DUE TO TIME LIMIT")),
        also_outcome=("hung", "failed"), also_accept=("time-limit",), must_mention=(("progress", "hang", "hung", "silen", "last step", "iteration"),), must_not=("native-crash", *CONSEQUENCES),
        why="Rank 1 waits for a marker file to go away from about iteration 500; nothing is printed for more than two minutes before the limit.",
    )  # fmt: skip
