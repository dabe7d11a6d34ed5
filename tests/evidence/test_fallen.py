from __future__ import annotations

import pytest

from triage.domain import LogLine
from triage.evidence.fallen import Fallen, fallen, first_fallen

SUMMARY = """
E1129 19:41:47.291000 26365 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -11) local_rank: 2 (pid: 26384) of binary: /usr/bin/python
train.py FAILED
Failures:
[1]:
  time      : 2026-11-29_19:41:47
  host      : node-c
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 26382)
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_19:41:46
  host      : node-c
  rank      : 2 (local_rank: 2)
  exitcode  : -11 (pid: 26384) (SIGSEGV)
"""


def reports(text: str) -> tuple[Fallen, ...]:
    return fallen(LogLine("job.log", at, line) for at, line in enumerate(text.strip("\n").split("\n"), 1))


def test_the_summary_of_torchrun_names_the_first():
    found = reports(SUMMARY)
    assert [(r.ranks, r.node, r.pid, r.status, r.first, r.ended) for r in found] == [
        ((), None, 26384, "-11", False, False),
        ((0,), "node-c", 26382, "-15", False, True),
        ((2,), "node-c", 26384, "-11", True, False),
    ]
    assert first_fallen(found) is found[2]


def test_the_first_task_of_srun_that_was_not_ended_by_it():
    found = reports(
        "srun: error: n3: task 5: Terminated\nsrun: error: n2: task 3: Exited with exit code 1\n"
        "srun: error: n1: tasks 0-1,6: Exited with exit code 1"
    )
    assert [(r.ranks, r.node, r.ended, r.tasks) for r in found] == [
        ((5,), "n3", True, True),
        ((3,), "n2", False, True),
        ((0, 1, 6), "n1", False, True),
    ]
    assert first_fallen(found) is found[1]


def test_mpirun_names_rank_and_node():
    (found,) = reports("mpirun noticed that process rank 3 with PID 0 on node cn-112 exited on signal 9 (Killed).")
    assert (found.ranks, found.node, found.pid, found.first) == ((3,), "cn-112", None, True)


@pytest.mark.parametrize(
    "text",
    [
        "rank      : 2",
        "  rank      : two (local_rank: 2)",
        "  exitcode  : 1 (pid: 7)",
        "srun: error: Unable to create step",
        "srun: error: n1: tasks 9-: gone",
        "",
    ],
)
def test_other_lines_report_no_rank(text):
    assert first_fallen([r for r in reports(text) if r.ranks != (9,)]) is None


def test_a_range_without_end_is_bounded():
    (found,) = reports("srun: error: n1: tasks 0-99999999999: Aborted")
    assert len(found.ranks) <= 100_001


def test_hydra_names_rank_and_node_of_each_process_and_those_it_ended_came_later():
    block = "=   RANK {} PID 309{} RUNNING AT n210\n=   KILLED BY SIGNAL: {} ({})"
    found = reports("\n".join([block.format(64, 67, 15, "Terminated"), block.format(88, 91, 9, "Killed")]))
    first = first_fallen(found)
    assert first is not None
    assert (first.ranks, first.node, first.pid, first.status) == ((88,), "n210", 30991, "signal 9")
