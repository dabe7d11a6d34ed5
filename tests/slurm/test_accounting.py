from datetime import UTC, datetime

import pytest

from tests.slurm.shapes import BATCH, JOB, STEP, table
from triage.slurm import accounting

VERSIONS = ("20.11", "22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_with_its_steps_is_read_from_every_version(version: str) -> None:
    (job,) = accounting.jobs(table(version, JOB, BATCH, STEP))
    assert (job.id, job.raw_id, job.state, job.exit_code, job.signal, job.derived_exit_code) == (
        "4242",
        "4242",
        "FAILED",
        1,
        0,
        137,
    )
    assert (job.name, job.user, job.partition, job.nodes, job.gpus) == (
        "pretrain",
        "ada",
        "gpu",
        ("nid001", "nid002"),
        8,
    )
    assert job.start == datetime(2026, 3, 4, 0, 2, tzinfo=UTC)
    assert (job.elapsed, job.time_limit, job.gpu_hours) == (7200, 86400, 16.0)
    assert (job.max_rss, job.max_rss_node) == (100 << 30, "nid002")
    assert [step.id for step in job.steps] == ["4242.batch", "4242.0"]
    assert job.ended_badly
    assert not job.waits


def test_newer_versions_say_more() -> None:
    old, new = (accounting.jobs(table(version, JOB, STEP))[0] for version in ("20.11", "24.05"))
    assert (old.stdout, old.command, old.steps[0].submitted) == ("", "", "")
    assert new.stdout == "/home/ada/run/slurm-%j.out"
    assert new.steps[0].submitted == "srun --output=rank-%t.log python train.py"


def test_who_cancelled_is_told() -> None:
    (job,) = accounting.jobs(table("22.05", JOB | {"State": "CANCELLED by 1001"}))
    assert (job.state, job.cancelled_by) == ("CANCELLED", "1001")


def test_the_last_attempt_of_a_requeued_job_is_the_job() -> None:
    first = JOB | {"State": "NODE_FAIL", "Submit": "2026-03-03T20:00:00+0100", "FailedNode": "nid002"}
    (job,) = accounting.jobs(table("22.05", JOB, STEP, first, BATCH | {"State": "CANCELLED"}))
    assert (job.state, job.restarts, len(job.steps)) == ("FAILED", 1, 1)
    assert [(a.state, a.failed_node, a.steps[0].state) for a in job.earlier] == [("NODE_FAIL", "nid002", "CANCELLED")]


def test_tasks_and_components_are_jobs_of_their_own() -> None:
    rows = [
        JOB | {"JobID": i, "JobIDRaw": raw}
        for i, raw in (("70_1", "71"), ("70_[2-9%2]", "70"), ("80+0", "80"), ("80+1", "81"))
    ]
    one, rest, first, second = accounting.jobs(table("24.05", *rows))
    assert (one.id, one.raw_id, one.array_job, one.array_task) == ("70_1", "71", "70", "1")
    assert (rest.array_job, rest.array_task) == ("70", "2-9")
    assert [(job.het_job, job.het_offset, job.raw_id) for job in (first, second)] == [("80", 0, "80"), ("80", 1, "81")]


@pytest.mark.parametrize("name", ["a|b", "two\nlines", "FAILED", 'q"uo', "émile"])
def test_names_of_jobs_disturb_nothing(name: str) -> None:
    (job,) = accounting.jobs(table("24.05", JOB | {"JobName": name}, STEP))
    assert (job.name, job.state, len(job.steps)) == (name.replace("\n", " "), "FAILED", 1)


@pytest.mark.parametrize("text", ["", "\n", "JobID", "JobID\nx", table("24.05"), "sacct: error: no"])
def test_no_job_is_read_from_an_empty_answer(text: str) -> None:
    assert accounting.jobs(text) == ()


def test_what_is_not_said_is_none() -> None:
    row = JOB | {
        "Start": "None",
        "End": "Unknown",
        "TimelimitRaw": "UNLIMITED",
        "NodeList": "None assigned",
        "ExitCode": "",
        "AllocTRES": "",
    }
    (job,) = accounting.jobs(table("24.05", row))
    assert (job.start, job.end, job.time_limit, job.nodes, job.exit_code, job.gpu_hours) == (
        None,
        None,
        None,
        (),
        None,
        None,
    )
