"""Which rank and node: never without a line that says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.diagnose.conftest import Diagnose
from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, JobLog, LogFile, RawLine
from triage.evidence.match import Matcher
from triage.ingest.lines import LineParser
from triage.runbooks import runbooks

MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/gpfs/data/index.json'"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def said(knowledge: Knowledge, *texts: str) -> Diagnosis:
    return judge(JobLog((_parsed("\n".join(texts)),)), knowledge)


def _parsed(text: str) -> LogFile:
    raws = [RawLine(number, line.encode()) for number, line in enumerate(text.split("\n"), 1)]
    parser = LineParser("job.log", "job")
    parser.learn(raw.raw for raw in raws)
    lines = tuple(replace(parser.parse(raw, None), hot=True) for raw in raws)
    return LogFile("job.log", "job", lines, 1, len(lines), last_line=len(lines))


def places(nodes: int, each: int = 4) -> list[str]:
    return [f"{rank}: solver rank {rank} of {nodes * each} on bn{rank // each:02d}" for rank in range(nodes * each)]


def test_a_node_all_of_whose_ranks_miss_what_the_others_find_is_the_suspect(knowledge: Knowledge) -> None:
    d = said(knowledge, *places(4), *[f"{rank}: {MISSING}" for rank in range(4, 8)])
    assert (d.failure_type, d.suspects.nodes) == ("file-not-found", ("bn01",))


@pytest.mark.parametrize(("nodes", "ranks"), [(2, range(4, 8)), (4, range(5, 8)), (4, range(16))])
def test_no_node_is_suspected_that_is_not_the_odd_one(knowledge: Knowledge, nodes: int, ranks: range) -> None:
    """One of two; a part of a node's ranks; all of them."""
    d = said(knowledge, *places(nodes), *[f"{rank}: {MISSING}" for rank in ranks])
    assert d.suspects.nodes == ()


def test_where_the_cause_names_no_rank_the_process_that_fell_first_does(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        "RuntimeError: CUDA error: device-side assert triggered",
        "srun: error: n2: task 3: Exited with exit code 1",
        "srun: error: n1: tasks 0-1: Exited with exit code 1",
        "srun: error: n2: task 2: Terminated",
    )
    assert d.suspects.ranks == (3,)


def test_tasks_that_are_launchers_are_no_ranks(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        "[rank9]: hello",
        "RuntimeError: CUDA error: device-side assert triggered",
        "srun: error: n2: task 1: Exited with exit code 1",
        "srun: error: n1: task 0: Terminated",
    )
    assert d.suspects.ranks == ()


def test_an_unknown_failure_still_says_which_rank_fell_first(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        "starting",
        *[f"{rank}: ready" for rank in range(8)],
        "srun: error: r319: task 5: Exited with exit code 1",
    )
    assert (d.failure_type, d.outcome, d.suspects.ranks) == ("unknown", "failed", (5,))
    assert any(e.line == 10 for e in d.evidence)


def test_the_one_rank_that_reports_no_lost_peer_is_the_one_that_went(knowledge: Knowledge) -> None:
    cause = "../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [3,0,0], thread: [7,0,0] Assertion `-sizes[i] <= index` failed."
    peers = [
        f"[rank{rank}]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:7601"
        for rank in range(8)
    ]
    assert said(knowledge, cause, *peers[:4], *peers[5:]).suspects.ranks == (4,)
    assert said(knowledge, cause, *peers[:2], *peers[6:]).suspects.ranks == ()  # too many say nothing
    assert said(knowledge, cause, *peers).suspects.ranks == ()


def test_the_minority_of_a_mismatch_is_suspected(knowledge: Knowledge) -> None:
    text = (
        "[rank{}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {} is running collective: "
        "CollectiveFingerPrint(SequenceNumber=7, OpType={}), but Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE)."
    )
    d = said(knowledge, *[text.format(rank, rank, "BARRIER") for rank in (1, 2, 3)])
    assert (d.failure_type, d.suspects.ranks) == ("collective-mismatch", (0,))


OCCUPIED = (
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.00 MiB. GPU 2 has a total capacity of 79.25 GiB of which "
    "17.44 MiB is free. Process 48113 has {} GiB memory in use. Including non-PyTorch memory, this process has 7.93 GiB memory in use."
)
SUMMARY = ["Root Cause (first observed failure):", "  host      : gpu07", "  rank      : 2 (local_rank: 2)", "  exitcode  : 1 (pid: 66946)"]  # fmt: skip


@pytest.mark.parametrize(
    ("held", "more", "nodes"),
    [("71.28", "", ("gpu07",)), ("0.40", "", ()), ("71.28", "rank 1 started, pid: 48113", ())],
)
def test_a_gpu_that_another_jobs_process_fills_is_a_fault_of_its_node(
    knowledge: Knowledge, held: str, more: str, nodes: tuple[str, ...]
) -> None:
    d = said(knowledge, more, OCCUPIED.format(held), *SUMMARY)
    assert (d.failure_type, d.suspects.nodes) == ("out-of-memory", nodes)
    assert (d.action == "restart-excluding") == bool(nodes)


def test_the_node_of_a_pod_is_the_one_that_its_description_names(knowledge: Knowledge) -> None:
    pod = "Name: w-1\nNode: {0}/10.8.3.27\nStatus: Failed\nMessage: error creating nvml.Device 5: nvml: GPU is lost"
    d = judge(job(log_file(pod.format("cvm-27"), "describe.txt", "kubernetes")), knowledge)
    assert (d.failure_type, d.suspects.nodes) == ("gpu-lost", ("cvm-27",))


def test_a_machine_that_the_cloud_took_is_named(knowledge: Knowledge) -> None:
    d = said(knowledge, "default   151s   Warning   PreemptScheduled   node/aks-spot-000005   Preempt Scheduled")
    assert (d.failure_type, d.suspects.nodes, d.action) == ("preempted", ("aks-spot-000005",), "restart")


def test_a_node_whose_own_daemon_starts_nothing_is_suspected(knowledge: Knowledge) -> None:
    failed = "[2023-02-21T08:37:28.920] error: [job 40318] prolog failed status=1:0"
    d = judge(job(log_file(failed, "slurmd-pg-17.log", "slurm", node="pg-17")), knowledge)
    assert (d.suspects.nodes, d.action) == (("pg-17",), "restart-excluding")


def test_a_process_of_which_hccl_says_the_rank_is_that_rank(knowledge: Knowledge) -> None:
    d = said(
        knowledge,
        *(f"[a2-0{16 + r // 2}] rank {r} device {r % 2} ip 10.20.1.{16 + r // 2}" for r in range(4)),
        "[INFO] HCCL(67527,python):2025-06-11-03:09:58.706.151 [op_base.cc:421]Entry-HcclCommInitRootInfo:ranks[4], rank[3], rootinfo: host",
        "[ERROR] HCCL(67527,python):2025-06-11-03:09:58.859.569 [HcclSocket][Listen] socket type[1], listen on ip[10.20.1.17] and specific port[16666] fail.",
    )
    assert (d.failure_type, d.suspects.ranks, d.suspects.nodes) == ("connection-error", (3,), ("a2-017",))


def test_the_label_of_srun_is_the_rank_where_the_program_agrees(knowledge: Knowledge) -> None:
    agreed = [f"{r}: [rank{r}]: loaded" for r in range(24)]
    hang = "21: HW Exception by GPU node-7 (Agent handle: 0x9d41f20) reason :GPU Hang"
    assert judge(job("\n".join([*agreed, hang])), knowledge).suspects.ranks == (21,)
    launchers = [f"{r // 8}: [rank{r}]: loaded" for r in range(24)]
    assert judge(job("\n".join([*launchers, hang.removeprefix("2")])), knowledge).suspects.ranks == ()


def test_memory_that_ran_out_on_one_of_the_nodes_names_it_and_its_killed_task(knowledge: Knowledge) -> None:
    kill = "[1.2] Memory cgroup out of memory: Killed process 111 (python3) total-vm:1kB, anon-rss:1kB"
    kernels = [
        log_file(kill if n == 2 else "[1.1] docker0: port 2 entered disabled state", f"dmesg-ng{n}.txt", "kernel", node=f"ng{n}")
        for n in (1, 2, 3)
    ]  # fmt: skip
    ends = "srun: error: ng1: task 0: Aborted (core dumped)\nsrun: error: ng2: task 1: Killed\nsrun: error: ng3: task 2: Aborted (core dumped)"
    d = judge(job(ends, *kernels), knowledge)
    assert (d.failure_type, d.suspects.nodes, d.suspects.ranks) == ("host-out-of-memory", ("ng2",), (1,))


def test_a_cpu_of_another_type_is_on_the_node_that_traps(knowledge: Knowledge) -> None:
    trap = "[7712.1] traps: lmp[88192] trap invalid opcode ip:b51ec2 sp:7ffc81bf670e error:0 in lmp[400000+a10000]"
    cpus = "\n".join(f"c3-05{n}: Model name: CPU {n == 5}" for n in (1, 2, 5))
    d = judge(job(cpus, log_file(trap, "journal.txt", "kernel", node="c3-055")), knowledge)
    assert (d.root_cause_class, d.suspects.nodes) == ("dependency-failure", ("c3-055",))


def test_a_step_that_may_be_another_ranks_does_not_undo_a_crash_that_speaks_of_a_retry(knowledge: Knowledge) -> None:
    worked = [f"iteration {n}/ 1000 | lm loss: 2.{n} | elapsed time per iteration (ms): 500.1" for n in range(1, 9)]
    crash = "[rank3]: OSError: [Errno 28] No space left on device: '/ckpt/8.pt', retrying"
    assert said(knowledge, *worked[:4], crash, *worked[4:5]).failure_type == "disk-full"
    assert said(knowledge, *worked[:4], crash, *worked[4:]).outcome == "healthy"


def _watchdogs(ranks: Iterable[int], group: str = "", minute: int = 12) -> str:
    return "\n".join(
        f"[rank{r}]:[E0304 02:{minute}:50.167909 ProcessGroupNCCL.cpp:632] [{group}Rank {r}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1000, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
        for r in ranks
    )  # fmt: skip


def _all_but(count: int, *quiet: int) -> list[int]:
    return [r for r in range(count) if r not in quiet]


@pytest.mark.parametrize("quiet", [0, 7, 13])
def test_the_one_rank_of_which_there_is_no_line_was_waited_for(knowledge: Knowledge, quiet: int) -> None:
    assert judge(job(_parsed(_watchdogs(_all_but(16, quiet)))), knowledge).suspects.ranks == (quiet,)


def test_the_last_rank_is_missed_by_the_size_that_the_job_prints(knowledge: Knowledge) -> None:
    said = "n1:4000:4500 [0] NCCL INFO comm 0x55 rank 0 nranks 16 cudaDev 0 busId 1b000 - Init COMPLETE"
    assert judge(job(_parsed(f"{said}\n{_watchdogs(_all_but(16, 15))}")), knowledge).suspects.ranks == (15,)
    of_a_few = judge(job(_parsed(f"{said}\n{_watchdogs(range(7))}")), knowledge)
    assert of_a_few.suspects.ranks == ()  # of another group's ranks nothing is known


def test_a_node_all_of_whose_ranks_are_quiet_is_named(knowledge: Knowledge) -> None:
    text = _watchdogs(_all_but(24, *range(8, 16)))
    hosts = log_file("worker-0 slots=8\nworker-1 slots=8\nworker-2 slots=8", "hostfile")
    found = judge(job(_parsed(text), hosts), knowledge).suspects
    assert (found.nodes, found.ranks) == (("worker-1",), tuple(range(8, 16)))
    listed = f"SLURM_JOB_NODELIST=nid[001-003]\nSLURM_NTASKS_PER_NODE=8\n{text}"
    assert judge(job(_parsed(listed)), knowledge).suspects.nodes == ("nid002",)


def test_the_group_that_waited_first_is_cited_first(knowledge: Knowledge) -> None:
    late = _watchdogs([0, 1], "PG ID 1 PG GUID 1(data) ", 13)
    first = _watchdogs([2, 3], "PG ID 2 PG GUID 2(tensor) ", 12)
    d = judge(job(_parsed(f"[2026-03-04 02:01:00] start\n{late}\n{first}")), knowledge)
    assert d.evidence[0].line == 4


@pytest.mark.parametrize(
    "line",
    [
        "srun: error: Node failure on a;rm -rf ~",
        "srun: error: Node failure on n1'$(id)'",
        "slurmstepd: error: *** STEP 9.0 ON a;reboot CANCELLED AT 2026-03-04T02:20:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        "srun: error: Node failure on n1`id`",
        "srun: error: Node failure on --all",
    ],
)
def test_a_name_with_foreign_characters_is_not_cut_to_anothers(diagnosed: Diagnose, line: str) -> None:
    d = diagnosed({"out.txt": "step 1 loss 2.0\n" + line + "\n"})
    assert (d.failure_type, d.suspects.nodes) == ("node-failure", ())


def test_a_task_that_jax_lists_as_unhealthy_is_the_suspect(diagnosed: Diagnose) -> None:
    lost = (
        "F0501 10:30:00.000000 88 client.h:80] Terminating process because the JAX distributed service detected fatal errors. This most "
        "likely indicates that another task died; see the other task logs for more details. absl::Status: UNAVAILABLE: The following "
        "tasks are unhealthy (stopped sending heartbeats):\n/job:jax_worker/replica:0/task:5\n"
    )
    d = diagnosed({"out.txt": "step 1 loss 2.0\n" + lost})
    assert (d.failure_type, d.suspects.ranks) == ("node-failure", (5,))


def test_a_node_that_the_scheduler_took_out_is_the_suspect(knowledge: Knowledge) -> None:
    own = [f"{r}: rank {r} of 8 on gpu{r // 4:02d}" for r in range(8)]
    error = [
        "[rank5]: RuntimeError: CUDA error: unspecified launch failure",
        "srun: error: gpu01: task 5: Exited with exit code 1",
    ]
    drained = "[2026-03-12T05:16:02.000] update_node: node gpu01 reason set to: gpu check failed"
    mine = _parsed("\n".join([*own, *error]))
    d = judge(job(mine, log_file(drained, "slurmctld.log", "slurm")), knowledge)
    assert (d.failure_type, d.suspects.nodes, d.action) == ("cuda-error", ("gpu01",), "restart-excluding")
    assert any(e.text == drained and e.role == "context" for e in d.evidence)
    other = judge(job(mine, log_file(drained.replace("gpu01", "cpu77"), "slurmctld.log", "slurm")), knowledge)
    assert other.suspects.nodes == ()
    assert all(e.file != "slurmctld.log" for e in other.evidence)


def test_what_every_process_reports_is_no_ranks_own_fault(knowledge: Knowledge) -> None:
    error = "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in f\n    use(x)\nNameError: name 'x' is not defined"
    ended = ["srun: error: n1: task 0: Exited with exit code 1", "srun: error: n1: tasks 1-7: Exited with exit code 1"]
    assert said(knowledge, *error.split("\n"), *ended).suspects.ranks == tuple(range(8))
    one = [ended[0].replace("task 0", "task 3"), "srun: error: n1: tasks 0-2,4-7: Terminated"]
    assert said(knowledge, *error.split("\n"), *one).suspects.ranks == (3,)
    many = [line for _ in range(8) for line in error.split("\n")]
    assert said(knowledge, *many, ended[0]).suspects.ranks == ()


def test_where_all_others_lost_a_peer_it_is_the_rank_that_tells_of_none(knowledge: Knowledge) -> None:
    steps = "\n".join(f"[rank{{r}}] iteration {n}/ 1000 | loss: 0.1" for n in range(1, 9))
    peer = "[rank{r}]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Read error [10.0.0.2]:3521: Connection reset by peer"

    def log(rank: int, end: str = "") -> LogFile:
        made = log_file(f"{steps}\n{end}".format(r=rank), f"rank_{rank}.log", rank=rank)
        return replace(made, lines=tuple(replace(line, rank=rank) for line in made.lines))

    d = judge(job(log(0, peer), log(1), log(2, peer)), knowledge)
    assert (d.failure_type, d.suspects.ranks) == ("connection-error", (1,))
    assert "Rank 1 tells of no lost peer" in d.root_cause
    both = judge(job(log(0, peer), log(1, peer)), knowledge)
    assert "tells of no lost peer" not in both.root_cause


UNCORRECTED = "[12.000001] EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 slot:0)"


def test_a_kernel_log_without_a_host_is_that_of_the_node_which_was_lost(knowledge: Knowledge) -> None:
    kernel = log_file(UNCORRECTED, "dmesg", "kernel")
    d = judge(job(kernel, log_file("frame 12 ok\nsrun: error: Node failure on gpu09")), knowledge)
    assert (d.failure_type, d.suspects.nodes) == ("ecc-error", ("gpu09",))
    two = "srun: error: Node failure on gpu09\nsrun: error: Node failure on gpu11"
    d = judge(job(kernel, log_file(two)), knowledge)
    assert d.suspects.nodes == ()
