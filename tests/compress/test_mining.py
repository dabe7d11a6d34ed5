"""Templates mined from lines, and the regular expressions that code writes for them."""

import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triage import kb
from triage.compress.candidate import Candidate
from triage.compress.mining import is_steady, mine
from triage.compress.verify import ProtectedBank, Verifier
from triage.compress.wildcards import pieces
from triage.domain import FilterRule, LogLine

VERIFIER = Verifier(ProtectedBank(kb.protected_lines(), kb.signatures()), kb.unrelated_lines())


def log(*texts: str, **more) -> list[LogLine]:
    return [LogLine("job.log", number, text, **more) for number, text in enumerate(texts, 1)]


def patterns(*texts: str) -> list[str]:
    return [mined.pattern for mined in mine(log(*texts))]


def taken(pattern: str, *texts: str) -> list[str]:
    return [texts[at] for at in Candidate(FilterRule("x", "x", pattern)).takes(texts)]


def test_lines_that_differ_in_values_alone_are_one_template():
    (pattern,) = patterns(
        "2026-01-02 03:04:05,123 - INFO - train.loop - wrote shard /data/tok/part-00012.bin of gpu-17 in 1.23s (3f2a9c01, 42%), eta 0:12:01",
        "[rank3]: wrote shard /data/tok/part-7.bin of gpu-2 in 12s (77a9c0de, 3%), eta 1:00:00",
    )
    alike = "5: wrote shard /data/tok/part-99.bin of gpu-123 in 0.5s (0a1b2c3d, 100%), eta 10:00"
    assert taken(pattern, alike) == [alike]
    for other in (
        "wrote shard /data/tok/part-7.bin of gpu-2 in nans (77a9c0de, 3%), eta 1:00:00", "wrote shard lost of gpu-2 in 12s (77a9c0de, 3%), eta 1:00:00",
        "wrote shard /data/tok/part-7.bin of gpu-2 in 12s (77a9c0de, 3%), eta 1:00:00 but it is empty",
        "wrote shard /data/tok/part-7.bin of node gpu-2 in 12s (77a9c0de, 3%), eta 1:00:00",
    ):  # fmt: skip
        assert taken(pattern, other) == []


def test_templates_that_differ_in_a_few_words_are_merged_when_there_are_three():
    layers = ["alpha", "beta", "gamma", "q_proj", "k_proj", "down.bin"]
    lines = [f"moved the weights of {layer} to device {n} in {n}.5 s" for n, layer in enumerate(layers)]
    (pattern,) = patterns(*lines)
    assert taken(pattern, "moved the weights of gamma to device 77 in 1 s")
    assert not taken(pattern, "moved the weights of nothing to device 77 in 1 s")
    assert len(patterns(*lines[:2])) == 2
    assert len(patterns("alpha beta gamma is here", "one two gamma is there", "who does what with that")) == 3


def test_many_names_become_a_class_and_many_plain_words_do_not():
    names = ["proj_a", "proj_b", "up.w", "down.w", "gate_x"]
    (pattern,) = patterns(*(f"loading tensor {name} from the store" for name in names))
    assert taken(pattern, "loading tensor other_name from the store")
    assert not taken(pattern, "loading tensor failed from the store")
    words = [chr(97 + n % 26) * (3 + n // 26) for n in range(40)]
    found = mine(log(*(f"the answer of the model was {word} today" for word in words)))
    assert all(mined.pattern.count("|") < 12 for mined in found)


def test_a_number_that_may_tell_of_trouble_stays_as_it_is():
    (pattern,) = patterns("checked 12 files, 0 errors", "checked 3 files, 0 errors")
    assert taken(pattern, "checked 7 files, 0 errors", "checked 7 files, 3 errors") == ["checked 7 files, 0 errors"]
    (pattern,) = patterns('"GET /health HTTP/1.1" 200 12', '"GET /health HTTP/1.1" 200 7')
    assert not taken(pattern, '"GET /health HTTP/1.1" 500 12')


def test_lines_of_rules_signatures_and_alarms_are_not_mined():
    assert mine(log("step 1 done", "step 2 done", rule="x")) == ()
    assert mine(log("step 1 done", hot=True)) == ()
    assert (
        patterns(
            "ERROR step 1",
            "step 2 failed",
            "loss: nan",
            '  File "x.py", line 3, in f',
            "    return forward_call(*args)",
            "WARNING: slow",
        )
        == []
    )


def test_what_is_said_in_the_wake_of_errors_is_no_template():
    report = [
        "ValueError: the versions do not fit",
        "Please install the package again, or set the variable A.",
        "More information is in the manual.",
    ]
    assert patterns(*report, *(f"step {n} of the run" for n in range(20)), *report) == [r"^step \d+ of the run$"]
    # A routine line that follows an error once in a while stays one.
    lines = [text for n in range(10) for text in (f"step {n} of the run", *["step is fine"] * 20)]
    assert len(patterns("ValueError: x", *lines)) == 2


def test_the_best_template_comes_first_and_is_counted():
    lines = [LogLine("a.log", n, f"long line about the progress of shard {n}", repeats=100) for n in (10, 20)]
    lines += [LogLine("a.log", n, f"tick {n}") for n in range(30, 60)]
    lines += [LogLine("a.log", 100, "the end", rule="x")]
    first, second = mine(lines)
    assert (first.count, first.size, first.lines) == (
        200,
        200 * len("long line about the progress of shard 10\n"),
        (lines[0].text, lines[1].text),
    )
    assert second.count == 30
    assert first.spread == round(10 / 90, 3)
    assert len(mine(lines, most=1)) == 1


def test_a_burst_at_the_end_is_not_steady_and_neither_is_what_is_rare():
    """Not even a burst that makes up most of the log."""
    steps = [text for n in range(200) for text in (f"step {n} of the run", f"batch {n} was read")]
    burst = [f"peer {n} left the ring" for n in range(600)]
    found = {m.pattern: is_steady(m) for m in mine(log("the start of it", *steps, *burst, "step 900 of the run"))}
    peers = r"^peer \d+ left the ring$"
    assert found == {
        peers: False,
        r"^step \d+ of the run$": True,
        r"^batch \d+ was read$": False,
        "^the start of it$": False,
    }
    assert [m.spread > 0.5 for m in mine(log(*steps, *burst)) if m.pattern == peers] == [True]


def test_a_mined_rule_is_verified_like_any_other():
    texts = [f"[rank{n % 8}]: shard {n} of part-{n}.bin tokenized in {n * 0.25} s" for n in range(40)]
    (mined,) = mine(log(*texts))
    assert VERIFIER.check(FilterRule("mined.1", "", mined.pattern), mined.lines, [(t, 1) for t in texts], []).accepted
    (mined,) = mine(log(*(f"peer {n} of ring {n % 3} is unreachable" for n in range(40))))
    assert (
        VERIFIER.check(FilterRule("mined.2", "", mined.pattern), mined.lines, [(t, 1) for t in texts], []).check
        == "hides"
    )


_TOKENS = st.one_of(
    st.from_regex(r"[a-z]{2,8}", fullmatch=True), st.integers(-9999, 99999).map(str), st.floats(0, 1e6, allow_nan=False).map(lambda x: f"{x:.3g}"),
    st.from_regex(r"/[a-z]{1,6}/[a-z]{1,6}-[0-9]{1,4}\.(bin|pt)", fullmatch=True), st.from_regex(r"gpu-[0-9]{1,3}|v[0-9]\.[0-9]|0x[0-9a-f]{4,8}", fullmatch=True),
    st.from_regex(r"[a-z]{1,5}=[0-9]{1,5}[,;]?|\[[0-9]{1,3}/[0-9]{1,3}\]|[0-9]{1,3}%\||[0-9]{1,2}:[0-9]{2}", fullmatch=True), st.text(min_size=1, max_size=6),
)  # fmt: skip
_LINES = st.lists(st.lists(_TOKENS, min_size=1, max_size=10).map(" ".join), min_size=1, max_size=12)


@settings(max_examples=examples(150), deadline=None)
@given(st.one_of(_LINES, st.lists(st.text(max_size=80), max_size=6)))
def test_every_pattern_takes_its_lines_and_no_message(texts):
    texts = [text.replace("\n", " ") for text in texts]
    for text in texts:
        assert "".join(piece.text for piece in pieces(text)) == text
    for mined in mine(log(*texts)):
        re2.compile(mined.pattern)
        assert taken(mined.pattern, *mined.lines) == list(mined.lines)
        for line in mined.lines[:3]:
            assert taken(mined.pattern, f"{line} ran out of memory and was killed") == []
            assert taken(mined.pattern, f"could not go on with it {line}") == []
