"""Who is who among the processes of a hung job: states, GPUs, refusals, ranks and nodes from several files."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage.domain import LogFile
from triage.evidence import gpus, manifest, mounts, procstate
from triage.evidence.dumps import dumps
from triage.evidence.scene import scene
from triage.ingest.content import kind_of


def states(text: str, name: str = "ps.txt") -> list[tuple[int, str, str, str | None]]:
    return [(s.pid, s.letter, s.wchan, s.node) for s in procstate.states([log_file(text, name, "processes")])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    PID STAT WCHAN  CMD\n   4711 Dl   rpc_wait python t.py\n", ("D", "rpc_wait")),
        ("USER  PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nana  4711  117  4.6 1751 2449 ? Dl  00:36 291:14 python", ("D", "")),
        ("ana  4711  117  4.6 1751 2449 ? Dl  00:36 291:14 python", ("D", "")),
        ("F S   UID     PID    PPID  C PRI  NI ADDR SZ WCHAN  TTY          TIME CMD\n0 D  1000    4711    4700  0  80   0 -  1234 folio_ ?   00:00:00 python", ("D", "folio_")),
        ("top - 10:01:02 up 3 days\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n   4711 ana       20   0   10.0g   1.2g 100000 D   0.0   4.6 291:14.12 python", ("D", "")),
        ("== /proc/4711/status\nName:\tpython\nState:\tD (disk sleep)\nPid:\t4711\n== /proc/4711/wchan\ncl_sync_io_wait\n== /proc/4711/syscall\nrunning", ("D", "cl_sync_io_wait")),
        ("4711 (python) D 4700 4700 1 0 -1", ("D", "")),
        ("### gpu-07: ps -eo pid,stat,wchan:32,etime,args | grep train\n  4711 Dl   nfs_wait_on_request   12:47:21 python rank=9", ("D", "nfs_wait_on_request")),
    ],
)  # fmt: skip
def test_states_of_processes_as_tools_print_them(text: str, expected: tuple[str, str]) -> None:
    assert [(pid, letter, wchan) for pid, letter, wchan, _ in states(text)] == [(4711, *expected)]


def test_a_process_whose_number_has_no_end_is_none() -> None:
    nines = "9" * 5000
    assert states(f"PID PPID STAT CMD\n{nines} 1 S python\n12 {nines} S python\n", "ps.txt") == [(12, "S", "", None)]


def test_headings_give_the_node() -> None:
    rows = "  41 Rl - 1:00 python\n"
    for head in ("### gpu-07: ps -eo pid,stat,wchan,etime,args\n", "==> gpu-07 <==\nPID STAT WCHAN ELAPSED CMD\n"):
        assert states(head + rows) == [(41, "R", "", "gpu-07")]
    assert states("----------------\ngpu-07\n----------------\nPID STAT WCHAN ELAPSED CMD\n" + rows) == [
        (41, "R", "", "gpu-07")
    ]


TABLE = """+-----+
| NVIDIA-SMI 525.60.13    Driver Version: 525.60.13    CUDA Version: 12.0     |
|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    0 |
| N/A   28C    P0    68W / 400W |  22377MiB / 81920MiB |      0%      Default |
|   1  NVIDIA A100-SXM...  On   | 00000000:0B:00.0 Off |                    0 |
| N/A   30C    P0    87W / 400W |  15995MiB / 81920MiB |    100%      Default |
|    0   N/A  N/A    280058      C   ...-m4-2023-02-28/bin/python    22374MiB |
|    1   N/A  N/A     19501      G   /usr/libexec/Xorg                  63MiB |
|    1   N/A  N/A    280059      C   ...-m4-2023-02-28/bin/python    15992MiB |
"""
QUERY = """==============NVSMI LOG==============
Attached GPUs                             : 2
GPU 00000000:07:00.0
    FB Memory Usage
        Used                              : 22377 MiB
    Utilization
        Gpu                               : 0 %
    Processes
        Process ID                        : 280058
GPU 00000000:0B:00.0
    FB Memory Usage
        Used                              : 15995 MiB
    Utilization
        Gpu                               : 100 %
    Processes
        Process ID                        : 280059
"""
CSV = "### n1: nvidia-smi --query-gpu=index,utilization.gpu,power.draw,memory.used --format=csv,noheader\n0, 0 %, 70.58 W, 61872 MiB\n1, 100 %, 114 W, 62000 MiB\n"
HEADED = "power.draw [W], utilization.gpu [%], fan.speed [%], temperature.gpu\n67.97 W, 0 %, [N/A], 28\n87.12 W, 100 %, [N/A], 30\n"
ROCM = """========== ROCm System Management Interface ==========
GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
0    35.0c           90.0W   800Mhz  1600Mhz  0%   auto  300.0W   40%   0%
1    45.0c           290.0W  1700Mhz 1600Mhz  0%   auto  300.0W   40%   100%
"""
NPU = """| npu-smi 23.0.0                   Version: 23.0.0                                                |
| 0     910B3               | OK            | 93.6        41                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          30161 / 65536        |
| 1     910B3               | OK            | 300.6       55                0    / 0             |
| 0                         | 0000:C2:00.0  | 100         0    / 0          30161 / 65536        |
| 0       0                 | 280058        | python3.8                | 3111                    |
"""


@pytest.mark.parametrize(
    "text", [TABLE, QUERY, CSV, HEADED, ROCM, NPU], ids=["table", "query", "csv", "headed", "rocm", "npu"]
)
def test_gpus_as_tools_print_them(text: str) -> None:
    found, held = gpus.read([log_file(text, "smi.txt", "fabric")])
    assert [(g.index, g.busy) for g in found] == [(0, 0), (1, 100)]
    assert {h.pid for h in held} <= {280058, 280059}


def test_a_row_whose_numbers_have_no_end_is_none() -> None:
    head = "### n1: nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader\n"
    nines = "9" * 5000
    found, _ = gpus.read(
        [log_file(f"{head}{nines}, 0 %, 1 MiB\n1, {nines} %, 1 MiB\n2, 7 %, {nines} MiB\n", "smi.txt")]
    )
    assert [(gpu.index, gpu.busy, gpu.used) for gpu in found] == [(2, 7, None)]


def test_an_idle_gpu_counts_where_all_others_are_busy_and_it_is_held() -> None:
    def reading(*busy: int, used: int = 40000) -> list[gpus.Gpu]:
        line = log_file("x").lines[0]
        return [gpus.Gpu(n, "", percent, used, line, "n1") for n, percent in enumerate(busy)]

    assert [g.index for g in gpus.idle_among_busy(reading(100, 100, 0, 100), [])] == [2]
    for none in (
        reading(100, 0, 0, 100),
        reading(100, 50, 0, 100),
        reading(0, 0, 0, 0),
        reading(100, 100, 0, 100, used=5),
    ):
        assert gpus.idle_among_busy(none, []) == []


@pytest.mark.parametrize(
    ("text", "pid", "denied"),
    [
        ("Process 4711: python\nError: Failed to suspend process\nReason: EPERM: Operation not permitted", 4711, True),
        ("strace -p 4711\nstrace: attach: ptrace(PTRACE_SEIZE, 4711): Operation not permitted", 4711, True),
        ("# py-spy dump --native --pid 4711: no answer within 10 s", 4711, False),
    ],
)
def test_tools_that_were_refused(text: str, pid: int, denied: bool) -> None:
    (dump,) = dumps(log_file(text, "log.txt", "stacks"))
    assert (dump.pid, dump.refused is not None, dump.denied, dump.threads) == (pid, True, denied, [])


def test_a_stack_that_a_later_attempt_got_is_no_refusal() -> None:
    text = '# py-spy dump --native --pid 4711: exit code 1\nError: Failed to suspend process\nReason: EPERM\nProcess 4711: python\nThread 4711 (idle): "MainThread"\n    f (a.py:1)'
    (process,) = scene(job(log_file(text, "pyspy-4711.txt", "stacks"))).processes
    assert (process.refused, len(process.dumps)) == (None, 1)


def test_gdb_names_threads_libraries_and_the_process() -> None:
    text = """Thread 2 (Thread 0x7f1 (LWP 4712) "cuda-EvtHandlr"):
#0  0x00007fcbfcb1 in poll () from /lib/x86_64-linux-gnu/libc.so.6
Thread 1 (Thread 0x7fcb (LWP 4711) "solver"):
#0  0x00007fcbfcaed545 in MPI_Allreduce (buf=0x1) at allreduce.c:48
#1  0x00005555 in exchange (grid=0x1) at /home/ana/halo.c:21
#2  0x00005556 in main () at /home/ana/main.c:9
[Inferior 1 (process 4711) detached]
"""
    (seen,) = scene(job(log_file(text, "bt.txt", "stacks"))).seen
    assert (seen.pid, seen.doing, seen.standing.call_name) == (4711, "collective", "MPI_Allreduce")
    assert [frame.function for frame in seen.standing.own] == ["main", "exchange"]


def transcript() -> LogFile:
    """As a person notes down what they saw, on a node that they went to."""
    return log_file(
        "srun: error: gpu-a1: task 0: Terminated\nsrun: error: gpu-a2: task 1: Terminated\nssh gpu-a2\n" + TABLE
        + "ana   280058  117  4.6 1751720 2449473 ? Dl  00:36 291:14 python\nana   280059 87.9  4.4 1750856 2352696 ? Rl  00:36 217:52 python\nUSER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
        "notes.md",
    )  # fmt: skip


def test_a_rank_by_the_order_of_nodes_and_the_place_on_its_node() -> None:
    found = {p.pid: p for p in scene(job(transcript())).processes}
    assert (found[280058].rank, found[280058].gpu, found[280058].node) == (2, 0, "gpu-a2")
    assert (found[280059].rank, found[280058].state and found[280058].state.letter) == (3, "D")


MANIFEST = """{
 "schema": "triage.collected/1",
 "nodes": [
  {
   "node": "n1",
   "problem": "",
   "seconds": 1.1
  },
  {
   "node": "n2",
   "problem": "no answer within 60 s",
   "seconds": 60.0
  }
 ],
 "processes": [
  {
   "node": "n1",
   "pid": 4711,
   "rank": 5,
   "is_python": true
  }
 ],
 "commands": [
  {
   "node": "n1",
   "pid": 4711,
   "tool": "py-spy dump",
   "code": null,
   "seconds": 10.0,
   "problem": "no answer within 10 s",
   "file": ""
  },
  {
   "node": "n1",
   "pid": null,
   "tool": "rocm-smi",
   "problem": "there is no rocm-smi",
   "file": ""
  }
 ]
}"""


def test_the_manifest_names_ranks_failures_and_silent_nodes_by_line() -> None:
    told = manifest.read([log_file(MANIFEST, "hang/manifest.json", "processes")])
    assert (told.ranks, told.nodes) == ({("n1", 4711): 5}, 2)
    assert [(f.node, f.pid, f.tool, f.line.number) for f in told.failed] == [("n1", 4711, "py-spy dump", 30)]
    assert [(s.node, s.line.number) for s in told.silent] == [("n2", 11)]


def test_the_rank_of_an_environment_is_that_of_the_variable_nearest_to_the_program() -> None:
    """As of torchrun under mpirun under srun; a launcher that carries a number beside ranks that have their own is none."""
    told = manifest.read([log_file(MANIFEST, "hang/manifest.json", "processes")]).members
    files = [
        log_file("OMPI_COMM_WORLD_RANK=1\nRANK=5\nSLURM_PROCID=2\n", "env-4711.txt", "processes", node="n1"),
        log_file("RANK=1\n", "env-4710.txt", "processes", node="n1"),
    ]
    ps = log_file("PID STAT COMMAND\n4710 S torchrun\n4711 S python\n", "ps.txt", "processes", node="n1")
    alone = {p.pid: p.rank for p in scene(job(*files, ps)).processes}
    assert alone == {4710: 1, 4711: 5}
    beside = (*told, manifest.Member("n1", 4710, 1, None, "torchrun"))
    assert {p.pid: p.rank for p in scene(job(*files, ps), beside).processes} == {4710: None, 4711: 5}


def test_file_systems_that_did_not_answer() -> None:
    text = "answers 0.0 ext4 / /dev/sda1\nhangs 5 nfs4 /scratch nas:/scratch\nfails:Stale-file-handle 0.0 nfs /home nas:/home\nunasked 0 proc /proc proc\n"
    sick = mounts.sick([log_file(text, "n1/mounts.txt", "processes", node="n1")])
    assert [(m.how, m.point, m.line.number, m.node) for m in sick] == [
        ("hangs", "/scratch", 2, "n1"),
        ("fails:Stale-file-handle", "/home", 3, "n1"),
    ]


GDB_OF_C = """Process 4711: ring
Thread 2 (Thread 0x7f1 (LWP 4712) "progress"):
#0  0x00007f0 in __GI_epoll_wait (epfd=...) at ../sysdeps/unix/sysv/linux/epoll_wait.c:30
Thread 1 (Thread 0x7f0 (LWP 4711) "ring"):
#0  0x00007f1 in __GI___libc_read (fd=..., buf=...) at ../sysdeps/unix/sysv/linux/read.c:26
#1  0x0000562 in receive ()
#2  0x0000563 in main ()
"""
EU_STACK = """PID 4711 - process
TID 4711:
#0  0x00007f8d2dc2f2ad read - /usr/lib/x86_64-linux-gnu/libc.so.6
#1  0x000055e8247451c2 receive - /home/ana/ring
#2  0x000055e8247452a5 main - /home/ana/ring
#3  0x00007f8d2db5e24a __libc_start_call_main - /usr/lib/x86_64-linux-gnu/libc.so.6
#4  0x000055e8247450c1 _start - /home/ana/ring
TID 4712:
#0  0x00007f8d2dc2f2ad epoll_wait - /usr/lib/x86_64-linux-gnu/libc.so.6
"""


@pytest.mark.parametrize("text", [GDB_OF_C, EU_STACK])
def test_a_program_of_c_is_read_without_its_lines(text: str) -> None:
    assert kind_of("stack-4711.txt", text) == "stacks"
    (seen,) = scene(job(log_file(text, "stack-4711.txt", "stacks"))).seen
    assert (seen.pid, [frame.function for frame in seen.standing.own]) == (4711, ["main", "receive"])
    assert (seen.doing, seen.standing.call_name.rpartition("_")[2]) == ("native", "read")


@pytest.mark.parametrize("value", ["true", "-1", "1000000000000000000", "1.5", '"3"', "null"])
def test_a_rank_that_is_no_rank_is_none(value: str) -> None:
    text = f'{{\n "schema": "triage.collected/1",\n "processes": [\n  {{\n   "node": "n1",\n   "pid": 7,\n   "rank": {value}\n  }}\n ]\n}}'
    told = manifest.read([log_file(text, "manifest.json", "processes")])
    assert [(m.pid, m.rank) for m in told.members] == [(7, None)]


def test_a_manifest_that_nests_without_end_is_read_as_far_as_it_goes() -> None:
    text = '{\n  "node": "n1",\n  "problem": ' + "[" * 200_000 + '\n}\n{\n  "node": "n2",\n  "problem": "no answer"\n}'
    told = manifest.read([log_file(text, "manifest.json", "processes")])
    assert [(s.node, s.problem) for s in told.silent] == [("n2", "no answer")]
    assert told.nodes == 2
