"""The figures of an exhausted GPU memory, read and said."""

from __future__ import annotations

import pytest

from tests.diagnose.test_remedies import commands, knowledge
from tests.helpers import job
from triage.diagnose.judge import Knowledge, judge
from triage.diagnose.memory import FOREIGN, PIECES, read, told

__all__ = ["knowledge"]
HEAD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 3 has a total capacity of 79.15 GiB of which {} GiB is free. "
OWN = "Including non-PyTorch memory, this process has {} GiB memory in use. Of the allocated memory {} GiB is allocated by PyTorch, and {} is reserved by PyTorch but unallocated."
ALONE = HEAD.format("3.91", "1.62") + OWN.format("77.49", "76.10", "211.00 MiB")
NEIGHBOUR = (
    HEAD.format("3.91", "1.62")
    + "Process 1987654 has 14.02 GiB memory in use. "
    + OWN.format("63.49", "58.3", "4.02 GiB")
)
CUT_UP = HEAD.format("7.90", "8.17") + OWN.format("30.1", "20.0", "9.50 GiB")
OLD = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.59 GiB total capacity; 30.10 GiB already allocated; 1.20 GiB free; 36.00 GiB reserved in total by PyTorch)"


@pytest.mark.parametrize(("text", "kind"), [(ALONE, ""), (NEIGHBOUR, FOREIGN), (CUT_UP, PIECES), (OLD, PIECES)])
def test_whether_it_is_full_or_held_by_another_or_in_pieces(text: str, kind: str) -> None:
    found = read(text)
    assert found is not None and found.kind == kind


def test_what_is_no_such_message_has_no_figures() -> None:
    assert read("CUDA out of memory") is None
    assert read("RuntimeError: cublas failed") is None


def test_the_figures_are_said() -> None:
    said = {text: told(found) for text in (ALONE, NEIGHBOUR, CUT_UP) if (found := read(text))}
    assert said[ALONE] == "The model does not fit: this process itself holds 77.49 GiB of 79.15 GiB."
    assert (
        "process 1987654 holds 14.02 GiB of 79.15 GiB; without it the 3.91 GiB asked for would fit" in said[NEIGHBOUR]
    )
    assert said[CUT_UP].startswith(
        "Memory is in pieces rather than full: 7.9 GiB were asked for, and 8.17 GiB are free"
    )


def test_the_steps_follow_the_figures(knowledge: Knowledge) -> None:
    d = judge(job(f"Running on n1\n[n1] [rank3]: {NEIGHBOUR}"), knowledge)
    ends = next(step for step in d.remediation if step.step.startswith("End process 1987654"))
    smaller = next(step for step in d.remediation if "micro-batch" in step.step)
    assert ends.risk == "destructive" and d.remediation.index(ends) < d.remediation.index(smaller)
    assert "process 1987654 holds 14.02 GiB" in d.root_cause
    d = judge(job(CUT_UP), knowledge)
    assert next(s for s in d.remediation if s.risk != "read-only").step.startswith("Set PYTORCH_CUDA_ALLOC_CONF")
    assert sum("expandable_segments" in step.step for step in d.remediation) == 1
    d = judge(job(ALONE), knowledge)
    assert not any("End process" in step.step for step in d.remediation)
    assert "lfs" not in " ".join(commands(d))
