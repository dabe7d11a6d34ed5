"""Small labelled cases and records for the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

KEY_ERROR = (
    "loading the index\n"
    "step 10 loss 2.31\n"
    "Traceback (most recent call last):\n"
    '  File "train.py", line 31, in main\n'
    "    run(cfg)\n"
    "KeyError: 'tokens_per_shard'\n"
)
HEALTHY = "step 1 loss 2.5\nstep 2 loss 2.4\nTraining completed successfully\n"


def case(folder: Path, name: str, log: str = KEY_ERROR, **changes: Any) -> Path:
    """Writes folder/name with one log, job.out; `expect_X=...` changes a label, None takes a field away."""
    doc: dict[str, Any] = {
        "schema": "triage.case/1",
        "id": name,
        "source": "written for a test",
        "synthetic": True,
        "split": "dev",
        "tags": [],
        "inputs": ["job.out"],
        "expect": {"outcome": "failed", "failure_type": "key-error", "evidence": [["job.out", 6, 6]]},
    }
    for key, value in changes.items():
        where, field = (doc["expect"], key.removeprefix("expect_")) if key.startswith("expect_") else (doc, key)
        where[field] = value
        if value is None:
            del where[field]
    place = folder / name
    place.mkdir(parents=True)
    (place / "job.out").write_text(log)
    (place / "case.yaml").write_text(yaml.safe_dump(doc))
    return place


def healthy(folder: Path, name: str) -> Path:
    return case(folder, name, HEALTHY, expect_outcome="healthy", expect_failure_type="healthy", expect_evidence=None)


def record(name: str = "a1", repeat: int = 0, sha256: str = "0" * 64, problem: str = "") -> dict[str, Any]:
    return {"case": name, "sha256": sha256, "repeat": repeat, "problem": problem, "result": None}
