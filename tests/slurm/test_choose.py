from dataclasses import replace
from datetime import UTC, datetime

from triage.domain import SlurmJob, SlurmStep
from triage.redact import redact
from triage.slurm import ids
from triage.slurm.choose import MOST_TASKS, choose, summary

ONE = SlurmJob(
    "5",
    raw_id="5",
    state="FAILED",
    name="train",
    user="ada",
    nodes=("n1", "n2"),
    node_list="n[1-2]",
    exit_code=1,
    signal=0,
    elapsed=3725,
)
ASKED = ids.parse("5")


def tasks(*states: str) -> list[SlurmJob]:
    return [SlurmJob(f"5_{n}", state=state, array_job="5", array_task=str(n)) for n, state in enumerate(states)]


def test_a_failed_job_is_diagnosed() -> None:
    assert choose(ASKED, [ONE]).groups == ((ONE,),)


def test_a_job_that_waits_has_nothing_to_diagnose() -> None:
    chosen = choose(ASKED, [replace(ONE, state="PENDING", reason="Resources")])
    assert (chosen.groups, chosen.waiting) == ((), "job 5 has not begun: PENDING, reason Resources")


def test_a_running_job_is_shown_as_far_as_it_came() -> None:
    chosen = choose(ASKED, [replace(ONE, state="RUNNING", start=datetime(2026, 3, 4, 1, 2, tzinfo=UTC))])
    assert chosen.live
    assert chosen.notes[0].startswith("job 5 still runs (RUNNING since 2026-03-04 01:02:00)")
    assert "`triage watch --job 5`" in chosen.notes[0]


def test_the_last_attempt_that_ended_badly_is_diagnosed_while_the_next_one_waits() -> None:
    before = [replace(ONE, state="NODE_FAIL", stdout=""), replace(ONE, state="PREEMPTED", stdout="")]
    chosen = choose(ASKED, [replace(ONE, state="PENDING", stdout="a.out", earlier=tuple(before))])
    ((job,),) = chosen.groups
    assert (job.state, job.stdout, job.restarts, [a.state for a in job.earlier]) == (
        "PREEMPTED",
        "a.out",
        1,
        ["NODE_FAIL"],
    )
    assert "attempt 2, which ended PREEMPTED, is diagnosed" in chosen.notes[0]


def test_failed_tasks_of_an_array_stand_each_alone() -> None:
    chosen = choose(ASKED, tasks("COMPLETED", "FAILED", "RUNNING", "TIMEOUT"))
    assert [[job.id for job in group] for group in chosen.groups] == [["5_1"], ["5_3"]]
    assert chosen.notes == ("array 5: of 4 tasks 1 COMPLETED, 1 FAILED, 1 RUNNING, 1 TIMEOUT",)


def test_an_array_without_a_failed_task_waits_or_went_well() -> None:
    assert (
        choose(ASKED, tasks("COMPLETED", "RUNNING")).waiting
        == "no task of array 5 has failed so far (1 COMPLETED, 1 RUNNING)"
    )
    assert [group[0].id for group in choose(ASKED, tasks("COMPLETED", "COMPLETED")).groups] == ["5_0"]


def test_of_very_many_tasks_the_first_are_diagnosed() -> None:
    chosen = choose(ASKED, tasks(*["FAILED"] * (MOST_TASKS + 5)))
    assert len(chosen.groups) == MOST_TASKS
    assert (
        chosen.notes[-1]
        == f"only the first {MOST_TASKS} of {MOST_TASKS + 5} failed tasks are diagnosed; name others as 5_[from-to]"
    )


def test_components_stand_together() -> None:
    parts = [replace(ONE, id=f"5+{n}", het_job="5", het_offset=n) for n in (0, 1)]
    assert choose(ASKED, parts).groups == (tuple(parts),)


def test_of_a_step_only_its_own_row_stands() -> None:
    steps = (SlurmStep("5.batch"), SlurmStep("5.0"), SlurmStep("5.1"))
    ((job,),) = choose(ids.parse("5.1"), [replace(ONE, steps=steps)]).groups
    assert [step.id for step in job.steps] == ["5.1"]
    assert "no step 7 of job 5 is known" in choose(ids.parse("5.7"), [replace(ONE, steps=steps)]).notes[0]


def test_a_job_in_one_line() -> None:
    def user(number: str) -> str:
        return f"ada (uid {number})"

    assert summary([ONE], user) == "5 train of ada: FAILED, exit code 1:0, 2 nodes n[1-2], ran 1:02:05"
    cancelled = replace(ONE, state="CANCELLED", cancelled_by="7", exit_code=None, nodes=(), elapsed=None, restarts=2)
    assert summary([cancelled], user) == "5 train of ada: CANCELLED by ada (uid 7), 2 restarts"


def test_tasks_that_wait_together_count_each() -> None:
    waiting = SlurmJob("5_[6-9%2]", state="PENDING", array_job="5", array_task="6-9")
    assert choose(ASKED, [*tasks("FAILED"), waiting]).notes == ("array 5: of 5 tasks 4 PENDING, 1 FAILED",)
    stepped = replace(waiting, array_task="1,3,5-20:5")
    assert choose(ASKED, [*tasks("FAILED"), stepped]).notes == ("array 5: of 7 tasks 6 PENDING, 1 FAILED",)


def test_the_name_of_a_job_does_not_hide_its_state() -> None:
    line = redact(summary([replace(ONE, name="evil StdOut=/etc/passwd")], str))
    assert line.startswith("5 'evil StdOut=/etc/passwd' of ada: FAILED, exit code 1:0")
