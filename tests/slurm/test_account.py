from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.slurm.shapes import BATCH, JOB, STEP, table
from triage import kb
from triage.domain import LogLine, SlurmNode
from triage.evidence.match import Matcher
from triage.ingest import kinds
from triage.slurm import account, accounting

(PARSED,) = accounting.jobs(table("25.05", JOB, BATCH, STEP))


def test_a_job_and_its_steps_are_lines_of_a_table() -> None:
    lines = account.table([PARSED]).splitlines()
    assert lines[0].startswith("JobID|State|ExitCode|DerivedExitCode|")
    assert [line.split("|")[:4] for line in lines[1:]] == [
        ["4242", "FAILED", "1:0", "137:0"],
        ["4242.batch", "FAILED", "1:0", ""],
        ["4242.0", "FAILED", "137:0", ""],
    ]
    assert "|02:00:00|1-00:00:00|512G|100.00G|nid002" in lines[1]
    assert len({line.count("|") for line in lines}) == 1


def test_the_text_is_known_as_accounting() -> None:
    assert kinds.classify("sacct-4242.txt", account.table([PARSED]).encode()) == "sacct"
    node = account.nodes([SlurmNode("n1", "down*", "Not responding")], [])
    assert kinds.classify("sinfo-4242.txt", node.encode()) == "sacct"


@pytest.mark.parametrize("name", ["NODE_FAIL", "OUT_OF_MEMORY", "x|TIMEOUT|0:0"])
def test_no_name_is_taken_for_a_state(name: str) -> None:
    assert account.table([replace(PARSED, name=name)]) == account.table([PARSED])


@pytest.mark.parametrize(
    ("state", "failure_type"),
    [
        ("OUT_OF_MEMORY", "host-out-of-memory"), ("TIMEOUT", "time-limit"), ("DEADLINE", "time-limit"), ("CANCELLED", "cancelled"),
        ("NODE_FAIL", "node-failure"), ("BOOT_FAIL", "node-failure"), ("PREEMPTED", "preempted"), ("REQUEUED", "preempted"),
        ("REQUEUE_HOLD", "preempted"), ("LAUNCH_FAILED", "launch-failure"), ("FAILED", "unknown"), ("COMPLETED", "healthy"),
    ],
)  # fmt: skip
def test_each_state_is_known_by_a_signature(state: str, failure_type: str) -> None:
    job = replace(PARSED, state=state, cancelled_by="1001" if state == "CANCELLED" else "", exit_code=0, steps=())
    row = account.table([job]).splitlines()[1]
    found = Matcher(kb.signatures()).match(LogLine("sacct-4242.txt", 2, row), "sacct")
    assert [finding.signature.failure_type for finding in found] == [failure_type]


def test_only_nodes_that_went_while_the_job_ran_are_shown() -> None:
    end = datetime(2026, 3, 4, 3, 2, tzinfo=UTC)
    job = replace(PARSED, start=end - timedelta(hours=2), end=end)

    def node(name: str, after: timedelta, state: str = "down*") -> SlurmNode:
        return SlurmNode(
            name, state, "Not responding", (end + after).astimezone().strftime("%Y-%m-%dT%H:%M:%S"), "root"
        )

    found = [
        node("n1", timedelta(minutes=5)),
        node("n2", timedelta(days=2)),
        node("n3", -timedelta(days=2)),
        SlurmNode("n4", "idle"),
    ]
    assert account.nodes(found, [job]).startswith("NodeName=n1 State=DOWN* Reason=Not responding [root@2026-")
    assert account.nodes(found, [job]).count("\n") == 1
    assert account.nodes(found[1:], [job]) == ""


@pytest.mark.parametrize("stamp", ["9999-12-31T23:59:59+0000", "0001-01-01T00:00:00+0000", "2026-99-99T00:00:00+0000"])
def test_a_time_that_no_clock_showed_is_none(stamp: str) -> None:
    (job,) = accounting.jobs(table("25.05", JOB | {"Start": stamp, "End": stamp}))
    assert (job.start, job.end, job.state) == (None, None, "FAILED")
    assert account.nodes([SlurmNode("n1", "down*", "Not responding", stamp)], [job])
