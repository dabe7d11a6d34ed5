"""What ran out: the job's time or its session. And what time alone does not tell."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.diagnose.test_outlived import told
from tests.diagnose.test_suspects import said
from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.diagnose.limits import duration
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


SIGNAL = "submitit WARNING (2025-08-13 02:05:59,076) - Caught signal SIGUSR2 on gn12: this job is preempted."


def sacct(elapsed: str, state: str = "REQUEUED") -> object:
    row = f"JobID|State|ExitCode|Elapsed|Timelimit|NodeList\n61877|{state}|0:0|{elapsed}|1-00:00:00|gn12"
    return log_file(row, "sacct.txt", "sacct")


@pytest.mark.parametrize(
    ("elapsed", "state", "wanted"),
    [
        ("23:58:11", "REQUEUED", "time-limit"),
        ("05:10:00", "REQUEUED", "preempted"),
        ("23:58:11", "PREEMPTED", "preempted"),  # Slurm's own word
    ],
)
def test_a_launchers_word_for_the_signal_before_the_limit_is_no_preemption(
    knowledge: Knowledge, elapsed: str, state: str, wanted: str
) -> None:
    assert told(judge(job(SIGNAL, sacct(elapsed, state)), knowledge)) == ("interrupted", wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1440", timedelta(days=1)),
        ("90:30", timedelta(minutes=90, seconds=30)),
        ("23:58:11", timedelta(hours=23, minutes=58, seconds=11)),
        ("2-12", timedelta(days=2, hours=12)),
        ("1-00:10:00", timedelta(days=1, minutes=10)),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_times_as_slurm_writes_them(text: str, wanted: timedelta | None) -> None:
    assert duration(text) == wanted


@pytest.mark.parametrize(("until", "line"), [("2025-02-27T07:00:00Z", 1), ("2025-02-27T19:00:00Z", 2)])
def test_a_session_that_ends_right_before_storage_refuses_is_the_cause(
    knowledge: Knowledge, until: str, line: int
) -> None:
    refused = "2025-02-27T07:00:03Z botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation"
    d = said(knowledge, f"assumed role reader, session expires {until} (12h)", refused)
    assert (d.evidence[0].line, d.root_cause_class, d.action) == (line, "config-error", "fix-and-resubmit")
