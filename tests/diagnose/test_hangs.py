"""Hangs judged by what was collected of them: cause, class, who it is, and what is no hang."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage.cli import wiring
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, LogFile

BARRIER = ["    barrier (torch/distributed/distributed_c10d.py:5356)", "    save (ckpt.py:40)"]
PS = "    PID    PPID STAT WCHAN                          ELAPSED COMMAND"
SMI_HEAD = "| NVIDIA-SMI 535.104.12              Driver Version: 535.104.12   CUDA Version: 12.2     |"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return wiring.knowledge()


def stack(rank: int, *frames: str, node: str | None = None) -> LogFile:
    pid = 4000 + rank
    text = [
        f"Process {pid}: python train.py --rank {rank}",
        "Python v3.11.7 (/usr/bin/python3.11)",
        "",
        f'Thread {pid} (idle): "MainThread"',
        *frames,
        "    main (train.py:104)",
    ]
    return log_file("\n".join(text), f"pyspy-{pid}.txt", "stacks", node=node)


def others(*ranks: int) -> list[LogFile]:
    return [stack(rank, *BARRIER) for rank in ranks]


def ps(
    states: dict[int, str], waits: dict[int, str] | None = None, name: str = "ps.txt", node: str | None = None
) -> LogFile:
    rows = [
        f"{4000 + rank:>7} 1000 {state:<4} {(waits or {}).get(rank, '-'):<30} 02:10:11 python train.py --rank {rank}"
        for rank, state in states.items()
    ]
    return log_file("\n".join([PS, *rows]), name, "processes", node=node)


def smi(busy: dict[int, int], name: str = "nvidia-smi.txt", node: str | None = None) -> LogFile:
    rows = [SMI_HEAD]
    for gpu, percent in busy.items():
        rows += [
            f"|   {gpu}  NVIDIA A100-SXM4-80GB          On | 00000000:{7 + gpu:02X}:00.0 Off |                    0 |",
            f"| N/A   30C    P0              87W / 400W |  40112MiB / 81920MiB |    {percent:>3}%      Default |",
        ]
    rows += [
        f"|    {gpu}   N/A  N/A      {4000 + gpu}      C   /opt/conda/bin/python                    40100MiB |"
        for gpu in busy
    ]
    return log_file("\n".join(rows), name, "fabric", node=node)


def verdict(d: Diagnosis) -> tuple[str, str, str, tuple[int, ...]]:
    return d.outcome, d.failure_type, d.root_cause_class, d.suspects.ranks


STANDS: list[tuple[str, list[str], tuple[str, str], str]] = [
    ("sleep", ["    time_sleep (libpython3.11.so.1.0)", "    backoff (retry.py:8)"], ("hang", "software-bug"), "sleeps in Python"),
    ("code", ["    spin (mine.py:9)"], ("hang", "software-bug"), "its own code"),
    ("lock", ["    wait (threading.py:327)", "    flush (tracker.py:22)"], ("hang", "software-bug"), "lock"),
    ("native", ["    solve_forever (libsolver.so)", "    _call_function_pointer (_ctypes.cpython-311.so)", "    solve (mine.py:9)"], ("hang", "software-bug"), "native code"),
    ("libc", ["    pause (libc.so.6)", "    ffi_call (libffi.so.8.1.2)", "    _call_function_pointer (callproc.c:943)", "    solve (mine.py:9)"], ("hang", "software-bug"), "native code"),
    ("debugger", ["    readline (<frozen codecs>:322)", "    interaction (pdb.py:504)", "    loss (losses.py:9)"], ("hang", "software-bug"), "debugger"),
    ("loader", ["    _try_get_data (torch/utils/data/dataloader.py:1275)", "    batches (train.py:40)"], ("hang", "unknown"), "data loader"),
    ("file", ["    flush (logging/__init__.py:1086)", "    report (metrics.py:7)"], ("hang", "unknown"), "file"),
    ("collective", ["    broadcast (torch/distributed/distributed_c10d.py:2404)", "    evaluate (train.py:77)"], ("collective-mismatch", "software-bug"), "different collectives"),
    ("gpu", ["    synchronize (torch/cuda/__init__.py:985)", "    timed (bench.py:12)"], ("hang", "unknown"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "frames", "expected", "said"), STANDS, ids=[s[0] for s in STANDS])
def test_a_rank_that_stands_elsewhere_while_the_others_wait(
    name: str, frames: list[str], expected: tuple[str, str], said: str, knowledge: Knowledge
) -> None:
    d = judge(job(*others(0, 1, 3), stack(2, *frames)), knowledge)
    assert verdict(d)[:2] == ("hung", expected[0])
    assert (d.root_cause_class, said in d.root_cause) == (expected[1], True)
    if name != "gpu":
        assert (d.suspects.ranks, d.suspects.pids, d.suspects.nodes) == ((2,), (4002,), ())
        assert any(e.rank == 2 and e.role == "root" for e in d.evidence)


STATES: list[tuple[str, str, tuple[str, str], str]] = [
    ("Dl", "rpc_wait_bit_killable", ("storage-error", "dependency-failure"), "file system"),
    ("D", "cl_sync_io_wait", ("storage-error", "dependency-failure"), "file system"),
    ("D", "request_wait_answer", ("storage-error", "dependency-failure"), "file system"),
    ("D", "nvidia_ioctl", ("hang", "hardware-failure"), "GPU driver"),
    ("D", "-", ("hang", "unknown"), "state D"),
    ("Tl", "do_signal_stop", ("hang", "operator-action"), "stopped"),
    ("Z", "-", ("hang", "unknown"), "has ended"),
]


@pytest.mark.parametrize(("state", "wchan", "expected", "said"), STATES)
def test_the_state_of_a_process_names_cause_and_node(
    state: str, wchan: str, expected: tuple[str, str], said: str, knowledge: Knowledge
) -> None:
    files = [stack(rank, *BARRIER, node="n7") for rank in (0, 2, 3)]
    d = judge(
        job(*files, ps({0: "Rl", 1: state, 2: "Rl", 3: "Sl"}, {1: wchan, 3: "futex_wait_queue"}, node="n7")), knowledge
    )
    assert verdict(d) == ("hung", *expected, (1,))
    at_fault = () if said == "stopped" else ("n7",)  # no node stops a process
    assert (d.suspects.nodes, d.suspects.pids) == (at_fault, (4001,))
    assert said in d.root_cause
    assert "n7" in d.root_cause
    assert ("ps.txt", 3) in [(e.file, e.line) for e in d.evidence if e.role == "root"]


def test_refused_tools_idle_gpu_and_state_are_joined_by_the_process(knowledge: Knowledge) -> None:
    refused = log_file(
        "Process 4003: python\nError: Failed to suspend process\nReason: EPERM: Operation not permitted",
        "pyspy-4003.txt",
        "stacks",
        node="n7",
    )
    asleep = ps({0: "Rl", 1: "Rl", 2: "Rl", 3: "Dl"}, node="n7")
    kernel = log_file("[Sat Mar  4 04:00:01 2023] audit: backlog limit exceeded", "dmesg.txt", "kernel", node="n7")
    d = judge(
        job(
            *(stack(rank, *BARRIER, node="n7") for rank in range(3)),
            refused,
            asleep,
            smi({0: 100, 1: 100, 2: 100, 3: 0}, node="n7"),
            kernel,
        ),
        knowledge,
    )
    assert verdict(d) == ("hung", "hang", "unknown", (3,))
    assert (d.suspects.nodes, d.suspects.gpus, d.suspects.pids) == (("n7",), ("3",), (4003,))
    cited = {e.file for e in d.evidence if e.role == "root"}
    assert cited == {"ps.txt", "pyspy-4003.txt", "nvidia-smi.txt"}
    assert "show no fault of a GPU" in d.root_cause


def test_where_no_tool_may_attach_anywhere_that_says_nothing_of_a_process(knowledge: Knowledge) -> None:
    refused = [
        log_file(
            f"# py-spy dump --pid {4000 + n}: exit code 1\nError: Failed to suspend process\nReason: EPERM: Operation not permitted",
            f"pyspy-{4000 + n}.txt",
            "stacks",
        )
        for n in range(4)
    ]
    assert judge(job(*refused), knowledge).suspects.ranks == ()


def test_a_worker_in_the_kernel_explains_the_loader_that_waits_for_it(knowledge: Knowledge) -> None:
    loader = stack(2, "    _try_get_data (torch/utils/data/dataloader.py:1275)", "    batches (train.py:40)")
    rows = ps({0: "Rl", 1: "Rl", 2: "Sl", 3: "Rl"})
    worker = log_file(
        "\n".join([PS, "   5555 4002 D    nfs_wait_bit_killable          02:10:10 pt_data_worker"]),
        "ps2.txt",
        "processes",
    )
    d = judge(job(*others(0, 1, 3), loader, rows, worker), knowledge)
    assert verdict(d) == ("hung", "storage-error", "dependency-failure", (2,))


def test_a_rank_without_process_and_stack_is_waited_for(knowledge: Knowledge) -> None:
    d = judge(job(*others(0, 1, 3), log_file("world_size=4\nstart")), knowledge)
    assert verdict(d) == ("hung", "hang", "unknown", (2,))


def test_ranks_that_wait_for_others_to_join(knowledge: Knowledge) -> None:
    frames = ["    _store_based_barrier (torch/distributed/distributed_c10d.py:300)", "    setup (train.py:9)"]
    d = judge(job(*(stack(rank, *frames) for rank in range(3))), knowledge)
    assert verdict(d) == ("hung", "hang", "config-error", ())
    assert "master address" in " ".join(step.step for step in d.remediation)


EPOCHS = "[2022-04-26 13:57:20,{ms}][INFO][train_epoch]:Rank:{rank} Epoch:[{epoch}][20384/all] Net Time 0.705(0.890) Loss 0.3403(0.3792) LR 0.00021887"


def test_ranks_in_another_epoch_at_the_same_time(knowledge: Knowledge) -> None:
    epochs = {2: 48, 1: 48, 4: 49, 3: 49, 0: 49, 7: 49, 5: 48, 6: 49}
    text = "\n".join(
        EPOCHS.format(ms=757 + at, rank=rank, epoch=epoch) for at, (rank, epoch) in enumerate(epochs.items())
    )
    d = judge(job(log_file(text)), knowledge)
    assert verdict(d) == ("hung", "hang", "data-error", (1, 2, 5))


def test_ranks_that_change_epochs_one_after_the_other_do_not_hang(knowledge: Knowledge) -> None:
    text = "\n".join(
        f"[2022-04-26 13:57:2{rank},100][INFO]:Rank:{rank} Epoch:[{48 + (rank > 1)}][{1 if rank > 1 else 20384}/20384] Loss 0.3403"
        for rank in range(4)
    )
    assert judge(job(log_file(text)), knowledge).outcome != "hung"


def channels(node: int, via: str) -> list[str]:
    return [
        f"gpu-{node}:1136:1191 [{n}] NCCL INFO Channel 00 : {n}[5f000] -> {n + 1}[5b000] [send] via {via}"
        for n in range(2)
    ]


def test_gpu_direct_on_some_nodes_only_before_the_first_step(knowledge: Knowledge) -> None:
    uneven = "\n".join([*channels(1, "NET/IB/0/GDRDMA"), *channels(2, "P2P/IPC")])
    d = judge(job(log_file(uneven)), knowledge)
    assert (d.outcome, d.failure_type, d.root_cause_class) == ("hung", "hang", "config-error")
    assert "NCCL_NET_GDR_LEVEL" in " ".join(step.step for step in d.remediation)
    for even in (
        [*channels(1, "P2P/IPC"), *channels(1, "NET/IB/0/GDRDMA")],
        [*channels(1, "P2P/IPC"), *channels(2, "P2P/IPC")],
    ):
        assert judge(job(log_file("\n".join(even))), knowledge).outcome != "hung"
    steps = [f"step {n} | loss 2.{n} | lr 1e-4" for n in range(1, 9)]
    assert judge(job(log_file("\n".join([uneven, *steps]))), knowledge).outcome != "hung"


RAS = """NCCL version 2.24.3 compiled with CUDA 12.6
Job summary
===========
Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation {most}
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
"""
DEAD = """NCCL version 2.24.3 compiled with CUDA 12.6
Job summary
===========
Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5
"""


def test_what_nccl_itself_watches(knowledge: Knowledge) -> None:
    behind = judge(job(log_file(RAS.format(most=64), "ncclras.txt", "processes")), knowledge)
    assert (behind.outcome, behind.suspects.ranks, behind.suspects.pids) == ("hung", (7,), (1650386,))
    one = judge(job(log_file(RAS.format(most=61), "ncclras.txt", "processes")), knowledge)
    assert one.outcome != "hung", "ranks of a job that runs differ by one"
    dead = judge(job(log_file(DEAD, "ncclras.txt", "processes")), knowledge)
    assert (dead.outcome, dead.suspects.nodes, dead.suspects.pids) == ("hung", ("172.16.64.213",), (3487984,))


def test_a_job_that_moves_or_computes_does_not_hang(knowledge: Knowledge) -> None:
    places = (
        ["    conv (model.py:33)"],
        ["    norm (model.py:60)"],
        ["    backward (model.py:90)"],
        ["    attend (model.py:12)"],
    )
    busy = smi(dict.fromkeys(range(4), 97))
    healthy = ps(dict.fromkeys(range(4), "Rl"))
    once = judge(job(*(stack(rank, *frames) for rank, frames in enumerate(places)), busy, healthy), knowledge)
    assert (once.outcome, once.suspects.ranks) == ("unknown", ())
    assert "again after a minute" in once.root_cause
    later = [
        log_file(
            stack(rank, *places[(rank + 1) % 4]).lines
            and "\n".join(x.text for x in stack(rank, *places[(rank + 1) % 4]).lines),
            f"pyspy-{4000 + rank}.2.txt",
            "stacks",
        )
        for rank in range(4)
    ]
    twice = judge(job(*(stack(rank, *frames) for rank, frames in enumerate(places)), *later, busy, healthy), knowledge)
    assert (twice.outcome, twice.suspects.ranks) == ("healthy", ())


def test_what_other_processes_of_the_node_do_is_nothing_to_the_job(knowledge: Knowledge) -> None:
    rows = [
        PS,
        "    812    2 D    md_thread          9-02:10:11 [md127_raid1]",
        "   9000    1 T    do_signal_stop     00:10:11 vim notes.txt",
    ]
    d = judge(job(*others(0, 1, 2, 3), log_file("\n".join(rows), "ps.txt", "processes")), knowledge)
    assert (d.outcome, d.suspects.ranks, d.suspects.pids) == ("hung", (), ())


def test_ranks_that_nothing_tells_by_number_are_told_by_their_process(knowledge: Knowledge) -> None:
    """A shell started them, and only their program knows their ranks."""

    def unnamed(pid: int, *frames: str) -> LogFile:
        head = [f"Process {pid}: python ring.py", "Python v3.11.7 (/usr/bin/python3.11)", ""]
        text = [*head, f'Thread {pid} (idle): "MainThread"', *frames, "    train (ring.py:7)"]
        return log_file("\n".join(text), f"pyspy-{pid}.txt", "stacks")

    rows = ["   4000       1 S    do_wait                        02:10:11 bash run.sh"]
    rows += [f"   {4000 + n}    4000 S    -                              02:10:11 python ring.py" for n in (1, 2, 3, 4)]
    waiting = [unnamed(4000 + n, "    all_reduce (torch/distributed/distributed_c10d.py:3252)") for n in (1, 2, 4)]
    apart = unnamed(4003, "    time_sleep (libpython3.11.so.1.0)", "    stuck (ring.py:10)")
    states = log_file("\n".join([PS, *rows]), "ps.txt", "processes")
    found = judge(job(*waiting, apart, states), knowledge)
    assert (found.outcome, found.failure_type, found.suspects.pids) == ("hung", "hang", (4003,))
    assert "stuck (ring.py:10)" in found.root_cause


def again(rank: int, *frames: str) -> list[LogFile]:
    """Two looks in the same place."""
    first = stack(rank, *frames)
    text = "\n".join(line.text for line in first.lines)
    return [first, log_file(text, f"pyspy-{4000 + rank}.2.txt", "stacks")]


def test_groups_that_wait_for_each_other_are_both_named_and_none_is_accused(knowledge: Knowledge) -> None:
    reduce = ["    all_reduce (torch/distributed/distributed_c10d.py:2757)", "    step (train.py:40)"]
    gather = ["    all_gather (torch/distributed/distributed_c10d.py:3100)", "    gather (train.py:55)"]
    for others_ in (range(4, 8), range(4, 7)):
        files = [*(f for n in range(4) for f in again(n, *reduce)), *(f for n in others_ for f in again(n, *gather))]
        d = judge(job(*files), knowledge)
        assert (d.outcome, d.failure_type, d.status) == ("hung", "collective-mismatch", "supported")
        assert (d.suspects.ranks, d.suspects.pids) == ((), ())
        assert "Ranks 0-3 wait in all_reduce." in d.root_cause
        assert f"Ranks 4-{others_[-1]} wait in all_gather." in d.root_cause
    once = judge(job(*(stack(n, *(reduce if n < 4 else gather)) for n in range(8))), knowledge)
    assert once.status == "hypothesis"


def test_stages_of_a_pipeline_that_compute_are_no_suspects(knowledge: Knowledge) -> None:
    forward = ["    forward (model.py:12)"]
    recv = ["    recv (torch/distributed/distributed_c10d.py:2404)", "    recv_forward (p2p.py:9)"]
    stages = [*(f for n in range(4) for f in again(n, *forward)), *(f for n in range(4, 8) for f in again(n, *recv))]
    half = judge(job(*stages), knowledge)
    assert (half.suspects.ranks, half.status) == ((), "unknown")
    assert "pipeline" in half.root_cause
    one = [*again(0, *forward), *(f for n in range(1, 8) for f in again(n, *recv))]
    assert judge(job(*one), knowledge).suspects.ranks == (0,)


LEGAL: list[tuple[int, list[str]]] = [
    (0, ["    forward (model.py:12)"]),
    (2, ["    forward (model.py:12)", "    evaluate (train.py:77)"]),
    (1, ["    _save (torch/serialization.py:850)", "    save_checkpoint (ckpt.py:40)"]),
]


@pytest.mark.parametrize(("rank", "frames"), LEGAL)
def test_what_may_be_an_evaluation_or_a_checkpoint_is_a_guess_and_nothing_is_killed(
    rank: int, frames: list[str], knowledge: Knowledge
) -> None:
    files = [*again(rank, *frames), *(f for n in range(4) if n != rank for f in again(n, *BARRIER))]
    d = judge(job(*files), knowledge)
    assert (d.suspects.ranks, d.status, d.action) == ((rank,), "hypothesis", "wait")
    assert "It may be meant" in d.root_cause


def test_a_rank_that_loops_in_other_code_twice_is_none_of_these(knowledge: Knowledge) -> None:
    files = [*again(2, "    spin (mine.py:9)"), *(f for n in (0, 1, 3) for f in again(n, *BARRIER))]
    d = judge(job(*files), knowledge)
    assert (d.suspects.ranks, d.status, d.action) == ((2,), "supported", "kill-and-restart")


def test_dumps_that_were_cut_off_accuse_nobody(knowledge: Knowledge) -> None:
    def begun(rank: int, lines: int) -> LogFile:
        text = [line.text for line in stack(rank, *BARRIER).lines][:lines]
        return log_file("\n".join(text), f"pyspy-{4000 + rank}.txt", "stacks")

    cut = [begun(0, 1), begun(1, 4), begun(2, 5)]
    d = judge(job(*cut, *others(3, 4, 5, 6)), knowledge)
    assert (d.outcome, d.suspects.ranks) == ("hung", ())
    gone = judge(job(*cut[1:], *others(3, 4, 5, 6)), knowledge)
    assert gone.suspects.ranks == (0,), "of this one there is nothing at all"
    assert gone.status == "hypothesis"


def test_containers_have_each_a_process_1(knowledge: Knowledge) -> None:
    def pod(n: int, *frames: str, look: str = "") -> LogFile:
        text = ["Process 1: python train.py", "", 'Thread 1 (idle): "MainThread"', *frames, "    main (train.py:104)"]
        return log_file("\n".join(text), f"pod{n}{look}.txt", "stacks")

    d = judge(job(*(pod(n, *BARRIER) for n in range(7)), pod(7, "    read_shard (data.py:12)")), knowledge)
    assert (d.outcome, d.status, d.suspects.pids) == ("hung", "hypothesis", (1,))
    assert "pod7.txt" in d.root_cause
    assert d.stacks is not None
    assert sorted(c.processes for c in d.stacks.classes) == [1, 7]
    apart = [pod(7, "    read_shard (data.py:12)", look=look) for look in ("", ".2")]
    twice = judge(job(*(pod(n, *BARRIER, look=look) for look in ("", ".2") for n in range(7)), *apart), knowledge)
    assert twice.stacks is not None
    assert (twice.stacks.again, twice.status) == (8, "supported")


OOM = [
    "[12345.1] {name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "[12345.2] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/x,task_memcg=/x/y,task={name},pid={pid},uid=7",
    "[12345.3] Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:1000kB, anon-rss:900kB, file-rss:0kB, shmem-rss:0kB, UID:7 pgtables:1kB oom_score_adj:0",
]


def oom(name: str, pid: int) -> LogFile:
    return log_file("\n".join(line.format(name=name, pid=pid) for line in OOM), "dmesg.txt", "kernel", node="n7")


@pytest.mark.parametrize(("name", "pid"), [("java", 99999), ("python", 99998)])
def test_an_oom_kill_of_none_of_the_job_is_no_cause_beside_its_rank_in_the_kernel(
    name: str, pid: int, knowledge: Knowledge
) -> None:
    files = [stack(rank, *BARRIER, node="n7") for rank in (0, 1, 3)]
    states = ps(dict.fromkeys((0, 1, 3), "S") | {2: "D"}, {2: "nfs_wait_bit_killable"}, node="n7")
    d = judge(job(*files, states, oom(name, pid)), knowledge)
    assert verdict(d) == ("hung", "storage-error", "dependency-failure", (2,))
    assert all(e.role == "context" for e in d.evidence if e.file == "dmesg.txt")


def test_an_oom_kill_of_a_process_of_the_job_is_the_cause_where_it_is_missing(knowledge: Knowledge) -> None:
    files = [stack(rank, *BARRIER, node="n7") for rank in (0, 1, 3)]
    d = judge(job(*files, ps(dict.fromkeys((0, 1, 3), "S"), node="n7"), oom("python", 4002)), knowledge)
    assert d.failure_type == "host-out-of-memory"
    assert any(e.role == "root" for e in d.evidence if e.file == "dmesg.txt")
