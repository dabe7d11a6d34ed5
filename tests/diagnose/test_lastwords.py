"""What the rank that the others waited for did last is cited; files that told nothing are named."""

from __future__ import annotations

import pytest

from tests.diagnose.test_suspects import _all_but, _parsed, _watchdogs
from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.evidence.match import Matcher
from triage.runbooks import runbooks

STEP = "[2026-03-04 02:02:35] iteration 519/ 1000 | lm loss: 2.3"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def test_the_last_line_of_the_silent_rank_is_cited(knowledge: Knowledge) -> None:
    doing = "[rank3]: reading shard 17 of /data/train"
    d = judge(job(_parsed(f"{STEP}\n[rank3]: epoch 1\n{doing}\n{_watchdogs(_all_but(8, 3))}")), knowledge)
    assert d.suspects.ranks == (3,)
    cited = next(e for e in d.evidence if e.line == 3)
    assert (cited.role, cited.text) == ("context", doing)
    assert "reading shard 17" in d.root_cause


def test_the_preparation_that_still_ran_is_cited_where_the_rank_has_no_line(knowledge: Knowledge) -> None:
    bar = "Generating train split: 908 examples [15:49, 17.25 examples/s]"
    d = judge(job(_parsed(f"start\n{bar}\n{_watchdogs([1, 2, 3])}")), knowledge)
    assert d.suspects.ranks == (0,)
    assert next(e.line for e in d.evidence if e.role == "context" and e.text == bar) == 2
    assert "Generating train split" in d.root_cause
    long_ago = judge(job(_parsed(f"[rank0]: device 0 of 4\n{bar}\n{_watchdogs([1, 2, 3])}")), knowledge)
    assert "Generating train split" in long_ago.root_cause


def test_a_file_that_told_nothing_is_named(knowledge: Knowledge) -> None:
    quiet = log_file("[ 7331.1] br0: port 1(swp1) entered blocking state", "switch-leaf1.dmesg", "kernel")
    d = judge(job(f"{STEP}\nKeyError: 'tokens'", quiet), knowledge)
    assert any("switch-leaf1.dmesg" in note and "tells nothing" in note for note in d.missing)
