"""`triage recover checkpoints` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.recovering.test_checkpoints import cut, deepspeed, megatron


def test_the_chosen_one_the_steps_lost_and_what_is_wrong_with_the_newest(triage: Run, tmp_path: Path) -> None:
    for step in (100, 200):
        megatron(tmp_path / "run", step)
    cut(megatron(tmp_path / "run", 300) / "mp_rank_01_002/distrib_optim.pt")
    done = triage("recover", "checkpoints", "run", "--reached", "321")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"Go on from {tmp_path}/run/iter_0000200, step 200; 121 steps lost"
    assert "--ckpt-step 200" in done.stdout
    assert "mp_rank_01_002/distrib_optim.pt: cut" in done.stdout
    told = json.loads(triage("recover", "checkpoints", "run", "--format", "json").stdout)
    assert (told["chosen"]["step"], told["steps_lost"]) == (200, 100)
    assert [one["step"] for one in told["checkpoints"]] == [300, 200, 100]


def test_where_none_is_complete_or_there_the_exit_code_is_1(triage: Run, tmp_path: Path) -> None:
    (deepspeed(tmp_path / "run", 100) / "mp_rank_01_model_states.pt").unlink()
    done = triage("recover", "checkpoints", "run")
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "No checkpoint is complete.")
    (tmp_path / "empty").mkdir()
    assert triage("recover", "checkpoints", "empty").returncode == 1
    assert triage("recover", "checkpoints", "nowhere").returncode == 2
    assert triage("recover", "checkpoints", "empty", "--reached", "-5").returncode == 2
