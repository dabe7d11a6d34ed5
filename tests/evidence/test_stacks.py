"""Stacks of many processes as classes, and those that stand apart."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage.domain import LogFile
from triage.evidence.scene import Scene, scene

WAITS = [
    "    wait (torch/distributed/distributed_c10d.py:80)",
    "    barrier (torch/distributed/distributed_c10d.py:5356)",
]
REDUCES = ["    all_reduce (torch/distributed/distributed_c10d.py:2806)", "    average (sync.py:12)"]
READS = ["    readline (<frozen codecs>:322)", "    interaction (pdb.py:504)", "    report (tracker.py:29)"]
COMPUTES = ["    conv (model.py:33)", "    forward (model.py:70)"]
LAUNCHER = [
    "    _poll (torch/distributed/elastic/multiprocessing/api.py:850)",
    "    launch_agent (torch/distributed/launcher/api.py:260)",
]


def pyspy(rank: int, *inner: str, pid: int | None = None) -> str:
    pid = 100 + rank if pid is None else pid
    head = [f"Process {pid}: python train.py --rank {rank}", "Python v3.11.7 (/usr/bin/python3.11)", ""]
    other = ['Thread 2 (idle): "pin_memory"', "    run (uploader.py:5)"]
    return "\n".join(
        [
            *head,
            f'Thread {pid} (idle): "MainThread"',
            *inner,
            "    main (train.py:104)",
            "    <module> (train.py:114)",
            *other,
        ]
    )


def files(*inner: list[str]) -> list[LogFile]:
    return [log_file(pyspy(rank, *frames), f"stack{rank}.txt", "stacks") for rank, frames in enumerate(inner)]


def look(*given: LogFile) -> Scene:
    return scene(job(*given))


def odd(*inner: list[str]) -> list[int | None]:
    return [s.rank for s in look(*files(*inner)).odd]


def test_who_stands_in_no_collective_is_waited_for_and_cited_by_its_own_code() -> None:
    found = look(*files(WAITS, WAITS, READS, [WAITS[1]]))
    ((seen),) = found.odd
    assert (seen.rank, seen.doing, seen.line.file, seen.line.text.strip()) == (
        2,
        "debugger",
        "stack2.txt",
        "report (tracker.py:29)",
    )


@pytest.mark.parametrize(
    ("inner", "apart"),
    [
        ((WAITS, WAITS, WAITS), []),  # all wait
        ((WAITS, READS), [1]),
        ((WAITS, WAITS, READS, READS), [2, 3]),
        ((WAITS, COMPUTES, COMPUTES, COMPUTES), [0]),  # most stand in the very same line
        ((WAITS, COMPUTES, READS, LAUNCHER), []),
        ((WAITS, WAITS, WAITS, REDUCES), [3]),  # another collective
        ((WAITS, WAITS, REDUCES, REDUCES), []),  # nobody knows which
        ((WAITS, WAITS, WAITS, LAUNCHER), []),
    ],
)  # fmt: skip
def test_who_stands_apart(inner: tuple[list[str], ...], apart: list[int]) -> None:
    assert odd(*inner) == apart


def test_neighbours_of_a_pipeline_wait_in_different_places_by_design() -> None:
    sends = ["    send_forward (megatron/core/pipeline_parallel/p2p_communication.py:100)", "    schedule (sched.py:4)"]
    receives = [
        "    recv_forward (megatron/core/pipeline_parallel/p2p_communication.py:90)",
        "    warm_up (sched.py:3)",
    ]
    assert odd(receives, receives, receives, sends) == []


def test_classes_hold_their_ranks_and_where_one_is_to_be_read() -> None:
    stacks = look(*files(WAITS, WAITS, READS, WAITS)).stacks
    assert stacks is not None
    most, one = stacks.classes
    assert (most.ranks, most.pids, most.doing, most.odd) == ((0, 1, 3), (100, 101, 103), "collective", False)
    assert most.frames == ("<module> (train.py)", "main (train.py)")
    assert most.calls == "barrier (torch/distributed/distributed_c10d.py)"
    assert (one.ranks, one.odd, one.file, one.line) == ((2,), True, "stack2.txt", 7)


def test_missing_ranks_and_nodes_with_fewer_stacks() -> None:
    given = [
        log_file(pyspy(rank, *WAITS), f"s{rank}.txt", "stacks", node=f"n{rank // 4}") for rank in range(12) if rank != 6
    ]
    stacks = look(*given, log_file("world_size=12\nstart")).stacks
    assert stacks is not None
    assert (stacks.missing, stacks.fewer) == ((6,), (("n1", 1),))


def test_one_file_of_many_dumps_and_labels_of_srun_mixed() -> None:
    texts = [pyspy(rank, *(READS if rank == 2 else WAITS)).split("\n") for rank in range(4)]
    mixed = [
        f"{rank}: {texts[rank][at]}" for at in range(max(map(len, texts))) for rank in range(4) if at < len(texts[rank])
    ]
    whole = "\n".join(line for text in texts for line in text)
    for given in ("\n".join(mixed), whole):
        found = look(log_file(given, "all.txt", "stacks"))
        assert ([s.rank for s in found.seen], [s.rank for s in found.odd]) == ([0, 1, 2, 3], [2])


def test_labels_of_hosts_give_the_node() -> None:
    text = "\n".join(f"cn{rank // 2}: {line}" for rank in range(4) for line in pyspy(rank, *WAITS).split("\n"))
    assert [s.node for s in look(log_file(text, "pdsh.txt", "stacks")).seen] == ["cn0", "cn0", "cn1", "cn1"]


def test_looked_at_again_the_same_place_is_stuck_and_another_one_is_work() -> None:
    def twice(first: list[str], second: list[str]) -> Scene:
        both = [f"{pyspy(rank, *first)}\n\n{pyspy(rank, *second)}" for rank in range(3)]
        return look(*(log_file(text, f"r{rank}.txt", "stacks") for rank, text in enumerate(both)))

    stuck, working = twice(COMPUTES, COMPUTES).stacks, twice(COMPUTES, READS).stacks
    assert stuck is not None and working is not None
    assert (stuck.moving, stuck.again, working.moving, working.again) == (0, 3, 3, 0)


def test_stacks_as_faulthandler_prints_them() -> None:
    def dump(rank: int, *frames: str) -> LogFile:
        text = [
            f"[monitor] rank {rank} (n1): no progress, dumping stacks",
            "Thread 0x00007f2a (most recent call first):",
        ]
        return log_file("\n".join([*text, *(f'  File "{f}", line 5 in f' for f in frames)]), f"r{rank}.txt", "stacks")

    waits = ("/usr/lib/python3.12/selectors.py", "/opt/app/pretrain.py")
    reads = ("/usr/lib/python3.12/queue.py", "/opt/app/data.py", "/opt/app/pretrain.py")
    (seen,) = look(dump(0, *waits), dump(1, *waits), dump(2, *waits), dump(6, *reads)).odd
    assert (seen.rank, seen.line.text.split('"')[1]) == (6, "/opt/app/data.py")


def test_a_trace_of_calls_ends_where_the_process_stands() -> None:
    def trace(rank: int, *calls: str) -> LogFile:
        lines = [
            text
            for call in calls
            for text in (
                f" --- modulename: {call.split('.')[0]}, funcname: {call.split('.')[1]}",
                f"{call.split('.')[0]}.py(9):     x",
            )
        ]
        return log_file("\n".join(lines), f"trace_rank{rank}.txt", "stacks", rank=rank)

    found = look(
        *(trace(rank, "train.step", "distributed_c10d.barrier") for rank in range(3)),
        trace(3, "train.step", "lanes.split_data"),
    )
    assert [(s.rank, s.standing.seen.function) for s in found.odd] == [(3, "split_data")]
