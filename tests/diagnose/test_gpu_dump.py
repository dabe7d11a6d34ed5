"""Dumps of `nvidia-smi -q`: what is repaired is no failure, what is not is."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

DUMP = """    ECC Errors
        Volatile
            SRAM Correctable                  : 0
            SRAM Uncorrectable Parity         : 0
            DRAM Correctable                  : 7
            DRAM Uncorrectable                : {volatile}
        Aggregate
            SRAM Correctable                  : 0
            DRAM Correctable                  : 19
            DRAM Uncorrectable                : 4
            SRAM Threshold Exceeded           : No
    Remapped Rows
        Correctable Error                     : 2
        Uncorrectable Error                   : 4
        Pending                               : {pending}
        Remapping Failure Occurred            : {failed}
"""


def test_errors_that_were_repaired_are_no_failure(diagnosed: Diagnose) -> None:
    assert diagnosed({"smi.txt": DUMP.format(volatile=0, pending="No", failed="No")}).outcome == "healthy"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"volatile": 3, "pending": "No", "failed": "No"}, 6),
        ({"volatile": 0, "pending": "Yes", "failed": "No"}, 15),
        ({"volatile": 3, "pending": "Yes", "failed": "Yes"}, 16),
    ],
)
def test_errors_that_were_not_are_cited(diagnosed: Diagnose, values: dict[str, object], line: int) -> None:
    d = diagnosed({"smi.txt": DUMP.format(**values)})
    assert (d.outcome, d.failure_type, d.root_cause_class) == ("failed", "ecc-error", "hardware-failure")
    assert next(e for e in d.evidence if e.role == "root").line == line


def test_wrong_results_of_a_collective_are_the_hardwares(diagnosed: Diagnose) -> None:
    text = (
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
        "   134217728      33554432     float     sum      -1    800.1  167.75  293.56      17    799.3  167.92  293.86      12\n"
        "# Out of bounds values : 29 FAILED\n# Avg bus bandwidth    : 120.1\n#\n"
    )
    d = diagnosed({"nccl.txt": text})
    assert (d.outcome, d.root_cause_class, d.action) == ("failed", "hardware-failure", "escalate")
