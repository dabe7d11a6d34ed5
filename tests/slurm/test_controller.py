from datetime import UTC, datetime

import pytest

from tests.slurm.shapes import SHOWN
from triage.slurm import controller


@pytest.mark.parametrize("version", SHOWN)
def test_a_job_is_read_from_every_version(version: str) -> None:
    (job,) = controller.jobs(SHOWN[version])
    assert (job.id, job.state, job.reason, job.exit_code, job.derived_exit_code) == (
        "4242",
        "FAILED",
        "NonZeroExitCode",
        1,
        137,
    )
    assert (job.name, job.user, job.account, job.nodes, job.gpus) == ("pretrain", "ada", "llm", ("nid001", "nid002"), 8)
    assert (job.elapsed, job.time_limit, job.restarts, job.gpu_hours) == (7200, 86400, 1, 16.0)
    assert job.end == datetime(2026, 3, 4, 2, 2, tzinfo=UTC)
    assert (job.stdout, job.stderr, job.work_dir) == (
        "/home/ada/run/slurm-4242.out",
        "/home/ada/run/slurm-4242.out",
        "/home/ada/run",
    )
    assert job.command == "/home/ada/run/train.sh --config a b"


def test_tasks_and_components_are_named_as_people_write_them() -> None:
    text = SHOWN["22.05"]
    shown = "".join(
        text.replace("JobId=4242 ", start)
        for start in (
            "JobId=71 ArrayJobId=70 ArrayTaskId=1 ",
            "JobId=70 ArrayJobId=70 ArrayTaskId=2-9%2 ",
            "JobId=81 HetJobId=80 HetJobOffset=1 ",
        )
    )
    jobs = controller.jobs(shown)
    assert [(job.id, job.raw_id, job.array_task, job.het_offset) for job in jobs] == [
        ("70_1", "71", "1", None), ("70_[2-9%2]", "70", "2-9", None), ("80+1", "81", "", 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["my job", "x JobState=COMPLETED", "x\nJobState=COMPLETED Reason=None", "x\nJobIdx", "a=b"]
)
def test_the_name_of_a_job_does_not_change_its_state(name: str) -> None:
    (job,) = controller.jobs(SHOWN["22.05"].replace("=pretrain", f"={name}"))
    assert (job.state, job.name) == ("FAILED", name.partition("\n")[0])


def test_a_running_job_has_no_end_yet() -> None:
    (job,) = controller.jobs(SHOWN["23.11"].replace("JobState=FAILED", "JobState=RUNNING"))
    assert (job.state, job.end, job.ended) == ("RUNNING", None, False)


def test_nodes_are_read_with_their_reasons() -> None:
    text = (
        "n1|down*|root|2026-03-04T02:00:00+0100|Not responding\nn1|down*|root|2026-03-04T02:00:00+0100|Not responding\n"
        "n2|idle|Unknown|Unknown|none\nn3|drained|slurm|2026-03-04T02:00:00|Kill task failed | by hand\nn4|mixed-|||\n"
    )
    nodes = controller.nodes(text)
    assert [(n.name, n.state, n.reason, n.by, n.out_of_service) for n in nodes] == [
        ("n1", "down*", "Not responding", "root", True),
        ("n2", "idle", "", "", False),
        ("n3", "drained", "Kill task failed | by hand", "slurm", True),
        ("n4", "mixed-", "", "", False),
    ]
    assert nodes[0].since == "2026-03-04T02:00:00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "No jobs in the system",
        "slurm_load_jobs error: Invalid job id specified",
        "JobId=",
        "JobId=100",
        "JobId=abc JobState=FAILED",
        "JobId=1 ArrayJobId=x JobState=FAILED",
        "\x00\x1b=\nJobId=\nJobId=9\n JobState=",
        "JobId=\u00b2 JobState=FAILED",
    ],
)
def test_no_job_is_read_from_other_text(text: str) -> None:
    assert controller.jobs(text) == ()
