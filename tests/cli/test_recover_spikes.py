"""`triage recover spikes` as a user sees it."""

from __future__ import annotations

import json
import math
from pathlib import Path

from tests.cli.conftest import Run
from tests.evidence.test_spikes import curve, megatron, with_losses


def test_the_step_the_checkpoint_before_it_and_what_to_leave_out(triage: Run, tmp_path: Path) -> None:
    told = []
    for row in with_losses(curve(700, start=9000), 500, [math.nan] * 200):
        told.append(megatron(row))
        if row.step % 100 == 0:
            told.append(f"  successfully saved checkpoint at iteration {row.step:7d} to /ckpt/run")
    (tmp_path / "job.log").write_text("\n".join(told) + "\n")
    done = triage("recover", "spikes", "job.log")
    assert done.returncode == 1, done.stderr
    assert "loss is no number from step 9500 (job.log:506)" in done.stdout
    assert "healthy checkpoint before it: step 9400" in done.stdout
    (spike,) = json.loads(triage("recover", "spikes", "job.log", "--format", "json").stdout)["spikes"]
    assert (spike["step"], spike["peak"], spike["recovered_at"]) == (9500, None, None)
    assert spike["skip"]["rewind_to"] == 9400


def test_a_healthy_log_and_one_without_a_loss(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("\n".join(map(megatron, curve(200))) + "\n")
    done = triage("recover", "spikes", "job.log")
    assert (done.returncode, done.stdout) == (0, "No spike in 200 records.\n")
    for count, said in ((1, "1 record of a loss or a gradient norm: too few to tell"), (40, "which are few")):
        (tmp_path / "short.log").write_text("\n".join(map(megatron, curve(count))) + "\n")
        assert said in triage("recover", "spikes", "short.log").stdout
    (tmp_path / "other.log").write_text("hello\n")
    assert "No record of a loss" in triage("recover", "spikes", "other.log").stdout
    assert triage("recover", "spikes", "nowhere.log").returncode == 2
