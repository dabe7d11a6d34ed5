"""The process that stands elsewhere than most."""

from __future__ import annotations

import pytest

from tests.helpers import log_file
from triage.domain import LogFile
from triage.evidence.stacks import odd_ones

WAITS = [
    "    wait (torch/distributed/distributed_c10d.py:80)",
    "    barrier (torch/distributed/distributed_c10d.py:5356)",
]
READS = ["    readline (<frozen codecs>:322)", "    interaction (pdb.py:504)", "    report (tracker.py:29)"]


def pyspy(rank: int, *inner: str) -> LogFile:
    head = [f"Process {100 + rank}: python train.py --rank {rank}", "", 'Thread 1 (idle): "MainThread"']
    other = ["", 'Thread 2 (idle): "pin_memory"', "    run (uploader.py:5)"]
    text = [*head, *inner, "    main (train.py:104)", "    <module> (train.py:114)", *other]
    return log_file("\n".join(text), f"stack{rank}.txt", "stacks")


def test_the_odd_one_is_cited_by_the_deepest_line_of_its_own_code() -> None:
    ((stack, line),) = odd_ones([pyspy(0, *WAITS), pyspy(1, *WAITS), pyspy(2, *READS), pyspy(3, WAITS[1])])
    assert (stack.rank, line.file, line.text.strip()) == (2, "stack2.txt", "report (tracker.py:29)")


@pytest.mark.parametrize("inner", [(WAITS, WAITS, WAITS), (WAITS, READS), (WAITS, WAITS, READS, READS)])
def test_where_no_most_stand_together_or_all_do_none_is_odd(inner: tuple[list[str], ...]) -> None:
    assert odd_ones(pyspy(rank, *frames) for rank, frames in enumerate(inner)) == ()


def test_stacks_as_faulthandler_prints_them() -> None:
    def dump(rank: int, *frames: str) -> LogFile:
        text = [
            f"[monitor] rank {rank} (n1): no progress, dumping stacks",
            "Thread 0x00007f2a (most recent call first):",
        ]
        return log_file("\n".join([*text, *(f'  File "{f}", line 5 in f' for f in frames)]), f"r{rank}.txt", "stacks")

    waits = ("/usr/lib/python3.12/selectors.py", "/opt/app/pretrain.py")
    reads = ("/usr/lib/python3.12/queue.py", "/opt/app/data.py", "/opt/app/pretrain.py")
    ((stack, line),) = odd_ones([dump(0, *waits), dump(1, *waits), dump(2, *waits), dump(6, *reads)])
    assert (stack.rank, line.text.split('"')[1]) == (6, "/opt/app/data.py")
