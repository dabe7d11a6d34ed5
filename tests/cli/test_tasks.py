"""Several diagnoses of one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.shapes import JOB, FakeSlurm, table
from triage.cli import slurm_job, tasks, wiring
from triage.slurm.client import Slurm
from triage.slurm.command import Answer


def test_each_task_of_an_array_is_told_while_it_is_worked_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path))
    told: list[str] = []
    rows = [JOB | {"JobID": f"70_{n}", "JobIDRaw": f"{70 + n}", "WorkDir": str(tmp_path)} for n in (1, 2)]
    slurm = Slurm(FakeSlurm({"sacct": Answer(table("24.05", *rows))}))
    settings = wiring.settings("off")
    with slurm_job.cases("70", (), None, slurm, told.append) as found:
        assert told == ["asking Slurm for job 70", *(f"looking for the logs of job 70_{n}" for n in (1, 2))]
        parts = wiring.parts(settings, told.append, record=False, similar=False)
        tasks.diagnose(found, parts, settings, None, new=False, live=False)
    assert {"task 1 of 2: looking for the cause", "task 2 of 2: looking for the cause"} <= set(told)
