"""s101 to s104."""

from __future__ import annotations

from synth import torch_text as tt
from synth.hosts_text import pyspy
from synth.kit import Case, Curve, case, pre, tb, weave
from synth.slurm_text import hosts


@case(
    "s101", "hang", "software-bug", "kill-and-restart fix-and-resubmit",
    source="a job that stands still because a debugger's prompt left in the code waits for input on one rank",
    why="Rank 2's stack stands in pdb's command loop reading from a terminal that is not there, after 'breakpoint()' in the loss; the other three ranks wait for it in the gradient all-reduce.",
    tags="hang misleading", outcome="hung", also_outcome="failed", also_cls="operator-action", nodes="", ranks="2", gpus=4, mention=["pdb|debugger|breakpoint"], must_not="nccl-timeout network-error gpu-lost storage-error",
)  # fmt: skip
def s101(c: Case) -> None:
    c.start("2025-06-18 14:20:00")
    c.site = "/home/mei/.venv/lib/python3.12/site-packages"
    log = c.file("screenlog.0")
    loss = Curve(c, 3.1, 0.8, 100)
    for s in range(1, 402):
        c.tick(2.2, 2.4)
        log.add(f"[{c.t('%H:%M:%S')}] rank 0 it {s} contrastive {loss(s):.4f} temp {c.f(0.06, 0.07):.4f}")
    log.add(
        "WARNING rank 2: loss of sub-batch 3 is above 50, see below",
        "> /home/mei/clipzh/losses.py(118)siglip()",
        "-> logits = scale * img @ txt.T + bias",
        "(Pdb) ",
        e="(Pdb)",
    )
    c.tick(4000)
    for r in range(4):
        stack = (["readline (<frozen codecs>:322)", "input (pdb.py:212)", "cmdloop (cmd.py:126)", "_cmdloop (pdb.py:435)", "interaction (pdb.py:504)", "user_line (pdb.py:369)", "dispatch_line (bdb.py:115)", "siglip (losses.py:118)", "train_one_epoch (train.py:221)"] if r == 2
                 else ["synchronize (torch/cuda/__init__.py:955)", "unscale_and_clip (train.py:240)", "train_one_epoch (train.py:231)", "main (train.py:402)"])  # fmt: skip
        c.file(f"dump-{r}.txt").add(
            pyspy(
                61000 + r,
                f"python -m clipzh.train --local-rank {r}",
                [(f'{61000 + r} ({"idle" if r == 2 else "active"}): "MainThread"', stack)],
                "3.12.4",
            ),
            e="pdb.py:435" if r == 2 else False,
        )


@case(
    "s103", "unknown", "unknown", "restart escalate",
    source="an MPI job of which the launcher says only that a rank was killed by signal 9",
    why="Hydra prints that rank 88 on n210 was killed by signal 9 and nothing else; there is no out-of-memory line, no scheduler line, no kernel log. n210's kernel log must be looked at.",
    tags="unknown multi-node", status="unknown hypothesis", also="host-out-of-memory", also_cls="resource-exhaustion", also_outcome="unknown", nodes="", ranks="88", mention=["signal 9|kill"], must_not="native-crash cancelled time-limit preempted node-failure",
)  # fmt: skip
def s103(c: Case) -> None:
    c.start("2020-02-25 16:48:37")
    log = c.file("vasp.out")
    log.add(
        " running on  128 total cores",
        " distrk:  each k-point on   32 cores,    4 groups",
        " distr:  one band on    1 cores,   32 groups",
        " using from now: INCAR",
        " vasp.5.4.4.18Apr17-6-g9f103f2a35 (build Apr 11 2018 08:52:49) complex",
        " POSCAR found :  3 types and     412 ions",
        " scaLAPACK will be used",
        " LDA part: xc-table for Pade appr. of Perdew",
        " POSCAR, INCAR and KPOINTS ok, starting setup",
        " FFT: planning ...",
        " WAVECAR not read",
        " entering main loop",
        "       N       E                     dE             d eps       ncg     rms          rms(c)",
    )
    e = -3100.0
    for it in range(1, 31):
        for n in range(1, 16):
            c.tick(50, 60)
            d = -(10.0 ** (2 - n * 0.5)) * c.f(0.5, 1.5)
            e += d
            log.add(
                f"{'RMM' if n > 5 else 'DAV'}: {n:3d}    {e:.12E}   {d:.5E}   {d / 3:.5E} {c.n(9000, 30000)}   {abs(d) ** 0.5:.3E}    {abs(d) ** 0.5 / 9:.3E}"
            )
        log.add(f"   {it} F= {e:.8E} E0= {e + 0.004:.8E}  d E ={d:.6E}")
    log.add(
        *[
            f"RMM: {n:3d}    {e:.12E}   {-c.f(0.1, 2):.5E}   {-c.f(0.1, 1):.5E} {c.n(9000, 30000)}   {c.f(0.1, 1):.3E}    {c.f(0.01, 0.1):.3E}"
            for n in range(1, 5)
        ],
        "",
        "=" * 83,
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "=   RANK 88 PID 30991 RUNNING AT n210",
        "=   KILLED BY SIGNAL: 9 (Killed)",
        "=" * 83,
        e="RANK 88 PID",
    )
    log.marked[len(log.rows) - 1] = log.rows[-2]
    log.add(
        *[
            row
            for r in (64, 65, 95)
            for row in (
                "",
                "=" * 83,
                "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
                f"=   RANK {r} PID {30967 + r - 64} RUNNING AT n210",
                "=   KILLED BY SIGNAL: 15 (Terminated)",
                "=" * 83,
            )
        ]
    )


@case(
    "s104", "unknown", "unknown", "restart none escalate",
    source="a job of which all nodes got SIGTERM at the same second, with nothing from the scheduler to say why",
    why="All agents got signal 15 in the same second while iterations went on, so it was ended from outside; whether by a person, the time limit or preemption is not in this log: ask sacct.",
    tags="unknown interrupted multi-node misleading", outcome="interrupted", status="unknown hypothesis", also="cancelled preempted time-limit", also_outcome="unknown failed", also_cls="operator-action", nodes="", gpus=32, mention=["sigterm|signal 15|outside|told to stop|terminated"], must_not="nccl-timeout node-failure runtime-error nccl-remote-error",
)  # fmt: skip
def s104(c: Case) -> None:
    c.start("2024-10-30 21:14:09")
    c.site = "/opt/py/lib/python3.10/site-packages"
    names = hosts("e", 3301, 4, 4)
    log = c.file("agents.log")
    loss = Curve(c, 4.2, 1.1, 400)
    for s in range(1, 1900):
        c.tick(6, 6.4)
        if s % 2 == 0:
            log.add(f"e3301 [0]: {c.t('%H:%M:%S')} step {s} loss {loss(s):.4f} ({c.jitter(6.1, 0.02):.2f} s)")
    rows = []
    for name in names:
        pid = c.n(90000, 99000)
        rows.append(
            pre(
                f"{name} ",
                [
                    tt.agent(
                        c, "2.4", "WARNING", 688, "Received 15 death signal, shutting down workers", "agent/server/api"
                    ),
                    *tt.sigterm(c, "2.4", c.pids(8, pid + 20, pid + 21)),
                    *tb(
                        c,
                        '$S/torch/distributed/run.py:883 run | elastic_launch(\n$S/torch/distributed/elastic/multiprocessing/api.py:76 _terminate_process_handler | raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
                        f"torch.distributed.elastic.multiprocessing.api.SignalException: Process {pid} got signal: 15",
                    ),
                ],
            )
        )
    log.add(weave(c.rng, rows, 8), e="death signal")
