"""The same failure again: pure, and through the pipeline with a real database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from triage.cli import wiring
from triage.diagnose.recurrence import weigh
from triage.domain import (
    Compression,
    Diagnosis,
    Evidence,
    History,
    Hypothesis,
    InputFile,
    PastFailure,
    Progress,
    Remedy,
    Suspects,
)
from triage.pipeline import diagnose

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
NOW = Diagnosis(
    outcome="failed",
    failure_type="nccl-timeout",
    category="network",
    root_cause_class="unknown",
    status="hypothesis",
    root_cause="A collective did not finish.",
    action="restart",
    evidence=(Evidence("E1", "job.log", 9, "2026-01-02 12:00:00 watchdog", "root", "nccl-timeout", time=T0),),
    chain=("E1",),
    hypotheses=(Hypothesis("nccl-timeout", "unknown", "A collective did not finish.", "hypothesis"),),
    remediation=(Remedy("Restart from the last complete checkpoint", "it can succeed", "reversible"),),
    progress=Progress(last_step=1200, world_size=64),
    compression=Compression(bytes_in=5000),
    fingerprint="f",
    job="7001",
)


def past(incident: int, step: int | None = 1200, **fields: object) -> PastFailure:
    given = {
        "world_size": 64,
        "first_line": "2026-01-01 09:00:00 watchdog",
        "bytes_in": 4800,
        "last_step": step,
        "job": "7001",
        **fields,
    }
    return PastFailure(incident, T0, **given)  # type: ignore[arg-type]


def test_the_same_step_again_is_no_accident() -> None:
    found = weigh(NOW, History((past(7), past(3))))
    assert found.recurrence.kind == "same-step"
    assert found.recurrence.incidents == (3, 7)
    assert found.action == "fix-and-resubmit"
    assert "incidents 3 and 7; last step 1200 each time" in found.root_cause
    assert found.hypotheses[0].root_cause.endswith(found.recurrence.said)
    assert [r.step.split(":")[0] for r in found.remediation] == ["Do not restart as it is"]
    assert found.remediation[0].incidents == ("3", "7")


def test_a_failure_of_the_data_goes_back_and_skips() -> None:
    assert weigh(replace(NOW, failure_type="loss-spike"), History((past(7),))).action == "rollback-and-skip"


def test_another_action_than_a_restart_stays() -> None:
    assert weigh(replace(NOW, action="escalate"), History((past(7),))).action == "escalate"


def test_another_step_is_a_passing_fault_with_bounded_retries() -> None:
    found = weigh(NOW, History((past(7, 900), past(3, 300))))
    assert (found.recurrence.kind, found.action) == ("moving", "restart")
    assert "seen 2 times before at another step (incidents 3 and 7)" in found.recurrence.said
    assert found.remediation[-1].step.startswith("Restart at most 3 times in a row")


def test_another_node_is_a_passing_fault_too() -> None:
    now = replace(NOW, failure_type="ecc-error", suspects=Suspects(nodes=("gpu-07",)))
    found = weigh(now, History((past(7, nodes=("gpu-11",)),)))
    assert found.recurrence.kind == "moving"
    assert "another node" in found.recurrence.said


@pytest.mark.parametrize("other", [past(7, None), past(7, world_size=32)], ids=["no step", "another size"])
def test_nothing_is_concluded_from_what_cannot_be_compared(other: PastFailure) -> None:
    found = weigh(NOW, History((other,)))
    assert (found.recurrence.kind, found.action) == ("again", "restart")


def test_the_same_log_read_again_is_no_recurrence() -> None:
    same = past(7, first_line=NOW.evidence[0].text)
    assert weigh(NOW, History((same,))) == NOW
    undated = replace(NOW, evidence=(replace(NOW.evidence[0], text="KeyError: 'x'", time=None),))
    assert weigh(undated, History((past(7, first_line="KeyError: 'x'", bytes_in=5000),))) == undated
    assert weigh(undated, History((past(7, first_line="KeyError: 'x'", bytes_in=4000),))).recurrence.kind == "same-step"


@pytest.mark.parametrize(
    ("then", "again"),
    [
        ({"same_log": True}, False),
        ({"same_log": False}, True),
        ({"job": "7001"}, True),
        ({"job": "7002"}, False),
        ({"cited": ("KeyError: 'x'", "12:00:01 srun: error")}, True),
        ({"cited": ("KeyError: 'x'",)}, False),
    ],
    ids=["the same bytes", "other bytes", "another job", "this job", "another time of what followed", "the same lines"],
)
def test_equal_lines_at_equal_places_are_another_run_unless_it_is_the_same_log(
    then: dict[str, object], again: bool
) -> None:
    now = replace(NOW, job="7002", evidence=(replace(NOW.evidence[0], text="KeyError: 'x'", time=None),))
    before = past(7, first_line="KeyError: 'x'", bytes_in=NOW.compression.bytes_in, **{"job": "", **then})
    assert bool(weigh(now, History((before,))).recurrence.kind) is again


SUBMITTED = {"job_name": "gpt", "job_user": "ada"}


@pytest.mark.parametrize(
    ("now", "then", "kind", "said"),
    [
        ({}, {"job": "7000"}, "again", "1 time before in other jobs (incident 7)"),
        ({}, {"job": "7000", "step": 900}, "again", "1 time before in other jobs (incident 7)"),
        ({}, {"job": ""}, "again", "1 time before (incident 7)"),
        ({**SUBMITTED}, {"job": "7000", **SUBMITTED}, "same-step", "at the same step before (incident 7"),
        ({**SUBMITTED}, {"job": "7000", **SUBMITTED, "job_user": "bob"}, "again", "in other jobs"),
        ({"job": "7001_1"}, {"job": "7001_2", "step": 900}, "again", "in other jobs"),
        ({"job": "7001_1"}, {"job": "7001_1", "step": 900}, "moving", "at another step"),
        ({"job": "7001_1", **SUBMITTED}, {"job": "7000_2", **SUBMITTED}, "again", "in other jobs"),
        ({"job": "", "inputs": (InputFile("a", "/r/a"),)}, {"job": "", "places": frozenset({"/r/a"})}, "same-step", ""),
        ({"job": "", "inputs": (InputFile("a", "/r/a"),)}, {"job": "", "places": frozenset({"/r/b"})}, "again", ""),
        ({"inputs": (InputFile("a", "/r/a"),)}, {"job": "7000", "places": frozenset({"/r/a"})}, "again", "in other jobs"),
    ],
)  # fmt: skip
def test_steps_are_compared_within_one_job(
    now: dict[str, object], then: dict[str, object], kind: str, said: str
) -> None:
    found = weigh(replace(NOW, **now), History((past(7, **then),)))
    assert found.recurrence.kind == kind
    assert said in found.recurrence.said
    if kind == "again":
        assert (found.action, found.remediation) == (NOW.action, NOW.remediation)


def test_failures_of_other_jobs_do_not_add_to_those_of_this_one() -> None:
    found = weigh(NOW, History((past(9, 900, job="7000"), past(7), past(3, 300, job="6999"))))
    assert (found.recurrence.kind, found.recurrence.incidents) == ("same-step", (7,))


def test_a_step_that_moves_is_no_passing_fault_where_the_cause_stays() -> None:
    found = weigh(replace(NOW, root_cause_class="resource-exhaustion"), History((past(7, 900),)))
    assert found.recurrence.said == "The same failure was seen 1 time before at another step (incident 7)."
    assert found.remediation == NOW.remediation


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("recorded", "failed", "before"),
    [
        (T0 - DAY, T0 - DAY, True),
        (T0 + DAY, T0 + DAY, False),
        (T0 - DAY, T0 + DAY, False),
        (T0 + DAY, T0 - DAY, True),
        (T0 - DAY, None, True),
        (T0 + DAY, None, False),
    ],
)
def test_before_is_told_by_time(recorded: datetime, failed: datetime | None, before: bool) -> None:
    """Of a log that was read first at T0, which tells of a failure at T0."""
    own = replace(past(1), at=T0, same_log=True)
    other = replace(past(2), at=recorded, failed_at=failed)
    assert weigh(NOW, History((other, own))).recurrence.incidents == ((2,) if before else ())


def test_what_fails_before_the_first_step_again_and_again_is_not_restarted_as_it_is() -> None:
    now = replace(NOW, progress=Progress(stage="init", world_size=64))
    assert weigh(now, History((past(7, None),))).action == "restart"
    found = weigh(now, History((past(7, None), past(3, None))))
    assert (found.recurrence.kind, found.action) == ("same-step", "fix-and-resubmit")
    assert "before the first step 2 times already (incidents 3 and 7)" in found.root_cause
    assert weigh(now, History((past(7, 900), past(3, None)))).action == "restart"


def test_ends_by_the_scheduler_are_not_judged() -> None:
    ended = replace(NOW, category="scheduler", failure_type="time-limit")
    assert weigh(ended, History((past(7),))) == ended


def test_a_node_that_comes_up_again_is_named_and_after_several_taken_out() -> None:
    now = replace(NOW, failure_type="ecc-error", suspects=Suspects(nodes=("gpu-07",)), action="restart-excluding")
    once = weigh(now, History(of_nodes={"gpu-07": (4,)}))
    assert "gpu-07 was a suspect before, in incident 4." in once.root_cause
    assert once.remediation == now.remediation
    often = weigh(now, History(of_nodes={"gpu-07": (4, 2)}))
    assert often.remediation[-1].step.startswith("Take gpu-07 out of service")
    assert often.remediation[-1].incidents == ("4", "2")


# ---------------------------------------------------------------------------------------------- with a database
def log(day: int, last: int, extra: str = "") -> str:
    steps = "".join(f"2026-01-{day:02} 12:00:{n:02} step {n} loss 2.5 lr 0.1\n" for n in range(1, last + 1))
    tail = f"2026-01-{day:02} 12:20:00 [rank0]: RuntimeError: NCCL communicator was aborted on rank 0.\n"
    return f"world_size=8{extra}\n" + steps + tail


def run(folder: Path, text: str, record: bool = True) -> Diagnosis:
    path = folder / "job.log"
    path.write_text(text)
    chosen = wiring.settings("off")
    parts = wiring.parts(chosen, lambda _text: None, record=record, similar=True)
    return diagnose([str(path)], replace(parts, recall=None))[0]


def test_every_restart_that_the_runbooks_know_is_withdrawn() -> None:
    books = wiring.knowledge().runbooks
    listed = [step.step for action in ("restart", "restart-excluding") for step in books.doing[action]]
    now = replace(NOW, remediation=tuple(Remedy(text, "", "reversible") for text in listed))
    found = weigh(now, History((past(7),)))
    assert listed
    assert [r.step for r in found.remediation if r.step in listed] == []


def test_incidents_of_the_database_change_the_advice(tmp_path: Path) -> None:
    first = run(tmp_path, log(1, 20))
    assert first.recurrence.kind == ""
    again = run(tmp_path, log(1, 20))  # the same log: nothing new
    assert again.recurrence.kind == ""
    moved = run(tmp_path, log(2, 30))
    assert (moved.recurrence.kind, moved.recurrence.incidents) == ("moving", (1,))
    stuck = run(tmp_path, log(3, 30))
    assert (stuck.recurrence.kind, stuck.recurrence.incidents) == ("same-step", (2,))
    assert stuck.action == "fix-and-resubmit"
    assert "incident 2" in stuck.root_cause


def test_a_failure_at_the_same_lines_of_the_next_job_is_a_recurrence(tmp_path: Path) -> None:
    def text(job: int, day: int) -> str:
        return (
            f"SLURM_JOB_ID={job}\n2026-03-{day} 04:00:01,001 INFO building tokenizer\nTraceback (most recent call last):\n"
            '  File "/home/u/t.py", line 5, in <module>\n    open(p)\n'
            "FileNotFoundError: [Errno 2] No such file or directory: '/datsets/c4/en'\n"
        )

    assert run(tmp_path, text(7001, 12)).recurrence.kind == ""
    assert run(tmp_path, text(7001, 12)).recurrence.kind == ""
    assert run(tmp_path, text(7002, 13)).recurrence.incidents == (1,)
    assert run(tmp_path, text(7002, 13), record=False).recurrence.incidents == (1,)
    assert len(run(tmp_path, text(7003, 14)).recurrence.incidents) == 2


def test_an_older_log_that_is_read_again_knows_nothing_of_later_ones(tmp_path: Path) -> None:
    def text(job: int) -> str:
        return f"SLURM_JOB_ID={job}\nworld_size=8\nRuntimeError: NCCL communicator was aborted on rank 0.\n"

    assert run(tmp_path, text(1)).incident == 1
    assert run(tmp_path, text(2)).recurrence.incidents == (1,)
    again = run(tmp_path, text(1))
    assert (again.incident, again.recurrence.kind) == (1, "")


def test_without_a_database_none_is_made(tmp_path: Path) -> None:
    found = run(tmp_path, log(1, 20), record=False)
    assert found.recurrence.kind == ""
    assert not list(wiring.settings("off").home.glob("*.db"))


def test_a_database_that_does_not_answer_is_said(tmp_path: Path) -> None:
    chosen = wiring.settings("off")
    (tmp_path / "job.log").write_text(log(1, 20))
    (tmp_path / "triage.db").write_text("this is no database, " * 100)
    broken = replace(chosen, database_url=f"sqlite:///{tmp_path}/triage.db")
    parts = wiring.parts(broken, lambda _text: None, record=False, similar=True)
    found, _ = diagnose([str(tmp_path / "job.log")], replace(parts, recall=None))
    assert found.failure_type != "unknown"
    assert any("earlier incidents were not compared" in note for note in found.missing)
