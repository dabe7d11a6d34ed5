"""What an outline tells of a line, and what a scout tells of a text."""

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from triage.compress.linewise import Confined, confine, scout
from triage.compress.outline import blind, blur, blurred_words, outline
from triage.regex import words

BLIND = (r"step \d+", r"^\s*\w+ .*$", r"[0-9a-f]{4}", r"[^\d:]+:", r"(?i:LOSS)\b", r"a|b+?", r"\S+ \(\d{2}\)")
TELLING = (
    r"code 1\d",
    r"[1-9]+",
    r"HTTP/1\.1\" (?:200|30[0-9])",
    r"[^0]",
    r"[^5-9x]y",
    r"(?i)Err0r",
    r"0x[a-f]+",
    r"\b7",
)
TEXT = st.text('0123456789abxXyE. :"/()HTPcodestrLlOo-', max_size=24)


@pytest.mark.parametrize("pattern", BLIND)
@given(text=TEXT)
def test_a_blind_pattern_takes_a_line_as_it_takes_its_outline(pattern, text):
    assert blind(pattern)
    assert blur(pattern) == pattern
    assert bool(re2.search(pattern, text)) == bool(re2.search(pattern, outline(text.encode()).decode()))


@pytest.mark.parametrize("pattern", TELLING)
@given(text=TEXT)
def test_a_blurred_pattern_takes_every_line_that_the_pattern_takes_and_its_outline(pattern, text):
    assert not blind(pattern)
    assert blind(blur(pattern))
    if re2.search(pattern, text):
        assert re2.search(blur(pattern), text)
        assert re2.search(blur(pattern), outline(text.encode()).decode())


@pytest.mark.parametrize("pattern", [*BLIND, *TELLING])
def test_words_of_a_blurred_pattern_are_those_that_it_needs(pattern):
    assert blurred_words(pattern) == words(blur(pattern))


def test_blur_keeps_letters_and_lets_go_of_digits():
    blurred = re2.compile(blur(r"HTTP/1\.1\" 200$"))
    assert blurred.search('HTTP/1.0" 500')
    assert not blurred.search('HTTP/1.0" 5000')
    assert not blurred.search('HTTQ/1.0" 500')


SCOUTED = (
    r"nan iterations[ :=]+[1-9]",
    r"(?i:\bNaN iterations[ :=]+[1-9])",
    r"^exit code \d",
    r"\b(?:worker) \d+ dead$",
)


@pytest.mark.parametrize("pattern", SCOUTED)
@given(lines=st.lists(st.sampled_from([
    "nan iterations: 0", "number of nan iterations: 3", "NAN Iterations 4 ", "exit code 3", "an exit code 3", "worker 3 dead", "",
    "worker 3 added", "iterations: 1",
]), max_size=5))  # fmt: skip
def test_a_scout_misses_no_line(pattern, lines):
    text = "\n".join(lines).encode() + b"\n"
    found = Confined([pattern])
    if found.found(text):
        assert found.scouted(text)
    assert any(re2.search("(?m)" + confine(pattern), line) for line in lines) == found.found(text)


def test_a_pattern_that_starts_with_no_word_has_no_scout():
    assert scout(r".*nan") is None
    assert scout(r"(?:ab|cd)e") is None
    assert Confined([r"nan \d", r"\d+ x"]).scouted(b"nan 1\n") is None
