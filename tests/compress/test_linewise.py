import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triage import kb
from triage.compress.linewise import AFTER_PREFIX, Confined, confine
from triage.errors import KnowledgeError

# Every way a pattern could run over the end of a line, or see an end where there is none.
PATTERNS = (
    r"^ab+$", r"a[^x]b", r"a\sb", r"a\Sb", r"a\Db", r"a\Wb", r"a[\W_]b", r"a[^\w]b", r"a[\x00-\x20]b", r"a[\n-z]b",
    r"(?s)a.b", r"a(?s:.)b", r"a\nb", r"a[\n]b", r"a(?:\s|x)*b$", r"^\s*$", r"b?$", r"^a|b$", r"\Aa",
    r"\bab\b", r"\Bb", r"(?i)AB", r"(?i:A)B", r"(a)(b)?", r"a{2}", r"a{1,}b?", r"a{0,2}$", r"[^a]", r"[^\n]b", r"x*",
    r"a\.b", r"[]a-]b", r"[\]^-]", r"é+", r"[é█]b", r"a.b", r"^(?:\s|a)+b",
)  # fmt: skip
_TEXT = st.text(alphabet="abAB x\t_.-]^é█1", max_size=6)


def lines_match(pattern: str, lines: list[str]) -> list[bool]:
    regex = re2.compile(pattern)
    return [regex.search(line) is not None for line in lines]


@settings(deadline=None, max_examples=examples(400))
@given(st.sampled_from(PATTERNS), st.lists(_TEXT, min_size=1, max_size=5))
def test_joined_lines_are_matched_as_each_alone(pattern, lines):
    each = lines_match(pattern, lines)
    joined = "\n".join(lines) + "\n"
    confined = Confined([pattern])
    assert confined.takes_all(joined.encode()) == all(each)
    # A text of several lines has an empty place behind its last newline, where only a pattern that fits nothing fits.
    empty = lines_match(pattern, [""])[0]
    assert confined.found(joined.removesuffix("\n")) == any(each)
    assert confined.found(joined) == (any(each) or empty)


@settings(deadline=None)
@given(st.sampled_from(PATTERNS), st.sampled_from(PATTERNS), st.lists(_TEXT, min_size=1, max_size=5))
def test_several_patterns_match_where_any_does(one, other, lines):
    each = [a or b for a, b in zip(lines_match(one, lines), lines_match(other, lines), strict=True)]
    assert Confined([one, other]).takes_all(("\n".join(lines) + "\n").encode()) == all(each)
    assert Confined([one, other]).found("\n".join(lines)) == any(each)


@pytest.mark.parametrize(
    "line",
    [
        "step 4", "12: step 4", "[default3]:step 4", "0: [rank12]: step 4", "[1,7]<stderr>: step 4",
        "(Worker pid=77, ip=10.0.0.1) step 4", "2026-03-01T02:03:04.567Z step 4",
    ],
)  # fmt: skip
def test_a_rule_reaches_over_the_labels_of_launchers(line):
    confined = Confined([r"^step \d+$"], AFTER_PREFIX)
    assert confined.found(line)
    assert confined.takes_all(f"{line}\nstep 5\n".encode())
    assert not confined.found(f"one {line}")


def test_every_shipped_rule_takes_its_examples_joined_and_none_of_its_counter_examples():
    for rule in kb.filter_rules():
        confined = Confined([rule.pattern], AFTER_PREFIX, r"[\t ]*$")
        assert confined.takes_all("".join(f"{line}\n" for line in rule.examples).encode()), rule.id
        assert not any(confined.found(line) for line in rule.counter_examples), rule.id


def test_cut_puts_a_blank_for_each_match():
    assert Confined([r"a+"]).cut("baab\nca") == "b b\nc "


@pytest.mark.parametrize("pattern", [r"(?=a)", r"(?<!a)b", r"(a)\1", "[[:digit:]]", "(", "a" * 10 + "{3000}"])
def test_a_pattern_that_cannot_be_used_is_refused_in_words(pattern):
    with pytest.raises(KnowledgeError):
        Confined([pattern])
    assert confine("a|b") == "(?:[ab])"
