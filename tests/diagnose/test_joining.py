"""The same failure in the words of several parts, and the job that its lines name."""

from __future__ import annotations

import pytest

from tests.diagnose.test_suspects import _parsed
from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def test_the_programs_and_the_kernels_words_of_one_failure_are_both_cited(knowledge: Knowledge) -> None:
    stale = "Traceback (most recent call last):\n  File \"/u/t.py\", line 5, in save\n    f = open(p)\nOSError: [Errno 116] Stale file handle: '/nfs/p/300.pt'"
    server = "Mar 12 02:10:20 node07 kernel: nfs: server filer2 not responding, still trying"
    d = judge(job(stale, log_file(server, "node07.messages", "kernel")), knowledge)
    roots = [(e.file, e.line) for e in d.evidence if e.role == "root"]
    assert (d.failure_type, sorted(roots)) == ("storage-error", [("job.log", 4), ("node07.messages", 1)])


def test_the_job_is_the_one_that_the_failures_lines_name(knowledge: Knowledge) -> None:
    daemon = "[2023-02-21T08:37:28.920] error: prolog failed: rc:1 output:/etc/slurm/prolog.d/30-gpu: /run/gres/gpu.map: No such file or directory (reboot pending)\n[2023-02-21T08:37:28.920] error: [job 40318] prolog failed status=1:0"
    control = "[2023-02-21T08:37:28.920] error: slurmd error running JobId=40318 on node(s)=pg-17: Prolog error\n[2023-02-21T08:41:53.666] _slurm_rpc_submit_batch_job: JobId=40393 InitPrio=29728 usec=230"
    d = judge(job(log_file(control, "slurmctld.log", "slurm"), log_file(daemon, "slurmd-pg-17.log", "slurm", node="pg-17")), knowledge)  # fmt: skip
    assert d.job == "40318"
    assert "gpu.map" in d.evidence[0].text


def test_the_jobs_own_output_names_it_before_the_scheduler_does(knowledge: Knowledge) -> None:
    control = "[2026-03-12T05:16:02.000] _slurm_rpc_submit_batch_job: JobId=90099 InitPrio=1 usec=1"
    d = judge(job(log_file(control, "slurmctld.log", "slurm"), _parsed("SLURM_JOB_ID=90011\nKeyError: 'a'")), knowledge)
    assert d.job == "90011"
