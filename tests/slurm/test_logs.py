from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from triage.domain import SlurmJob, SlurmStep
from triage.slurm import logs

NOW = datetime.now(UTC)
SCRIPT = "#!/bin/bash\n#SBATCH --output=from-script-%j.txt\nsrun --output=r%t.txt python a.py\n"


def job(folder: Path, **told: object) -> SlurmJob:
    known: dict[str, object] = {"raw_id": "73", "work_dir": str(folder), "start": NOW - timedelta(hours=2), "end": NOW}
    return SlurmJob("73", **known | told)  # type: ignore[arg-type]


def write(folder: Path, *names: str, at: datetime = NOW) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
        os.utime(path, (at.timestamp(), at.timestamp()))


def names(found: logs.Logs) -> list[str]:
    return [path.name for path in found.files]


def none() -> str:
    return ""


def never() -> str:
    raise AssertionError("asked for the script")


def test_what_slurm_names_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "73.out")
    found = logs.find(job(tmp_path, stdout="%j.out", stderr=f"{tmp_path}/73.out"), never)
    assert (names(found), found.notes) == (["73.out"], [])


def test_files_of_ranks_are_found_beside(tmp_path: Path) -> None:
    write(tmp_path, "73.out", "rank-0.log", "rank-10.log", "rank-x.log", "n1/e", "n2/e")
    steps = (SlurmStep("73.0", submitted="srun --output=rank-%t.log --error=%N/e python a.py"),)
    found = logs.find(job(tmp_path, stdout="73.out", steps=steps), none)
    assert [str(p.relative_to(tmp_path)) for p in found.files] == [
        "73.out",
        "rank-0.log",
        "rank-10.log",
        "n1/e",
        "n2/e",
    ]


@pytest.mark.parametrize(
    ("command", "kept", "expected"),
    [
        ("sbatch -o cmd-%j.txt train.sh", SCRIPT, ["cmd-73.txt"]),
        ("sbatch train.sh", SCRIPT, ["from-script-73.txt"]),
        ("sbatch train.sh", "", ["from-script-73.txt"]),  # read from the disk
        ("{folder}/train.sh --lr 1", "", ["from-script-73.txt"]),
        ("", "", ["slurm-73.out"]),
    ],
)
def test_without_slurm_s_word_the_submission_tells(
    tmp_path: Path, command: str, kept: str, expected: list[str]
) -> None:
    write(tmp_path, "cmd-73.txt", "from-script-73.txt", "slurm-73.out")
    (tmp_path / "train.sh").write_text(SCRIPT)
    found = logs.find(job(tmp_path, command=command.format(folder=tmp_path)), lambda: kept)
    assert names(found) == expected


def test_a_task_of_an_array_has_a_default_name_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, "slurm-70_3.out", "slurm-73.out")
    found = logs.find(job(tmp_path, array_job="70", array_task="3"), none)
    assert names(found) == ["slurm-70_3.out"]


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    found = logs.find(job(tmp_path, stdout="a[1].out", stderr="/dev/null"), never)
    assert found.notes[0].startswith(f"{tmp_path}/a[1].out is not there;")
    assert found.notes[1] == "the job's output was sent to /dev/null"


def test_a_file_of_an_earlier_run_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "train.log", at=NOW - timedelta(days=1))
    found = logs.find(job(tmp_path, stdout="train.log"), never)
    assert names(found) == []
    assert "it holds another run and was not read" in found.notes[0]


def test_a_file_that_was_written_long_after_the_end_is_read_with_a_word(tmp_path: Path) -> None:
    write(tmp_path, "train.log")
    ended = replace(job(tmp_path, stdout="train.log"), start=NOW - timedelta(days=2), end=NOW - timedelta(hours=5))
    found = logs.find(ended, never)
    assert names(found) == ["train.log"]
    assert "was written to 5 h after this job had ended: it may hold a later run" in found.notes[0]


def test_a_relative_name_without_its_folder_is_said() -> None:
    found = logs.find(job(Path(), stdout="train.log", work_dir=""), never)
    assert found.notes == ["train.log: Slurm does not say in which folder it lies; give it as a path"]


def test_files_named_after_a_forgotten_job_are_found(tmp_path: Path) -> None:
    write(tmp_path, "slurm-73.out", "slurm-73_1.out", "slurm-731.out", "slurm-7.out")
    assert [path.name for path in logs.named_after("73", tmp_path)] == ["slurm-73.out", "slurm-73_1.out"]
