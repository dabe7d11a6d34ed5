"""Exceptions with no better type that were raised where the data are read."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

STEPS = "".join(f"step {i} loss 2.{i} lr 1e-4\n" for i in range(1, 9))
RAISED = 'Traceback (most recent call last):\n  File "/w/train.py", line 9, in main\n    load()\n  File "{file}", line 27, in __init__\n    raise\n{error}\n'
ARROW = "/opt/conda/lib/python3.11/site-packages/datasets/arrow_dataset.py"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/c/cache-5f.arrow'"


@pytest.mark.parametrize(
    ("file", "error"),
    [
        (ARROW, MISSING),
        ("/opt/venv/lib/python3.11/site-packages/streaming/base/dataset.py", "RuntimeError: bad epoch"),
        ("/w/core/data.py", "core.data.EmptySourceError: source 02 keeps 0 of 48 tokens"),
        ("/w/pretrain/indexed_dataset.py", "ShardLayoutError: 3 shards, 4 wanted"),
    ],
)
def test_the_dataset_could_not_be_loaded(diagnosed: Diagnose, file: str, error: str) -> None:
    d = diagnosed({"job.log": STEPS + RAISED.format(file=file, error=error)})
    assert d.failure_type == "dataset-loading-error"
    assert d.evidence[0].line == 14


@pytest.mark.parametrize(
    ("file", "error", "kind"),
    [
        ("/w/core/model.py", "core.model.BadShapeError: 3 heads", "runtime-error"),
        ("/w/core/data.py", "KeyError: 'text'", "key-error"),
        (ARROW, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out-of-memory"),
        ("/opt/venv/lib/python3.11/site-packages/transformers/file.py", MISSING, "file-not-found"),
    ],
)
def test_what_has_a_type_of_its_own_or_was_raised_elsewhere_keeps_it(
    diagnosed: Diagnose, file: str, error: str, kind: str
) -> None:
    assert diagnosed({"job.log": STEPS + RAISED.format(file=file, error=error)}).failure_type == kind
