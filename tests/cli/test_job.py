"""`triage diagnose --job`, with programs that answer as Slurm's do."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO
from tests.slurm.programs import FakePrograms, row
from tests.slurm.shapes import BATCH, SHOWN, STEP, table

ERROR = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nModuleNotFoundError: No module named 'flash_attn'\n"


@pytest.fixture
def slurm(tmp_path: Path) -> FakePrograms:
    return FakePrograms(tmp_path / "bin")


def test_a_job_is_diagnosed_from_its_id(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "4242.out").write_text(ERROR)
    slurm.sacct(table("24.05", row(tmp_path), BATCH, STEP))
    done = triage("diagnose", "--job", "4242", "--llm", "off", "--format", "json", **slurm.env)
    result = json.loads(done.stdout)
    assert (done.returncode, result["failure_type"], result["job"]) == (0, "import-error", "4242")
    assert (result["job_name"], result["job_user"]) == ("pretrain", "ada")
    assert result["account"] == ["4242 pretrain of ada: FAILED, exit code 1:0, 2 nodes nid[001-002], ran 2:00:00"]
    assert {e["file"] for e in result["evidence"]} == {str(tmp_path / "4242.out"), "sacct-4242.txt"}
    assert result["missing"] == []
    assert (tmp_path / "calls").exists() is False


def test_the_incident_keeps_what_the_accounting_says(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "4242.out").write_text(ERROR)
    slurm.sacct(table("24.05", row(tmp_path)))
    first = json.loads(triage("diagnose", "--job", "4242", "--llm", "off", "--format", "json", **slurm.env).stdout)
    again = json.loads(triage("diagnose", "--job", "4242", "--llm", "off", "--format", "json", **slurm.env).stdout)
    (kept,) = json.loads(triage("incidents", "list", "--format", "json").stdout)["incidents"]
    assert (first["incident"], again["incident"], again.get("attempt", 1)) == (1, 1, 1)
    assert (kept["job"], kept["owner"], kept["nodes"], kept["gpu_hours"]) == ("4242", "ada", ["nid001", "nid002"], 16.0)
    assert (Path(os.environ["TRIAGE_HOME"]) / "slurm" / "sacct-4242.txt").read_text().startswith("JobID|State|")


@pytest.mark.parametrize(
    ("state", "code", "outcome", "failure_type"),
    [
        ("OUT_OF_MEMORY", "0:125", "failed", "host-out-of-memory"),
        ("TIMEOUT", "0:0", "interrupted", "time-limit"),
        ("DEADLINE", "0:0", "interrupted", "time-limit"),
        ("CANCELLED by 0", "0:0", "interrupted", "cancelled"),
        ("NODE_FAIL", "0:0", "failed", "node-failure"),
        ("BOOT_FAIL", "0:0", "failed", "node-failure"),
        ("PREEMPTED", "0:0", "interrupted", "preempted"),
        ("FAILED", "1:0", "failed", "unknown"),
        ("COMPLETED", "0:0", "healthy", "healthy"),
    ],
)
def test_the_state_alone_leads_to_an_outcome(
    triage: Run, slurm: FakePrograms, tmp_path: Path, state: str, code: str, outcome: str, failure_type: str
) -> None:
    slurm.sacct(table("22.05", row(tmp_path, State=state, ExitCode=code)))
    done = triage("diagnose", "--job", "4242", "--llm", "off", "--no-record", "--format", "json", **slurm.env)
    result = json.loads(done.stdout)
    assert (result["outcome"], result["failure_type"]) == (outcome, failure_type)
    assert any("slurm-4242.out is not there" in note for note in result["missing"])
    assert ("root (user id 0)" in result["root_cause"]) == state.startswith("CANCELLED")


def test_the_attempts_of_a_requeued_job_are_its_runs(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "4242.out").write_text(ERROR)
    first = row(tmp_path, State="NODE_FAIL", Submit="2020-01-01T00:00:00+0000")
    slurm.sacct(table("24.05", first, BATCH, row(tmp_path), BATCH, STEP))
    result = json.loads(
        triage("diagnose", "--job", "4242", "--llm", "off", "--no-record", "--format", "json", **slurm.env).stdout
    )
    assert result["failure_type"] == "import-error"
    assert [(run["first_line"], run["last_line"], run["outcome"]) for run in result["runs"]] == [
        (1, 3, "failed"),
        (4, 7, "failed"),
    ]
    assert "1 restart" in result["account"][0]


def test_failed_tasks_of_an_array_stand_together_where_they_failed_alike(
    triage: Run, slurm: FakePrograms, tmp_path: Path
) -> None:
    errors = {1: "", 2: ERROR, 3: "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'\n", 4: ERROR}
    for task, text in errors.items():
        (tmp_path / f"70_{task}.out").write_text(f"task {task}\n{text}")
    rows = [
        row(tmp_path, JobID=f"70_{task}", JobIDRaw=str(70 + task), StdOut="%A_%a.out", State="FAILED" if text else "COMPLETED", ExitCode="1:0" if text else "0:0")
        for task, text in errors.items()
    ]  # fmt: skip
    slurm.sacct(table("24.05", *rows))
    result = json.loads(triage("diagnose", "--job", "70", "--llm", "off", "--format", "json", **slurm.env).stdout)
    assert (result["job"], result["failure_type"]) == ("70_2", "import-error")
    assert [(t["job"], t["failure_type"], t["incident"]) for t in result["tasks"]] == [
        ("70_2", "import-error", 1), ("70_4", "import-error", 1), ("70_3", "file-not-found", 2)
    ]  # fmt: skip
    assert "array 70: of 4 tasks 3 FAILED, 1 COMPLETED" in result["account"]
    text = triage("diagnose", "--job", "70_[3-4]", "--llm", "off", "--no-record", **slurm.env).stdout
    assert "failed file-not-found (supported): 70_3\n" in text
    assert "failed import-error (supported): 70_4\n" in text


def test_files_are_read_besides(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "more.log").write_text(ERROR)
    slurm.sacct(table("24.05", row(tmp_path)))
    result = json.loads(
        triage(
            "diagnose", "--job", "4242", "more.log", "--llm", "off", "--no-record", "--format", "json", **slurm.env
        ).stdout
    )
    assert result["failure_type"] == "import-error"
    assert result["evidence"][0]["file"] == "more.log"


@pytest.mark.parametrize("version", SHOWN)
def test_without_accounting_the_controller_is_enough(
    triage: Run, slurm: FakePrograms, tmp_path: Path, version: str
) -> None:
    (tmp_path / "slurm-4242.out").write_text(ERROR)
    slurm.program("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    slurm.scontrol(SHOWN[version].replace("/home/ada/run", str(tmp_path)).replace("EndTime=2026", "EndTime=2099"))
    result = json.loads(
        triage("diagnose", "--job", "4242", "--llm", "off", "--no-record", "--format", "json", **slurm.env).stdout
    )
    assert (result["failure_type"], result["missing"]) == (
        "import-error",
        ["the accounting was not asked: it is off on this cluster"],
    )
    assert {e["file"] for e in result["evidence"]} == {str(tmp_path / "slurm-4242.out"), "scontrol-4242.txt"}


def test_a_job_that_waits_is_told_from_one_that_failed(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    slurm.sacct(table("24.05", row(tmp_path, State="PENDING", Reason="Resources")))
    done = triage("diagnose", "--job", "4242", "--llm", "off", **slurm.env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "triage: job 4242 has not begun: PENDING, reason Resources; `triage watch --job 4242`"
    )


def test_a_job_that_runs_is_shown_and_not_recorded(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "4242.out").write_text("step 1 loss 2.0\nstep 2 loss 1.9\n")
    slurm.sacct(table("24.05", row(tmp_path, State="RUNNING", End="Unknown", ExitCode="0:0")))
    result = json.loads(triage("diagnose", "--job", "4242", "--llm", "off", "--format", "json", **slurm.env).stdout)
    assert "job 4242 still runs" in result["account"][1]
    assert result["incident"] is None


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("4243", "Slurm does not know job 4243; is it of another cluster"),
        ("$(id)", "'$(id)' is no job id of Slurm"),
        ("--help;", "is no job id of Slurm"),
    ],
)
def test_what_is_no_job_gives_one_line(triage: Run, slurm: FakePrograms, job: str, said: str) -> None:
    done = triage("diagnose", f"--job={job}", "--llm", "off", **slurm.env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_a_job_that_slurm_forgot_is_found_by_the_name_of_its_log(
    triage: Run, slurm: FakePrograms, tmp_path: Path
) -> None:
    (tmp_path / "slurm-4242.out").write_text(ERROR)
    result = json.loads(
        triage("diagnose", "--job", "4242", "--llm", "off", "--no-record", "--format", "json", **slurm.env).stdout
    )
    assert (result["failure_type"], result["job"]) == ("import-error", "4242")
    assert result["missing"][0] == "Slurm does not know job 4242: only slurm-4242.out was read"


def test_where_there_is_no_slurm_it_is_said(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    done = triage("diagnose", "--job", "4242", "--llm", "off", PATH=str(tmp_path / "none"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "sacct is not installed on this machine" in done.stderr
    (tmp_path / "x.log").write_text(ERROR)
    done = triage("diagnose", "--job", "4242", "x.log", "--llm", "off", "--no-record", PATH=str(tmp_path / "none"))
    assert done.returncode == 0
    assert "Slurm was not asked for job 4242: only x.log was read" in " ".join(done.stdout.split())


RECORDER = """
import json, sys
def hook(event, args):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.spawn", "pty.spawn"):
        with open({file!r}, "a") as file:
            file.write(json.dumps([event, [str(a) for a in (args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else args)]]) + "\\n")
sys.addaudithook(hook)
"""


def test_only_commands_that_read_are_started(triage: Run, slurm: FakePrograms, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(RECORDER.format(file=str(tmp_path / "started")))
    slurm.sacct(table("22.05", row(tmp_path, SubmitLine="sbatch train.sh"), STEP))
    done = triage("diagnose", "--job", "4242", "--llm", "off", PYTHONPATH=f"{tmp_path / 'site'}:{REPO}", **slurm.env)
    assert done.returncode == 1, done.stderr
    started = [json.loads(line) for line in (tmp_path / "started").read_text().splitlines()]
    commands = [argv for _, argv in started]
    assert {event for event, _ in started} == {"subprocess.Popen"}
    assert [Path(argv[0]).name for argv in commands] == ["sacct", "sacct", "scontrol", "sacct", "sinfo"]
    assert [argv[1:4] for argv in commands if Path(argv[0]).name == "scontrol"] == [["-d", "show", "job"]]
    assert sys.executable not in {argv[0] for argv in commands}
