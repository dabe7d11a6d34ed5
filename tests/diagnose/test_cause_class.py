"""The class of a cause, from what the evidence says beyond the kind of error."""

from __future__ import annotations

import pytest

from tests.helpers import job
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, JobLog, LogFile, LogLine
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def raised(knowledge: Knowledge, source: str, error: str, file: str = "/w/train.py") -> Diagnosis:
    text = f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n    {source}\n{error}'
    return judge(job(text), knowledge)


@pytest.mark.parametrize(
    ("source", "error", "expected"),
    [
        ("loss = stats['lm_loss']", "KeyError: 'lm_loss'", "software-bug"),
        ("row = table[name]", "KeyError: 'lm_loss'", "data-error"),
        ("lr = optimizer.param_groups[1]['lr']", "IndexError: list index out of range", "software-bug"),
        ("word = words[at]", "IndexError: list index out of range", "data-error"),
    ],
)
def test_a_look_up_of_a_constant_is_the_programs_own(
    knowledge: Knowledge, source: str, error: str, expected: str
) -> None:
    assert raised(knowledge, source, error).root_cause_class == expected


def test_what_the_code_that_reads_data_raises_is_of_the_data(knowledge: Knowledge) -> None:
    error = "core.data.EmptySourceError: source keeps 0 of 48 tokens"
    found = [raised(knowledge, "raise E", error, f).root_cause_class for f in ("/w/core/data.py", "/w/train.py")]
    assert found == ["data-error", "software-bug"]


def test_a_network_fault_of_all_nodes_before_any_work_is_of_what_they_have_in_common(knowledge: Knowledge) -> None:
    fault = "transport/net_ib.cc:839 NCCL WARN NET/IB : Got completion from peer 192.168.40.21<54981> with error 12, opcode 0, len 0, vendor err 129"

    def told(*nodes: str, bystander: str = "", step: str = "") -> Diagnosis:
        said = [(bystander, "up"), *[(node, f"{node}:1:1 [0] {fault}") for node in nodes]]
        lines = [LogLine("job.log", i, text, node=node or None, hot=True) for i, (node, text) in enumerate(said, 2)]
        first = LogLine("job.log", 1, step or "start", hot=True)
        return judge(JobLog((LogFile("job.log", "job", (first, *lines), 1, len(lines) + 1),)), knowledge)

    common, cable = told("n1", "n2"), told("n1", "n2", bystander="n3")
    assert (common.root_cause_class, common.action) == ("config-error", "fix-and-resubmit")
    assert cable.root_cause_class != "config-error"
    worked = told("n1", "n2", step="step 4 loss 2.1 lr 0.1")
    assert worked.root_cause_class != "config-error"
