from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.slurm.shapes import BATCH, JOB, SHOWN, STEP, FakeSlurm, table
from triage.slurm import command, ids
from triage.slurm.client import Slurm
from triage.slurm.command import Answer

GONE = Answer(problem="scontrol answers: slurm_load_jobs error: Invalid job id specified", refused=True)
OFF = Answer(problem="sacct answers: Slurm accounting storage is disabled", refused=True)
ASKED = ids.parse("4242")


def test_both_answers_become_one_job() -> None:
    fake = FakeSlurm({"sacct": Answer(table("24.05", JOB, BATCH, STEP)), "scontrol": Answer(SHOWN["25.05"])})
    found = Slurm(fake).jobs(ASKED)
    (job,) = found.jobs
    assert (found.missing, found.accounted, found.known) == ((), True, True)
    assert (job.stdout, job.reason, job.restarts, len(job.steps)) == (
        "/home/ada/run/slurm-4242.out",
        "NonZeroExitCode",
        1,
        2,
    )


def test_the_accounting_alone_is_enough() -> None:
    found = Slurm(FakeSlurm({"sacct": Answer(table("24.05", JOB)), "scontrol": GONE})).jobs(ASKED)
    assert [job.state for job in found.jobs] == ["FAILED"]
    assert found.missing == ()


def test_the_controller_alone_is_enough() -> None:
    found = Slurm(FakeSlurm({"sacct": OFF, "scontrol": Answer(SHOWN["22.05"])})).jobs(ASKED)
    assert [job.state for job in found.jobs] == ["FAILED"]
    assert found.missing == ("the accounting was not asked: it is off on this cluster",)
    assert not found.accounted


def test_a_job_that_neither_knows_is_told_from_a_slurm_that_does_not_answer() -> None:
    forgotten = Slurm(FakeSlurm({"sacct": Answer(table("24.05")), "scontrol": GONE})).jobs(ASKED)
    absent = Slurm(FakeSlurm({"sacct --helpformat": Answer(problem="sacct is not installed on this machine")})).jobs(
        ASKED
    )
    assert (forgotten.jobs, forgotten.known) == ((), True)
    assert (absent.jobs, absent.known, len(absent.missing)) == ((), False, 2)


def test_an_end_that_the_accounting_has_not_heard_of_yet_counts() -> None:
    running = JOB | {"State": "RUNNING", "End": "Unknown", "ExitCode": "0:0"}
    found = Slurm(FakeSlurm({"sacct": Answer(table("24.05", running)), "scontrol": Answer(SHOWN["22.05"])})).jobs(ASKED)
    assert [(job.state, job.exit_code, job.end is not None) for job in found.jobs] == [("FAILED", 1, True)]


def test_only_columns_that_this_version_has_are_asked_for() -> None:
    fake = FakeSlurm({"sacct": Answer(table("20.11", JOB)), "scontrol": GONE}, version="20.11")
    Slurm(fake).jobs(ASKED)
    names = fake.asked[1][-1].split(",")
    assert "FailedNode" in names
    assert not {"SubmitLine", "Restarts", "StdOut"} & set(names)


def test_some_tasks_of_an_array_are_chosen() -> None:
    rows = [JOB | {"JobID": f"70_{n}", "JobIDRaw": f"{70 + n}"} for n in (10, 2, 1, 3)]
    found = Slurm(FakeSlurm({"sacct": Answer(table("24.05", *rows)), "scontrol": GONE})).jobs(ids.parse("70_[1-2,10]"))
    assert [job.id for job in found.jobs] == ["70_1", "70_2", "70_10"]


def _program(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_command_that_is_not_there_is_said(programs: Path) -> None:
    assert command.run(["sacct", "-j", "1"]).problem == "sacct is not installed on this machine"


def test_a_command_that_hangs_is_ended_with_its_children(programs: Path) -> None:
    _program(programs, "sacct", "os.fork(); print(os.getpid(), flush=True); time.sleep(60)")
    began = time.monotonic()
    assert command.run(["sacct"], seconds=1.5).problem == "sacct did not answer within 2 s"
    assert time.monotonic() - began < 20


def test_a_refusal_is_told_in_the_command_s_own_words(programs: Path) -> None:
    _program(
        programs,
        "scontrol",
        "sys.stderr.write('scontrol: error: retrying\\nscontrol: error: Access denied\\n'); sys.exit(1)",
    )
    answer = command.run(["scontrol"])
    assert (answer.problem, answer.refused) == ("scontrol answers: Access denied", True)


def test_the_user_s_own_formats_do_not_bend_the_answers(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(programs, "sacct", "print(os.environ.get('SACCT_FORMAT'), os.environ['SLURM_TIME_FORMAT'], sys.argv[1:])")
    monkeypatch.setenv("SACCT_FORMAT", "jobid")
    assert command.run(["sacct", "$(id)", "; id"]).text == "None %Y-%m-%dT%H:%M:%S%z ['$(id)', '; id']\n"


@pytest.mark.parametrize("text", ["", "JobId=abc JobState=FAILED", "\x00\xff=\n", "JobId="])
def test_an_answer_that_cannot_be_read_is_said(text: str) -> None:
    found = Slurm(FakeSlurm({"sacct": Answer(text), "scontrol": Answer(text)})).jobs(ASKED)
    assert (found.jobs, found.known) == ((), False)
    assert found.missing == ("the answer of sacct cannot be read", "the answer of scontrol cannot be read")


@pytest.mark.parametrize("job", ["", "abc", "4242abc", "4242_x", "\u00b2"])
def test_a_row_of_no_job_is_left_out(job: str) -> None:
    found = Slurm(FakeSlurm({"sacct": Answer(table("24.05", JOB | {"JobID": job}, JOB)), "scontrol": GONE})).jobs(ASKED)
    assert [found.id for found in found.jobs] == ["4242"]
