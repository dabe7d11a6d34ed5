"""The loop over real files, with a clock of real time and a fast pace."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.compress.seed import HOT, RULES, SIGNATURES
from triage.compress.classify import Classifier
from triage.compress.linekinds import LineKinds
from triage.domain import Compression, FilterRule, LeftOut, LogLine, StreamEvent, StreamLine, Turned
from triage.errors import InputError
from triage.following.follow import Follower, Pace
from triage.following.learner import BackgroundLearner, Learn
from triage.report.stream import StreamText

FAST = Pace(busy=0.01, idle=0.02, silence=0.1, life=999, commit=0.01)


def classify(rules: Sequence[FilterRule]) -> Classifier:
    return Classifier(rules, HOT, SIGNATURES)


class Kept:
    """An output that remembers."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.last: list[StreamEvent] = []
        self.account = Compression()
        self.states = 0

    def write(self, events: Sequence[StreamEvent]) -> None:
        self.events += events

    def commit(self, state: Callable[[], object]) -> None:
        state()
        self.states += 1

    def end(self, events: Sequence[StreamEvent], account: Compression) -> None:
        self.last, self.account = list(events), account

    @property
    def text(self) -> list[str]:
        return StreamText("text", several=True).events([*self.events, *self.last]).splitlines()


class Running:
    """A follower in a thread."""

    def __init__(self, *files: Path, pace: Pace = FAST, learner: BackgroundLearner | None = None) -> None:
        self.out, self.notes = Kept(), list[str]()
        self._stop = threading.Event()
        kinds = LineKinds(classify(RULES))
        self.follower = Follower(kinds, self.out, self.notes.append, self._stop.is_set, learner, pace)
        self.follower.open([str(file) for file in files])
        self._thread = threading.Thread(target=self.follower.run, daemon=True)
        self._thread.start()

    def until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not reached():
            assert time.monotonic() < end, "it did not come to pass"
            time.sleep(0.01)

    def shows(self, text: str) -> None:
        self.until(lambda: any(isinstance(e, StreamLine) and text in e.text for e in self.out.events))

    def stop(self) -> Kept:
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.out


def append(path: Path, text: str) -> None:
    with path.open("a") as stream:
        stream.write(text)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("job.log")


def test_what_is_serious_is_shown_while_the_file_grows(log):
    running = Running(log)
    append(log, "worker 1 added\n" * 50)
    append(log, "CUDA out of memory\n")
    running.shows("CUDA out of memory")
    assert running.out.events == [
        LeftOut("job.log", 1, 50, {"worker": 50}),
        StreamLine("job.log", 51, "CUDA out of memory", serious=True),
    ]
    assert running.stop().last == []
    assert running.out.account.lines_in == 51


def test_a_line_without_its_newline_is_shown_after_a_while_and_again_when_it_is_whole(log):
    running = Running(log)
    append(log, "hello\nwaiting for the lock")
    running.shows("waiting")
    append(log, " ... got it\n")
    running.shows("got it")
    append(log, "the end")
    running.shows("the end")
    assert running.stop().text == [
        "== job.log",
        "        1  hello",
        "        2~ waiting for the lock",
        "        2  waiting for the lock ... got it",
        "        3~ the end",
        "        3  the end",
    ]
    assert running.out.account.lines_kept == running.out.account.lines_in == 3


def test_what_is_left_out_is_told_before_a_serious_line_that_is_not_whole(log):
    running = Running(log)
    append(log, "worker 1 added\n" * 3 + "CUDA out of memory")
    running.shows("CUDA")
    assert [type(event) for event in running.stop().events] == [LeftOut, StreamLine]


def test_the_last_traceback_of_a_loop_is_shown_when_nothing_follows(log):
    running = Running(log, pace=Pace(busy=0.01, idle=0.02, silence=0.1, life=0.5, commit=0.01))
    append(log, 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nOSError: away\n' * 9)
    running.until(lambda: any(isinstance(event, StreamLine) and event.number == 27 for event in running.out.events))
    out = running.stop()
    assert [event.number for event in out.events if isinstance(event, StreamLine)] == [*range(1, 10), 25, 26, 27]
    assert sum(event.repeated for event in [*out.events, *out.last] if isinstance(event, LeftOut)) == 15


def test_a_folder_in_the_place_of_the_file_is_told_once(log):
    running = Running(log)
    append(log, "one\n")
    running.shows("one")
    log.rename("old")
    log.mkdir()
    running.until(lambda: bool(running.notes) and running.notes[-1] == "job.log: a folder; waiting for it")
    log.rmdir()
    append(log, "two\n")
    running.shows("two")
    out = running.stop()
    turned = [event for event in out.events if isinstance(event, Turned)]
    assert turned == [Turned("job.log", "deleted", "what stands in its place is no file")]
    assert running.notes.count("job.log: a folder; waiting for it") == 1


def test_two_hundred_files(log):
    names = [Path(f"rank_{n}.log") for n in range(200)]
    for name in names:
        append(name, "one\n")
    running = Running(*names)
    running.until(lambda: running.follower.stream.account().lines_in == 200)
    append(names[150], "ERROR: it fell\n")
    running.shows("it fell")
    assert running.stop().account.lines_in == 201


def test_a_bar_that_stands_still_is_not_shown_at_each_count(log):
    running = Running(log)
    for n in range(3):
        append(log, f"\rshards {n} of 9")
        time.sleep(0.3)
    append(log, "\n")
    running.until(lambda: len(running.out.events) > 1)
    assert [(e.text, e.open) for e in running.stop().events] == [("shards 0 of 9", True), ("shards 2 of 9", False)]


def test_numbers_start_again_with_a_new_file(log):
    running = Running(log)
    append(log, "one\n\n\n")
    running.shows("one")
    log.rename("job.log.1")
    append(log, "two\n")
    running.shows("two")
    assert running.stop().events == [
        StreamLine("job.log", 1, "one"),
        LeftOut("job.log", 2, 3, {"blank": 2}),
        Turned("job.log", "rotated", "a new file took its place"),
        StreamLine("job.log", 1, "two"),
    ]


def test_several_files_each_with_their_own_numbers(log):
    running = Running(log, Path("other.log"))
    running.until(lambda: len(running.notes) == 2)
    append(log, "one\n")
    running.shows("one")
    append(Path("other.log"), "two\n")
    running.shows("two")
    append(log, "three\n")
    running.shows("three")
    out = running.stop()
    assert out.text == [
        "== job.log",
        "        1  one",
        "== other.log",
        "        1  two",
        "== job.log",
        "        2  three",
    ]
    assert running.notes == [
        "job.log: no such file or folder; waiting for it",
        "other.log: no such file or folder; waiting for it",
    ]


def test_a_sign_of_life_while_nothing_is_shown(log):
    running = Running(log, pace=Pace(busy=0.01, idle=0.02, life=0.2, longest_life=0.4))
    append(log, "worker 1 added\n" * 7)
    running.until(lambda: bool(running.out.events))
    append(log, "worker 1 added\n" * 5)
    running.until(lambda: len(running.out.events) > 1)
    assert running.stop().events == [
        LeftOut("job.log", 1, 7, {"worker": 7}),
        LeftOut("job.log", 8, 12, {"worker": 5}),
    ]


def test_it_ends_when_nothing_comes_for_long_enough(log):
    append(log, "one\n")
    out = Kept()
    follower = Follower(LineKinds(classify(RULES)), out, print, lambda: False, pace=FAST)
    follower.open(["job.log"])
    started = time.monotonic()
    follower.run(until_idle=0.5)
    assert 0.5 <= time.monotonic() - started < 10
    assert out.account.lines_in == 1


def test_it_is_an_error_if_no_file_ever_came(log):
    follower = Follower(LineKinds(classify(RULES)), Kept(), print, lambda: False, pace=FAST)
    follower.open(["job.log"])
    with pytest.raises(InputError, match=r"job.log: no such file or folder"):
        follower.run(until_idle=0.1)


def test_it_does_not_keep_the_machine_busy_when_idle(log):
    append(log, "one\n")
    running = Running(log, pace=Pace())
    running.shows("one")
    time.sleep(1)
    before = time.process_time()
    time.sleep(2)
    used = time.process_time() - before
    running.stop()
    assert used < 0.1


# ------------------------------------------------------------------------------------------ learning
def learner(learn: Learn, notes: list[str]) -> BackgroundLearner:
    return BackgroundLearner(learn, classify, RULES, notes.append, every=0.05)


def test_learned_rules_are_in_force_from_then_on(log):
    asked: list[Sequence[LogLine]] = []

    def learn(lines: Sequence[LogLine]) -> Sequence[FilterRule]:
        asked.append(lines)
        return [FilterRule("shards", "shards", r"^loaded shard \d+$"), RULES[0]]

    notes: list[str] = []
    running = Running(log, learner=learner(learn, notes))
    append(log, "loaded shard 1\n" * 5 + "worker 1 added\nERROR: x\n")
    running.shows("ERROR: x")
    running.until(lambda: bool(asked))
    time.sleep(0.3)
    append(log, "loaded shard 2\nhello\n")
    running.shows("hello")
    out = running.stop()
    assert [(line.text, line.repeats) for line in asked[0]] == [("loaded shard 1", 1)] * 2 + [("loaded shard 1", 3)]
    assert out.account.dropped == {"worker": 1, "shards": 1}
    assert "1 rule learned, in force from line 8 of job.log" in running.notes
    assert [rule.id for rule in running.follower.learned] == ["shards"]
    assert notes == []


def test_a_model_that_does_not_answer_holds_nothing_up(log):
    asked, answer = threading.Event(), threading.Event()

    def learn(_lines: Sequence[LogLine]) -> Sequence[FilterRule]:
        asked.set()
        answer.wait(60)
        return []

    running = Running(log, learner=learner(learn, []))
    append(log, "one\n" * 5)
    running.shows("one")
    running.until(asked.is_set)
    append(log, "two\n")
    running.shows("two")
    running.stop()
    answer.set()


def test_what_goes_wrong_in_learning_is_one_line(log):
    notes: list[str] = []

    def learn(_lines: Sequence[LogLine]) -> Sequence[FilterRule]:
        raise RuntimeError("the model\nis away")

    running = Running(log, learner=learner(learn, notes))
    append(log, "one\n" * 5)
    running.until(lambda: bool(notes))
    append(log, "two\n")
    running.shows("two")
    running.stop()
    assert notes[0] == "no filter rules were learned: the model is away"
