"""What a followed log teaches is kept for its kind of job; no model is needed for it."""

from dataclasses import replace

import pytest

from triage import kb
from triage.cli import follow_learning, wiring
from triage.domain import LogLine

HEAD = "+ torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4\nusing world size: 64\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "job.log"
    path.write_text(HEAD)
    return path


def lines(log, count: int = 3) -> list[LogLine]:
    """As a stream hands them on: a few, the last for many."""
    found = [
        LogLine(str(log), n, f"shard cache: {n * 37} of 900 blobs are warm on tier {n}") for n in range(1, count + 1)
    ]
    return [*found[:-1], replace(found[-1], repeats=5000)]


def test_a_rule_is_mined_kept_and_not_learned_twice(log):
    settings, notes = wiring.settings(), []
    learn = follow_learning.teacher([str(log)], settings, kb.filter_rules(), notes.append)
    (rule,) = learn(lines(log))
    with wiring.rule_store(settings) as store:
        (kept,) = store.list(job=follow_learning.job_of([str(log)]).key)
    assert (kept.rule, kept.state) == (rule, "active")
    assert learn(lines(log)) == ()
    assert notes == []


def test_a_log_that_does_not_say_what_it_is_teaches_nothing(log):
    log.write_text("")
    learn = follow_learning.teacher([str(log), "gone.log"], wiring.settings(), kb.filter_rules(), print)
    assert learn(lines(log)) == ()
