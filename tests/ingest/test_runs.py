from __future__ import annotations

import pytest

from triage.domain import LogLine
from triage.ingest.runs import ended_how, telling


def lines(*texts: str) -> list[LogLine]:
    return [LogLine("job.out", number, text) for number, text in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("texts", "outcome", "number"),
    [
        (
            ["step 1", "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2025-01-01T01:00:00 DUE TO TIME LIMIT ***"],
            "interrupted",
            2,
        ),
        # what the shutdown prints behind it does not decide
        (
            ["*** JOB 9 ON n1 CANCELLED AT 2025-01-01T01:00:00 ***", "RuntimeError: aborted", "Training completed"],
            "interrupted",
            1,
        ),
        (
            ["slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-01-01T01:00:00 DUE TO NODE FAILURE ***"],
            "failed",
            1,
        ),
        (["step 1", "ValueError: bad", "  exitcode  : 1 (pid: 77)", "====="], "failed", 3),
        (["[rank3]: torch.OutOfMemoryError: CUDA out of memory."], "failed", 1),
        (["RuntimeError: tried again", "Success rate: 40.6%", ""], "healthy", 2),
        (["job 12 completed"], "healthy", 1),
        (["training not completed"], "unknown", None),
        (["step 1", "step 2"], "unknown", None),
        ([], "unknown", None),
        (["ValueError: long ago", *["step"] * 100], "unknown", None),
    ],
)
def test_how_a_run_ended(texts: list[str], outcome: str, number: int | None) -> None:
    found, text, line = ended_how(lines(*texts))
    assert (found, line) == (outcome, number)
    assert text == (texts[number - 1] if number else "")


def test_of_an_earlier_run_the_lines_that_say_how_it_ended_are_kept():
    found = lines(
        "hello", "step 1", "ValueError: no", "step 2", "Run completed", "*** JOB 9 ON n1 CANCELLED AT 2025 ***", "bye"
    )
    assert [line.number for line in telling(found, 5)] == [3, 5, 6]
    assert len(telling(lines(*["ValueError: no"] * 500), None)) == 200
