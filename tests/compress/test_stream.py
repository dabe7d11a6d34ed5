"""What is shown of a log that grows: the decisions of the scan, every line once, the same after a restart."""

import itertools
import json
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compress.seed import EVERYTHING, HOT, RULES, SIGNATURES, kept
from tests.compress.test_scan_properties import LOGS, SMALL
from tests.examples import examples
from triage.compress.classify import Classifier
from triage.compress.engine import ScanLimits, Scanner
from triage.compress.linekinds import LineKinds
from triage.compress.stream import Stream
from triage.domain import LeftOut, LogLine, RawLine, ScannedFile, StreamEvent, StreamLine
from triage.ingest.lines import LineParser

TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "train.py", line 12, in <module>',
    "    main()",
    "ValueError: batch size 3 is not divisible",
)


def new_kinds(limits: ScanLimits | None = None) -> LineKinds:
    """One that remembers nothing."""
    return LineKinds(Classifier(RULES, HOT, SIGNATURES), limits)


def scanned_anew(data: bytes, limits: ScanLimits) -> ScannedFile:
    return Scanner(RULES, HOT, None, limits, SIGNATURES).scan("job.log", [data])


def parse(raw: RawLine, hot: bool) -> LogLine:
    return LineParser("job.log").parse_raw(raw, hot)


def pieces(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data cut behind some of its lines."""
    lines = data.splitlines(keepends=True) if b"\r" not in data else [x + b"\n" for x in data.split(b"\n")]
    if b"\r" in data:
        lines[-1] = lines[-1][:-1]
    borders = sorted({0, len(lines), *(place % (len(lines) + 1) for place in places)})
    return [b"".join(lines[a:b]) for a, b in itertools.pairwise(borders)]


class Following:
    """One file, fed piece by piece."""

    def __init__(self) -> None:
        self.stream, self.kinds, self.number = Stream(), new_kinds(), 0

    def feed(self, data: bytes) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        for lines, kinds in self.kinds.read([data]):
            found += self.stream.take("job.log", self.number + 1, lines, kinds, self.kinds.rule_ids, parse)
            self.number += len(lines)
        self.stream.grown(len(data))
        return found

    def restart(self) -> None:
        self.stream = Stream.restored(json.loads(json.dumps(self.stream.state())))


def follow(data: bytes | str) -> list[StreamEvent]:
    one = Following()
    return [*one.feed(data if isinstance(data, bytes) else data.encode()), *one.stream.flush()]


def shown(events: Sequence[StreamEvent]) -> list[tuple[int, str]]:
    return [(event.number, event.text) for event in events if isinstance(event, StreamLine)]


def without_bars(data: bytes) -> bytes:
    """What a carriage return overwrote changes what the scan knows of a skeleton that began as plain."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b" ")


def decided(cut: Sequence[bytes], limits: ScanLimits) -> list[tuple[int, bytes, str]]:
    """Every line: its number, its text, and its rule, "hot" or ""."""
    kinds = new_kinds(limits)
    found: list[tuple[int, bytes, str]] = []
    for piece in cut:
        for lines, what in kinds.read([piece]):
            names = ["hot" if k.name == "hot" else kinds.rule_ids[k.rule] if k.rule >= 0 else "" for k in what]
            found += zip(range(len(found) + 1, len(found) + 1 + len(lines)), lines, names, strict=True)
    return found


@settings(deadline=None, max_examples=examples(300))
@given(LOGS.map(without_bars), st.sampled_from([SMALL, EVERYTHING]))
def test_each_line_is_of_the_kind_that_the_scan_finds(data, limits):
    assert decided([data], limits) == kept(scanned_anew(data, limits))


@settings(deadline=None, max_examples=examples(300))
@given(LOGS, st.lists(st.integers(0, 10**6), max_size=10))
def test_how_the_lines_come_makes_no_difference(data, places):
    for one, other in zip(decided(pieces(data, places), EVERYTHING), kept(scanned_anew(data, EVERYTHING)), strict=True):
        # A skeleton that began as plain is tried against the rules again only now and then.
        assert one == other or (one[:2] == other[:2] and "" in (one[2], other[2]) and "hot" not in (one[2], other[2]))


@settings(deadline=None)
@given(LOGS.map(without_bars))
def test_every_line_is_shown_or_accounted_for_once_and_rules_take_what_they_take_in_the_scan(data):
    one = Following()
    events = [*one.feed(data), *one.stream.flush()]
    scanned = scanned_anew(data, EVERYTHING)
    taken = Counter(rule for _, _, rule in kept(scanned) if rule not in ("", "hot"))
    account = one.stream.account()
    assert account.dropped == taken
    assert account.lines_in == scanned.lines_in
    assert account.bytes_in == len(data)
    left_out = sum(event.lines for event in events if isinstance(event, LeftOut))
    assert len(shown(events)) + left_out == scanned.lines_in
    assert account.lines_kept + account.folded + taken.total() == scanned.lines_in


@settings(deadline=None)
@given(LOGS, st.lists(st.integers(0, 10**6), min_size=1, max_size=5))
def test_a_stream_that_is_restored_goes_on_as_if_it_had_not_stopped(data, places):
    whole, again = Following(), Following()
    cut = pieces(data, places)
    straight = [event for piece in cut for event in whole.feed(piece)] + list(whole.stream.flush())
    stopped = []
    for piece in cut:
        stopped += again.feed(piece)
        again.restart()
    assert stopped + list(again.stream.flush()) == straight
    assert again.stream.account() == whole.stream.account()


def test_a_wording_that_was_shown_lately_is_counted():
    events = follow("".join(f"loaded shard {n} of 900\n" for n in range(50)) + "ready\n")
    assert [number for number, _ in shown(events)] == [1, 2, 3, 51]
    assert events[-1] == LeftOut("job.log", 4, 50, {}, 47)


def test_a_wording_comes_again_when_it_was_not_shown_for_long():
    data = "saved step 1\n" * 5 + "worker 1 added\n" * 20_000 + "saved step 2\n" * 5
    assert [number for number, _ in shown(follow(data))] == [1, 2, 3, 20_006]


def test_lines_that_are_left_out_are_told_now_and_then_and_ever_more_rarely():
    events = follow("worker 1 added\n" * 4000 + "\n" * 500 + "worker 1 dead\n" + "worker 1 added\n" * 1200)
    assert [event if isinstance(event, LeftOut) else event.number for event in events] == [
        LeftOut("job.log", 1, 1000, {"worker": 1000}),
        LeftOut("job.log", 1001, 3000, {"worker": 2000}),
        LeftOut("job.log", 3001, 4500, {"worker": 1000, "blank": 500}),
        4501,
        LeftOut("job.log", 4502, 5501, {"worker": 1000}),
        LeftOut("job.log", 5502, 5701, {"worker": 200}),
    ]


def test_the_same_error_passes_and_only_a_flood_of_it_is_counted():
    events = follow("".join(f"{n}: ERROR: store unreachable\n" for n in range(100)) + "9: ERROR: disk full\n")
    assert [number for number, _ in shown(events)] == [*range(1, 21), 101]
    assert all(event.serious for event in events if isinstance(event, StreamLine))
    assert events[-2] == LeftOut("job.log", 21, 100, {}, 80)


def test_errors_that_differ_in_a_number_all_pass():
    data = "".join(f"ERROR: node {n} does not answer\n" for n in range(500))
    assert len(shown(follow(data))) == 500


def test_what_is_left_out_is_told_before_something_serious_and_not_at_each_of_a_flood():
    events = follow("worker 1 added\n" * 2 + "worker 1 dead\nworker 1 added\nworker 2 dead\n" + "worker 1 added\n" * 30)
    assert [event if isinstance(event, LeftOut) else event.number for event in events] == [
        LeftOut("job.log", 1, 2, {"worker": 2}),
        3,
        5,
        LeftOut("job.log", 4, 35, {"worker": 31}),
    ]
    flood = follow("".join(f"worker 1 added\nworker {n} dead\n" for n in range(1000)))
    assert len(shown(flood)) == 1000
    assert sum(isinstance(event, LeftOut) for event in flood) <= 2 * 1000 / 20 + 1


def test_a_calm_line_does_not_call_for_an_account():
    events = follow("worker 1 added\n" * 2 + "hello\n")
    assert events[-1] == LeftOut("job.log", 1, 2, {"worker": 2})


def test_text_of_no_repeating_kind_is_counted():
    one = Following()
    one.feed(b"once upon a time\nloaded shard 1\nthere was a king\nloaded shard 2\nERROR: x\nworker 1 added\n")
    assert one.stream.account().novel == 2
    one.restart()
    one.feed(b"there was a king\n")
    assert one.stream.account().novel == 1


# ------------------------------------------------------------------------------------------ retry loops
RETRY = "\n".join(TRACEBACK) + "\n"


def test_a_traceback_that_is_printed_again_and_again_is_counted_but_for_the_last():
    events = follow(("attempt failed\n" + RETRY) * 50)
    numbers = [number for number, text in shown(events) if text == TRACEBACK[0]]
    assert numbers == [2, 7, 12, 247]
    assert [text for _, text in shown(events)][-4:] == list(TRACEBACK)
    assert sum(event.repeated for event in events if isinstance(event, LeftOut)) == 46 * 4 + 47
    one = Following()
    one.feed(RETRY.encode() * 50)
    list(one.stream.flush())
    account = one.stream.account()
    assert account.lines_in == account.lines_kept + account.folded == 200


def test_the_last_of_a_loop_comes_before_another_traceback_and_when_nothing_like_it_follows():
    other = RETRY.replace("line 12", "line 13")
    starts = [number for number, text in shown(follow(RETRY * 10 + other)) if text == TRACEBACK[0]]
    assert starts == [1, 5, 9, 37, 41]
    one = Following()
    events = one.feed((RETRY * 10 + "worker 1 added\n" * 1010).encode())
    assert [number for number, text in shown(events) if text == TRACEBACK[0]] == [1, 5, 9, 37]


def test_tracebacks_that_differ_or_come_seldom_pass_whole():
    differing = "".join(RETRY.replace("size 3", f"size {n}") for n in range(50))
    assert len(shown(follow(differing))) == 4 * 50
    assert len(shown(follow((RETRY + "worker 1 added\n" * 1200) * 8))) == 4 * 8
    addresses = "".join(RETRY.replace("size 3", f"<object at 0x7f{n:04x}>") for n in range(50))
    assert len(shown(follow(addresses))) == 4 * 4


def test_a_traceback_that_goes_on_where_the_others_ended_is_shown_whole():
    chained = RETRY + "\nDuring handling of the above exception, another exception occurred:\n\n" + RETRY
    events = follow(RETRY * 6 + chained)
    assert [number for number, text in shown(events) if text == TRACEBACK[0]] == [1, 5, 9, 21, 25, 32]


def test_a_restored_stream_holds_back_what_the_other_did():
    straight = shown(follow(RETRY * 5 + "hello\n"))
    lines = (RETRY * 5 + "hello\n").splitlines(keepends=True)
    for at in range(1, len(lines)):
        one = Following()
        events = one.feed("".join(lines[:at]).encode())
        one.restart()
        events += [*one.feed("".join(lines[at:]).encode()), *one.stream.flush()]
        assert shown(events) == straight


def test_interleaved_tracebacks_pass_whole():
    data = "".join(f"{rank}: {text}\n" for text in TRACEBACK for rank in range(30))
    assert len(shown(follow(data))) == 4 * 30


def test_a_long_plain_line_is_shortened_and_an_error_is_not():
    long = "x y " * 2000
    plain, error = shown(follow(f"{long}\nERROR: {long}\n"))
    assert len(plain[1]) < 1100
    assert error[1].rstrip() == f"ERROR: {long}".rstrip()


def test_secrets_are_replaced_and_no_key_is_missed_because_its_first_line_was_seen_before():
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhk4w0\n-----END PRIVATE KEY-----\n"
    parser = LineParser("job.log")
    kinds, stream = new_kinds(), Stream()
    ((lines, what),) = kinds.read([b"HF_TOKEN=hf_" + b"a1B2" * 9 + b"\n" + key.encode() * 6])
    text = "\n".join(
        line for _, line in shown(list(stream.take("job.log", 1, lines, what, kinds.rule_ids, parser.parse_raw)))
    )
    assert "MIIE" not in text
    assert "a1B2" not in text


def test_what_no_rule_explains_is_told_once_when_it_comes_again_and_again():
    one = Following()
    one.feed(b"loaded shard 1\n" * 9 + b"worker 1 added\nERROR: x\nhello\nhello\n")
    assert [(line.number, line.text, line.repeats) for line in one.stream.unexplained()] == [
        (1, "loaded shard 1", 1),
        (2, "loaded shard 1", 1),
        (3, "loaded shard 1", 7),
    ]
    assert one.stream.unexplained() == []
    one.feed(b"hello\n" * 3)
    assert [line.repeats for line in one.stream.unexplained()] == [1, 1, 3]


def test_memory_of_wordings_is_bounded():
    one = Following()
    for n in range(15):
        one.feed(b"".join(b"word%s tells of %s\n" % (w.encode(), w.encode()) * 5 for w in _words(n)))
    assert len(json.dumps(one.stream.state())) < 200_000
    assert len(one.stream.unexplained()) == 3 * 500


def _words(seed: int) -> list[str]:
    return ["".join("ghijklmnop"[int(d)] for d in str(seed * 1000 + n)) for n in range(1000)]
