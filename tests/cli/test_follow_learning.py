"""What a followed log teaches is kept for its kind of job; no model is needed for it."""

import functools
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from triage import kb, learned
from triage.cli import follow, follow_learning, wiring
from triage.domain import FilterRule, LearnedRule, LogLine, RuleOrigin
from triage.following.learner import BackgroundLearner, Learn

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
    assert learn(lines(log)) == ()
    with wiring.rule_store(settings) as store:
        (kept,) = store.list(job=follow_learning.job_of([str(log)]).key)
    assert kept.state == "shadow"  # nobody has called it routine yet
    assert learn(lines(log)) == ()
    assert notes == ["1 rule learned, on trial and not applied yet; see them with: triage rules list"]


def test_a_log_that_does_not_say_what_it_is_teaches_nothing(log):
    log.write_text("")
    learn = follow_learning.teacher([str(log), "gone.log"], wiring.settings(), kb.filter_rules(), print)
    assert learn(lines(log)) == ()


def test_what_a_rule_takes_that_was_learned_meanwhile_is_counted_to_it(log, monkeypatch):
    class Stop(threading.Event):
        signal = 0
        __call__ = threading.Event.is_set

    stop, notes, said = Stop(), list[str](), list[str]()
    monkeypatch.setattr(follow, "Stop", lambda: stop)
    monkeypatch.setattr(follow, "BackgroundLearner", functools.partial(BackgroundLearner, every=0.05))
    monkeypatch.setattr(follow.output, "note", lambda text, _quiet: notes.append(text))
    monkeypatch.setattr(follow.output, "write", said.append)

    def append(first: int, count: int, end: str, told: list[str], word: str) -> None:
        with log.open("a") as stream:
            stream.writelines(f"shard cache: {n * 37} of 900 blobs are warm on tier {n}\n" for n in range(first, count))
            stream.write(end)
        until = time.monotonic() + 60
        while not any(word in text for text in told) and time.monotonic() < until:
            time.sleep(0.02)

    def job() -> None:
        append(1, 50, "", notes, " learned, in force from line ")
        append(50, 57, "ERROR: the end\n", said, "the end")
        stop.set()

    settings = wiring.settings()

    def teacher(*_args: object) -> Learn:
        return learn

    def learn(_lines: Sequence[LogLine]) -> Sequence[FilterRule]:
        rule = FilterRule("new.1", "shards", r"^shard cache: \d+ of \d+ blobs are warm on tier \d+$")
        with wiring.rule_store(settings) as store:
            made = LearnedRule(rule, "", "active", RuleOrigin("model"))
            return learned.applied(store.add(follow_learning.job_of([str(log)]), [made], "test"))

    monkeypatch.setattr(follow, "teacher", teacher)
    rules = wiring.learned_rules(settings, writes=True)
    parts = wiring.parts(settings, notes.append, record=False, similar=False, rules=rules)
    thread = threading.Thread(target=job)
    thread.start()
    follow.follow([str(log)], parts, "text", None, None, False, settings)
    thread.join()
    with wiring.rule_store(settings) as store:
        (kept,) = store.list(job=follow_learning.job_of([str(log)]).key)
    assert (kept.hits, kept.runs) == (7, 1)
    assert notes == [f"1 rule learned, in force from line 52 of {log}"]
