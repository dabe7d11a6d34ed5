"""What a log tells that just stops, and what came before a job that was ended from outside."""

from __future__ import annotations

import pytest

from tests.diagnose.test_suspects import _parsed
from tests.helpers import job
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


STEPS = "\n".join(f"[2026-03-04 02:00:{s:02d}] iteration {s}/ 1000 | lm loss: 2.{s}" for s in range(10, 50, 5))
LIMIT = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-03-04T{} DUE TO TIME LIMIT ***"


def said(knowledge: Knowledge, *more: str) -> Diagnosis:
    return judge(job(_parsed("\n".join([STEPS, *more]))), knowledge)


def test_a_log_that_just_stops_is_not_said_to_have_ended_well(knowledge: Knowledge) -> None:
    d = said(knowledge)
    assert (d.outcome, d.status) == ("healthy", "hypothesis")
    assert d.root_cause.startswith("No failure is seen, and neither is the end")
    assert d.progress.last_step == 45
    assert any("dmesg" in note for note in d.missing)
    assert {r.risk for r in d.remediation} == {"read-only"}
    ended = said(knowledge, "[after training is done] datetime: 2026-03-04 02:01:00")
    assert (ended.status, ended.remediation) == ("established", ())


def test_a_cancel_hours_after_the_last_step_ended_a_hang(knowledge: Knowledge) -> None:
    end = ("slurmstepd: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-03-04T05:22:41 ***", "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")  # fmt: skip
    d = said(knowledge, *end)
    assert (d.outcome, d.action) == ("hung", "kill-and-restart")
    assert "3 h 21 min" in d.root_cause


def test_a_whole_number_of_hours_is_a_question_of_zones(knowledge: Knowledge) -> None:
    d = said(knowledge, LIMIT.format("04:00:46"))
    assert (d.outcome, d.failure_type, d.status) == ("interrupted", "time-limit", "supported")
    assert "time zone" in d.root_cause
    assert said(knowledge, LIMIT.format("04:30:46")).outcome == "hung"
    waited = "[2026-03-04 03:10:00] watchdog: still no progress"
    assert said(knowledge, waited, LIMIT.format("04:00:46")).outcome == "hung"


def test_a_job_that_was_done_and_did_not_end_has_nothing_to_run_again(knowledge: Knowledge) -> None:
    done = "[after training is done] datetime: 2026-03-04 02:01:00"
    d = said(knowledge, done, LIMIT.format("08:12:03"))
    assert (d.outcome, d.action, d.progress.lost_time) == ("interrupted", "none", None)
    assert "complete" in d.root_cause


@pytest.mark.parametrize("text", ["A" * 5000, "0x1f 0x2e", "\n.\n..\n"])
def test_rubbish_is_not_said_to_be_well(knowledge: Knowledge, text: str) -> None:
    d = judge(job(text), knowledge)
    assert (d.outcome, d.status) == ("unknown", "unknown")


def test_a_few_words_are_a_log(knowledge: Knowledge) -> None:
    assert judge(job("bandwidth: 12.5 GB/s"), knowledge).outcome == "healthy"
